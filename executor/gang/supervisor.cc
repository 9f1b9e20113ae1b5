#include "executor/gang/supervisor.h"

#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include <algorithm>
#include <future>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "executor/gang/elf_note.h"
#include "executor/gang/preparation.h"

namespace attune::gang {
namespace {

constexpr uint32_t kLauncherProtocol = 1;

}  // namespace

Supervisor::Supervisor(Options options, FactSink sink)
    : options_(std::move(options)), sink_(std::move(sink)) {}

OrError<std::unique_ptr<Supervisor>> Supervisor::Start(Options options, FactSink sink) {
  std::unique_ptr<Supervisor> supervisor(new Supervisor(std::move(options), std::move(sink)));
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    return Error{"this system cannot adopt orphaned processes (PR_SET_CHILD_SUBREAPER)"};
  }
  Supervisor* self = supervisor.get();
  std::promise<std::optional<Error>> started;
  self->thread_ = std::thread([self, &started] {
    pthread_setname_np(pthread_self(), "attune-gangs");
    OrError<std::unique_ptr<Guard>> guard = Guard::Start(self->loop_);
    const bool ok = guard.ok();
    if (ok) self->guard_ = std::move(guard.value());
    started.set_value(ok ? std::nullopt : std::optional(Error{guard.error()}));
    if (ok) self->loop_.Run();
  });
  if (auto error = started.get_future().get()) {
    self->thread_.join();
    return *std::move(error);
  }
  return supervisor;
}

Supervisor::~Supervisor() {
  if (!thread_.joinable()) return;
  loop_.Post([this] { ShutDown(); });
  thread_.join();
}

void Supervisor::Run(GangSpec spec) {
  loop_.Post([this, spec = std::move(spec)]() mutable { RunGang(std::move(spec)); });
}

void Supervisor::Cancel(const AttemptId& attempt, CancelReason reason) {
  loop_.Post([this, attempt, reason] {
    const auto found = gangs_.find(attempt);
    if (found != gangs_.end()) found->second->Cancel(reason);
  });
}

void Supervisor::Tell(const AttemptId& attempt, const Verdict& verdict) {
  loop_.Post([this, attempt, verdict] {
    const auto found = gangs_.find(attempt);
    if (found != gangs_.end()) found->second->Tell(verdict);
  });
}

void Supervisor::Yield(const AttemptId& attempt) {
  loop_.Post([this, attempt] {
    const auto found = gangs_.find(attempt);
    if (found != gangs_.end()) found->second->Yield();
  });
}

void Supervisor::ReadOn() {
  loop_.Post([this] {
    for (const auto& [attempt, gang] : gangs_) gang->ReadOn();
  });
}

void Supervisor::Warm(Program program) {
  loop_.Post([this, program = std::move(program)] {
    if (shutting_down_ || program.command.empty()) return;
    const auto path = LocateProgram(program, program.command[0]);
    if (!path.ok()) return;  // its first gang will say so where it is seen
    const auto launcher = LauncherFor(path.value(), program.environment);
    if (!launcher.ok()) spdlog::warn("{}", launcher.error());
  });
}

void Supervisor::RunGang(GangSpec spec) {
  const AttemptId attempt = spec.attempt;
  if (shutting_down_ || gangs_.contains(attempt)) return;
  const Gang::Services services{
      .loop = loop_,
      .guard = *guard_,
      .timing = options_.timing,
      .launcher_for = [this](const auto& program,
                             const auto& environment) { return LauncherFor(program, environment); },
      .facts = sink_,
      .may_read = options_.may_read,
      // Not at once: the gang is still in the call.
      .gone = [this](const AttemptId& id) { loop_.Post([this, id] { ForgetGang(id); }); }};
  Gang& gang =
      *gangs_.emplace(attempt, std::make_unique<Gang>(services, std::move(spec))).first->second;
  gang.Start();
}

OrError<Launcher*> Supervisor::LauncherFor(const std::filesystem::path& program,
                                           const EnvironmentChanges& environment) {
  if (NeedsFreshStart(environment)) return nullptr;
  OrError<ProgramIdentity> identity = Identify(program);
  if (!identity.ok()) return Error{identity.error()};
  ForgetUselessLaunchers();
  for (const auto& launcher : launchers_) {
    if (launcher->program() == identity.value() && launcher->death().empty()) return launcher.get();
  }
  if (ReadLauncherNote(program) != kLauncherProtocol) return nullptr;
  auto launcher = Launcher::Start(
      loop_, *guard_, identity.value(),
      options_.launcher_log_dir / (program.filename().string() + ".log"), options_.launcher);
  if (!launcher.ok()) return Error{launcher.error()};
  launchers_.push_back(std::move(launcher.value()));
  return launchers_.back().get();
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
  // Of one path the newest file stands last, and only it can have new gangs.
  std::set<std::filesystem::path> seen;
  std::vector<std::unique_ptr<Launcher>> kept;
  for (auto& launcher : launchers_ | std::views::reverse) {
    const bool dead = !launcher->death().empty();
    const bool outdated = !dead && !seen.insert(launcher->program().path).second;
    const bool useless = dead ? launcher->is_gone() : outdated;
    if (!useless || in_use(launcher.get())) kept.push_back(std::move(launcher));
  }
  std::ranges::reverse(kept);
  launchers_ = std::move(kept);
}

void Supervisor::ShutDown() {
  shutting_down_ = true;
  for (const auto& [id, gang] : gangs_) gang->Cancel(CancelReason::kUnwanted);
  QuitIfEmpty();
}

void Supervisor::QuitIfEmpty() {
  if (!gangs_.empty()) return;
  launchers_.clear();
  guard_.reset();
  loop_.Quit();
}

}  // namespace attune::gang
