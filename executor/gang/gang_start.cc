#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "executor/gang/command_line.h"
#include "executor/gang/folders.h"
#include "executor/gang/gang.h"
#include "executor/gang/set_aside.h"
#include "executor/processes/cgroup.h"
#include "executor/processes/environment.h"
#include "logging/log.h"
#include "system/spawn.h"
#include "system/unique_fd.h"

namespace attune::gang {
namespace {

constexpr char kLoopback[] = "127.0.0.1";

LaunchedProgram ProgramOf(const Program& program, const Preparation& preparation) {
  return {.path = preparation.program,
          .argv = preparation.argv,
          .environment = program.environment,
          .working_directory = program.working_directory,
          // Commands that differ between trials would need a launcher for each trial.
          .is_same_for_all = !UsesPlaceholders(program.command)};
}

}  // namespace

void Gang::Start() {
  // A host failure: the trial waits until the secret is set, and does not count as failed.
  if (const auto& missing = spec_.program.missing_secrets; !missing.empty()) {
    return Fail(FailureKind::kHost, -1,
                "the secret " + missing.front() +
                    " is not set on the server; run `attune secret set " + missing.front() +
                    "` there");
  }
  Result<Preparation> preparation = Prepare(spec_);
  if (!preparation.ok()) return Fail(FailureKind::kStart, -1, preparation.error().message);
  preparation_ = std::move(preparation.value());
  if (spec_.SpansHosts() && spec_.host.address.empty()) {
    return Fail(FailureKind::kStart, -1,
                "ranks on other hosts cannot reach this host; start its executor with --interface");
  }
  if (IsResumeGone(spec_)) {
    return End(Outcome::kFailed,
               Failure{.kind = FailureKind::kHost,
                       .message = "the checkpoint " + spec_.resume->path.string() +
                                  " to resume from is gone",
                       .missing_checkpoint = ParseCheckpointFolder(spec_.resume->path)});
  }
  if (Status made = MakeFoldersAndConfig(spec_); !made.ok())
    return FailToStart(FailureKind::kHost, -1, made.error());
  if (Status prepared = PrepareRendezvous(); !prepared.ok())
    return FailToStart(FailureKind::kHost, -1, prepared.error());
  Rank::Owner& owner = *this;
  for (const RankSlot& slot : spec_.ranks) {
    ranks_.push_back(std::make_unique<Rank>(services_.loop, slot, spec_.world_size, owner));
    if (services_.log_bytes_max > 0)
      log_limits_.emplace_back(RankLog(spec_.attempt_dir, slot.rank), services_.log_bytes_max);
  }

  // An engine's helpers may serve the containers of other gangs, so they are not in the cgroup.
  if (!HasNamedContainers()) cgroup_ = services_.cgroup();
  if (spec_.container) return SpawnAll();
  const Result<LauncherChoice> warm =
      services_.launcher_for(ProgramOf(spec_.program, preparation_));
  if (!warm.ok()) return FailToStart(FailureKind::kStart, -1, warm.error());
  built_on_sdk_ = warm.value().built_on_sdk;
  launcher_ = warm.value().launcher;
  if (launcher_) {
    ForkOne(0);
  } else {
    SpawnAll();
  }
}

// Prepares the port at which the ranks meet, and the reader of their printed reports.
Status Gang::PrepareRendezvous() {
  if (!spec_.HasRankZero()) {
    if (!spec_.rendezvous) return Invalid("the assignment has no rendezvous with rank 0");
    if (spec_.rendezvous->rank_zero) SetRendezvous(*spec_.rendezvous->rank_zero);
    return {};
  }
  Result<HeldPort> port = HeldPort::Hold();
  if (!port.ok()) return port.error();
  port_ = std::move(port.value());
  if (spec_.SpansHosts()) Emit(MakeSharedRendezvous());
  if (spec_.program.report_pattern.empty()) return {};

  const std::filesystem::path path = RankLog(spec_.attempt_dir, 0);
  if (auto log = OpenLog(path); !log.ok()) return log.error();
  auto reports = LogReports::Open(services_.loop, path,
                                  {.pattern = spec_.program.report_pattern,
                                   .time_attr = spec_.time_attr,
                                   .step = spec_.resume ? spec_.resume->step : 0},
                                  [this] { ReadLog(); });
  if (!reports.ok()) return reports.error();
  log_reports_ = std::move(reports.value());
  return {};
}

SharedRendezvous Gang::MakeSharedRendezvous() const {
  if (!port_) return *spec_.rendezvous;
  return {spec_.SpansHosts() ? spec_.host.address : kLoopback, port_->number(), rendezvous_};
}

EnvironmentChanges Gang::BuildEnvironment(const Rank& rank) const {
  const SharedRendezvous shared = MakeSharedRendezvous();
  EnvironmentChanges environment =
      RankEnvironment(spec_, rank.slot(), shared.address, shared.master_port);
  if (!rank.path().empty()) {
    environment.emplace_back("ATTUNE_CHANNEL", rank.path().string());
    // A process with this parent inherits the channel; others use the path, as those in containers.
    const pid_t parent = launcher_ ? launcher_->pid() : getpid();
    environment.emplace_back("ATTUNE_CHANNEL_PARENT",
                             spec_.container ? "none" : std::to_string(parent));
  }
  return environment;
}

// If this fails, only programs that a rank starts cannot report.
void Gang::ListenForDescendants(Rank& rank) {
  if (services_.sockets == nullptr || !rank.path().empty()) return;
  if (Status listens = rank.Listen(*services_.sockets, services_.timing.successor_grace);
      !listens.ok())
    logging::Warn("{}: programs that a rank starts cannot report", listens.error().message);
}

// A program may join late: it gets the messages that were sent to the rank since the start line.
void Gang::OnClaimed(Rank& rank) {
  if (rank.slot().rank == 0 && yielding_ && !log_reports_) rank.Send(ToLine(channel::Yield{}));
  if (rank.slot().rank != 0 && rendezvous_) rank.Send(ToLine(*rendezvous_));
}

Result<channel::Start> Gang::StartLine(const Rank& rank) {
  if (phase_ != Phase::kRunning) return Invalid("the attempt has not started yet or has ended");
  channel::Start start = MakeStartLine(spec_, rank.slot());
  start.milestone = milestone_;
  return start;
}

std::optional<Gang::Outlets> Gang::OpenOutlets(Rank& rank) {
  ListenForDescendants(rank);
  Result<UniqueFd> channel = rank.OpenChannel();
  Result<UniqueFd> log = OpenLog(RankLog(spec_.attempt_dir, rank.slot().rank));
  if (channel.ok() && log.ok()) return Outlets{std::move(channel.value()), std::move(log.value())};
  FailToStart(FailureKind::kHost, rank.slot().rank, channel.ok() ? log.error() : channel.error());
  return std::nullopt;
}

void Gang::SpawnAll() {
  for (auto& rank : ranks_) {
    const std::optional<Outlets> outlets = OpenOutlets(*rank);
    if (!outlets) return;
    Result<Child> child =
        spec_.container ? SpawnInContainer(*rank, *outlets) : SpawnRank(*rank, *outlets);
    if (!child.ok())
      return FailToStart(spec_.container ? FailureKind::kHost : FailureKind::kStart,
                         rank->slot().rank, child.error());
    WarnWithoutCgroup(*child);
    Attach(*rank, std::move(child.value()), Rank::Parent::kThisProcess);
  }
  OnAllStarted();
}

Result<Child> Gang::SpawnRank(const Rank& rank, const Outlets& outlets) {
  EnvironmentChanges environment = BuildEnvironment(rank);
  environment.emplace_back("ATTUNE_CHANNEL_FD", std::to_string(kInheritedFd));
  return Spawn({.program = preparation_.program,
                .argv = preparation_.argv,
                .environment = ProgramEnvironment(environment),
                .working_directory = spec_.RankDirectory(),
                .output_fd = outlets.log.get(),
                .inherited_fd = outlets.channel.get(),
                .process_group = group_,
                .cgroup = cgroup_ ? cgroup_->descriptor() : -1,
                .announce_fd = services_.guard.announce_fd()});
}

void Gang::ForkOne(size_t index) {
  Rank& rank = *ranks_[index];
  std::optional<Outlets> outlets = OpenOutlets(rank);
  if (!outlets) return;
  Launcher::ForkRequest request{
      .argv = preparation_.argv,
      .environment = BuildEnvironment(rank),
      .working_directory = spec_.RankDirectory(),
      .process_group = group_,
      .channel = std::move(outlets->channel),
      .log = std::move(outlets->log),
      .forked = [this, index](Result<Child> child) { OnForked(index, std::move(child)); },
      .unavailable = [this, index] { OnUnavailable(index); },
      .exited = [this,
                 &rank](std::optional<ExitStatus> status) { OnLauncherReport(rank, status); }};
  if (cgroup_) request.environment.emplace_back(channel::kCgroupVariable, cgroup_->folder());
  ++forks_pending_;
  if (launcher_->Fork(std::move(request))) return;
  --forks_pending_;
  // If one request is too large, all are, so no rank has been forked yet.
  launcher_ = nullptr;
  if (index == 0) return SpawnAll();
  FailToStart(FailureKind::kStart, rank.slot().rank,
              Invalid("its command and environment are too large"));
}

void Gang::OnUnavailable(size_t index) {
  --forks_pending_;
  if (phase_ != Phase::kStarting) return ConcludeIfGone();
  if (index > 0)
    return FailToStart(ForkFailureKind(), ranks_[index]->slot().rank, Invalid(launcher_->death()));
  launcher_ = nullptr;
  SpawnAll();
}

// A launcher that does not answer is the host's failure; the supervisor does not use it for the
// next gang. If a launcher was ready once and then failed, the attempt counts as an ordinary
// failure with retries.
FailureKind Gang::ForkFailureKind() const {
  if (!launcher_) return FailureKind::kStart;
  if (launcher_->death().empty() && launcher_->is_slow()) return FailureKind::kHost;
  return launcher_->was_ready() ? FailureKind::kExit : FailureKind::kStart;
}

void Gang::OnForked(size_t index, Result<Child> child) {
  --forks_pending_;
  if (!child.ok()) {
    FailToStart(ForkFailureKind(), ranks_[index]->slot().rank, child.error());
    return ConcludeIfGone();
  }
  Attach(*ranks_[index], std::move(child.value()), Rank::Parent::kLauncher);
  if (phase_ != Phase::kStarting) return KillAll();  // an end while starting has no grace
  // The other ranks join the process group of the first one.
  if (index == 0) {
    for (size_t i = 1; i < ranks_.size() && phase_ == Phase::kStarting; ++i) ForkOne(i);
  }
  const bool all = std::ranges::all_of(ranks_, [](const auto& r) { return r->is_attached(); });
  if (all && phase_ == Phase::kStarting) OnAllStarted();
}

void Gang::OnLauncherReport(Rank& rank, std::optional<ExitStatus> status) {
  if (!status) {
    EndAfterLeaveGrace(Failure{.kind = FailureKind::kSignal,
                               .signal = SIGKILL,
                               .message = launcher_->death() + ", and its ranks with it"});
  }
  rank.OnLauncherReport(status);
}

void Gang::Attach(Rank& rank, Child child, Rank::Parent parent) {
  if (group_ == 0) {
    group_ = child.pid;
    services_.guard.Add(group_);
  }
  rank.Attach(std::move(child), parent);
}

void Gang::OnAllStarted() {
  phase_ = Phase::kRunning;
  Started started;
  for (const auto& rank : ranks_) started.pids.push_back(rank->pid());
  Emit(std::move(started));
  for (const auto& rank : ranks_) rank->Send(ToLine(MakeStartLine(spec_, rank->slot())));
  if (yielding_) SendYield();
  if (rendezvous_) RelayRendezvous();
  resumed_at_ = Loop::Clock::now();
  WatchForStall();
  if (log_reports_) ReadLog();  // printed while other ranks were starting
  FinishIfAllLeft();
}

}  // namespace attune::gang
