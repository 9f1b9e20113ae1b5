#include "executor/gang/supervisor.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <future>
#include <optional>
#include <ranges>
#include <utility>

#include "executor/gang/command_line.h"
#include "executor/gang/elf_note.h"
#include "executor/gang/preparation.h"
#include "logging/log.h"

namespace attune::gang {
namespace {

constexpr std::chrono::milliseconds kTrimEvery{250};
constexpr std::chrono::milliseconds kTrimSoon{10};

// Whether the command runs `python -m attune.launcher` (clients/python).
bool IsPythonLauncher(const std::vector<std::string>& argv) {
  for (size_t i = 1; i + 1 < argv.size() && argv[i].starts_with('-'); ++i) {
    if (argv[i] == "-m") return argv[i + 1] == "attune.launcher";
  }
  return false;
}

}  // namespace

Supervisor::Supervisor(Options options, FactSink sink)
    : options_(std::move(options)), sink_(std::move(sink)), containers_(options_.containers_dir) {}

Result<std::unique_ptr<Supervisor>> Supervisor::Start(Options options, FactSink sink) {
  std::unique_ptr<Supervisor> supervisor(new Supervisor(std::move(options), std::move(sink)));
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    return Error{ErrorCode::kUnavailable,
                 "this system cannot adopt orphaned processes (PR_SET_CHILD_SUBREAPER)"};
  }
  Supervisor* self = supervisor.get();
  std::promise<Status> started;
  self->thread_ = std::thread([self, &started] {
    pthread_setname_np(pthread_self(), "attune-gangs");
    self->containers_.RemoveLeft();
    self->MakeCgroups();
    self->MakeSocketFolder();
    Result<std::unique_ptr<Guard>> guard =
        Guard::Start(self->loop_, self->cgroups_ ? self->cgroups_->folder() : "");
    const bool ok = guard.ok();
    if (ok) self->guard_ = std::move(guard.value());
    started.set_value(ok ? Status() : guard.error());
    if (ok) self->loop_.Run();
  });
  if (const Status running = started.get_future().get(); !running.ok()) {
    self->thread_.join();
    return running.error();
  }
  return supervisor;
}

void Supervisor::MakeSocketFolder() {
  Result<SocketFolder> sockets = SocketFolder::Make();
  if (sockets.ok())
    sockets_.emplace(std::move(sockets.value()));
  else
    logging::Warn("{}: programs that a rank starts cannot report", sockets.error().message);
}

void Supervisor::MakeCgroups() {
  if (options_.cgroups.identity.empty()) return;
  auto cgroups = Cgroups::Make(options_.cgroups);
  if (cgroups.ok()) {
    cgroups_ = std::move(cgroups.value());
    logging::Info("leftover processes of ranks are found by cgroups in {}",
                  cgroups_->folder().string());
  } else {
    logging::Info("leftover processes of ranks are found by their environment, not by cgroups: {}",
                  cgroups.error().message);
  }
}

Supervisor::~Supervisor() {
  if (!thread_.joinable()) return;
  loop_.Post([this] { ShutDown(); });
  thread_.join();
}

void Supervisor::Run(GangSpec spec) {
  loop_.Post([this, spec = std::move(spec)]() mutable { RunGang(std::move(spec)); });
}

template <typename Call>
void Supervisor::Post(const AttemptId& attempt, Call call) {
  loop_.Post([this, attempt, call = std::move(call)] {
    const auto found = gangs_.find(attempt);
    if (found != gangs_.end()) call(*found->second);
  });
}

void Supervisor::Cancel(const AttemptId& attempt, CancelReason reason) {
  Post(attempt, [reason](Gang& gang) { gang.Cancel(reason); });
}

void Supervisor::SetVerdict(const AttemptId& attempt, const Verdict& verdict) {
  Post(attempt, [verdict](Gang& gang) { gang.SetVerdict(verdict); });
}

void Supervisor::EndForDisk(const AttemptId& attempt, std::string message) {
  Post(attempt, [message = std::move(message)](Gang& gang) { gang.EndForDisk(message); });
}

void Supervisor::OnPeersFinished(const AttemptId& attempt) {
  Post(attempt, [](Gang& gang) { gang.OnFinished(); });
}

void Supervisor::Yield(const AttemptId& attempt) {
  Post(attempt, [](Gang& gang) { gang.Yield(); });
}

void Supervisor::SetRendezvous(const AttemptId& attempt, const channel::Rendezvous& rank_zero) {
  Post(attempt, [rank_zero](Gang& gang) { gang.SetRendezvous(rank_zero); });
}

void Supervisor::ResumeReading() {
  loop_.Post([this] {
    for (const auto& [attempt, gang] : gangs_) gang->ResumeReading();
  });
}

void Supervisor::PrestartLauncher(Program program) {
  loop_.Post([this, program = std::move(program)] {
    if (shutting_down_ || program.command.empty()) return;
    if (UsesPlaceholders(program.command)) return;
    const auto path = LocateProgram(program, program.command[0]);
    if (!path.ok()) return;  // the first gang of the program reports the error
    const auto launcher = LauncherFor({.path = path.value(),
                                       .argv = program.command,
                                       .environment = program.environment,
                                       .working_directory = program.working_directory});
    if (!launcher.ok()) logging::Warn("{}", launcher.error().message);
  });
}

void Supervisor::RunGang(GangSpec spec) {
  const AttemptId attempt = spec.attempt;
  if (shutting_down_ || gangs_.contains(attempt)) return;
  const Gang::Services services{
      .loop = loop_,
      .guard = *guard_,
      .timing = options_.timing,
      .cgroup = [this] { return NewCgroup(); },
      .sockets = sockets_ ? &*sockets_ : nullptr,
      .containers = containers_,
      .launcher_for = [this](const LaunchedProgram& program) { return LauncherFor(program); },
      .facts = sink_,
      .may_read = options_.may_read,
      .discard = options_.discard,
      .log_bytes_max = options_.log_bytes_max,
      .is_known = [this](pid_t pid) { return IsKnown(pid); },
      .other_gangs_run =
          [this](const AttemptId& id) {
            return std::ranges::any_of(gangs_, [&](const auto& each) { return each.first != id; });
          },
      // Posted, because the gang is still in the call.
      .gone = [this](const AttemptId& id) { loop_.Post([this, id] { ForgetGang(id); }); }};
  Gang& gang =
      *gangs_.emplace(attempt, std::make_unique<Gang>(services, std::move(spec))).first->second;
  gang.Start();
  if (!trimming_ && options_.log_bytes_max > 0) TrimLogs();
}

// The kernel can notify about each write to a log, but not about a log that reaches its limit. So
// logs are polled, more often if one grows fast.
void Supervisor::TrimLogs() {
  trimming_.Reset();
  if (gangs_.empty()) return;
  uint64_t room = kAllIsRead;
  for (const auto& [attempt, gang] : gangs_) room = std::min(room, gang->TrimLogs());
  const uint64_t before = std::exchange(log_room_bytes_, room);
  // Room > before: a log was trimmed.
  const bool floods = room > before || before - room > room / 8;
  trimming_ = loop_.CallAfter(floods ? kTrimSoon : kTrimEvery, [this] { TrimLogs(); });
}

Result<LauncherChoice> Supervisor::LauncherFor(const LaunchedProgram& program) {
  Result<ProgramIdentity> identity = IdentifyProgram(program.path);
  if (!identity.ok()) return identity.error();
  ForgetUselessLaunchers();
  const bool python = IsPythonLauncher(program.argv);
  LauncherChoice start{.built_on_sdk = !python};
  for (HeldLauncher& held : launchers_) {
    Launcher& known = *held.launcher;
    if (known.identity() != identity.value() || !(known.program() == program)) continue;
    if (!known.death().empty() && known.was_ready()) continue;
    held.asked_at = Loop::Clock::now();
    if (known.death().empty() && !known.is_slow()) start.launcher = &known;
    return start;
  }
  if (!python &&
      ReadLauncherNote(program.path) != static_cast<uint32_t>(channel::kLauncherProtocol))
    return LauncherChoice{};
  if (!program.is_same_for_all) return start;
  Launcher::Options options = options_.launcher;
  if (python) options.ready_wait = options_.python_ready_wait;
  auto launcher = Launcher::Start(
      loop_, *guard_, NewCgroup(), identity.value(), program,
      options_.launcher_log_dir / (program.path.filename().string() + ".log"), options);
  if (!launcher.ok()) return launcher.error();
  start.launcher = launcher.value().get();
  launchers_.push_back({std::move(launcher.value()), Loop::Clock::now()});
  return start;
}

bool Supervisor::IsKnown(pid_t pid) const {
  return pid == guard_->pid() || (options_.is_other_child && options_.is_other_child(pid)) ||
         std::ranges::any_of(
             launchers_, [pid](const HeldLauncher& held) { return held.launcher->pid() == pid; }) ||
         std::ranges::any_of(gangs_,
                             [pid](const auto& each) { return each.second->has_child(pid); });
}

void Supervisor::ForgetGang(const AttemptId& attempt) {
  gangs_.erase(attempt);
  ForgetUselessLaunchers();
  if (shutting_down_) QuitIfEmpty();
}

void Supervisor::ForgetUselessLaunchers() {
  const auto in_use = [this](const Launcher* launcher) {
    return !launcher->is_idle() || std::ranges::any_of(gangs_, [launcher](const auto& each) {
      return each.second->launcher() == launcher;
    });
  };
  const Loop::Clock::time_point now = Loop::Clock::now();
  Loop::Clock::duration next_idle = Loop::Clock::duration::max();
  // launchers_ is in order of start, so the last launcher of a path has the newest file. Only that
  // one can get new gangs.
  std::map<std::filesystem::path, ProgramIdentity> newest;
  std::vector<HeldLauncher> kept;
  for (HeldLauncher& held : launchers_ | std::views::reverse) {
    const Launcher& launcher = *held.launcher;
    if (in_use(&launcher)) {
      held.asked_at = now;
      newest.emplace(launcher.identity().path, launcher.identity());
      kept.push_back(std::move(held));
      continue;
    }
    const bool dead = !launcher.death().empty();
    if (dead && !launcher.is_gone()) {  // its exit was not handled yet
      kept.push_back(std::move(held));
      continue;
    }
    const bool outdated =
        newest.emplace(launcher.identity().path, launcher.identity()).first->second !=
        launcher.identity();
    const auto idle_for = now - held.asked_at;
    if (outdated || (dead && launcher.was_ready()) || idle_for >= options_.launcher.idle_timeout) {
      continue;
    }
    next_idle = std::min(next_idle, options_.launcher.idle_timeout - idle_for);
    kept.push_back(std::move(held));
  }
  std::ranges::reverse(kept);
  launchers_ = std::move(kept);
  idle_.Reset();
  if (next_idle != Loop::Clock::duration::max()) {
    idle_ = loop_.CallAfter(next_idle, [this] { ForgetUselessLaunchers(); });
  }
}

void Supervisor::ShutDown() {
  shutting_down_ = true;
  for (const auto& [id, gang] : gangs_) gang->Cancel(CancelReason::kUnwanted);
  QuitIfEmpty();
}

void Supervisor::QuitIfEmpty() {
  if (!gangs_.empty()) return;
  launchers_.clear();
  cgroups_.reset();
  guard_.reset();
  loop_.Quit();
}

}  // namespace attune::gang
