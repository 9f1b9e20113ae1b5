// Ranks in containers. A rank's process is the program that waits for the container, such as
// `podman run`. If that ends for any reason, a follow-up removes the container, even if this
// process was killed.

#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "executor/gang/gang.h"
#include "executor/processes/follow_up.h"
#include "logging/log.h"
#include "system/random_word.h"

namespace attune::gang {
namespace {

namespace fs = std::filesystem;

// After this time, the gang ends without its containers: the engine hangs.
constexpr std::chrono::seconds kRemovedWithin{60};
// The exit code of `podman run` and `docker run` if they could not start the container.
constexpr int kEngineFailed = 125;
constexpr size_t kNameBytes = 4;  // random ones

std::string NewName(const AttemptId& attempt, int rank) {
  return "attune-s" + std::to_string(attempt.sweep) + "-" + std::to_string(attempt.trial) + "-" +
         std::to_string(attempt.attempt) + "-r" + std::to_string(rank) + "-" +
         RandomWord(kNameBytes);
}

fs::path StartFolder(const GangSpec& spec) {
  std::error_code ignored;
  return spec.RankDirectory().empty() ? fs::current_path(ignored) : spec.RankDirectory();
}

std::vector<ContainerMount> MountsOf(const GangSpec& spec, const fs::path& sockets) {
  std::map<fs::path, bool> read_only;  // by path, so outer folders come first
  for (const fs::path& folder : {spec.attempt_dir, spec.checkpoint_dir, spec.files_dir, sockets,
                                 spec.code ? spec.work_dir : StartFolder(spec)})
    read_only.emplace(folder, false);
  for (const fs::path& copy : spec.container->read_only) read_only.emplace(copy, true);
  if (spec.resume && spec.HasRankZero()) read_only.emplace(spec.resume->path, true);
  std::vector<ContainerMount> mounts;
  for (const auto& [path, is_read_only] : read_only) mounts.push_back({path, is_read_only});
  return mounts;
}

void KillAndReap(const Child& child) {
  syscall(SYS_pidfd_send_signal, child.pidfd.get(), SIGKILL, nullptr, 0);
  siginfo_t info{};
  waitid(P_PIDFD, static_cast<id_t>(child.pidfd.get()), &info, WEXITED);
}

}  // namespace

bool Gang::HasNamedContainers() const {
  return spec_.container && spec_.container->found->engine.has_named_containers();
}

Result<Child> Gang::SpawnInContainer(const Rank& rank, const Outlets& outlets) {
  if (rank.path().empty())
    return Error{ErrorCode::kUnavailable,
                 "a program in a container needs a socket in /tmp, which this executor could not "
                 "make; its log says why"};
  const ContainerImage& image = *spec_.container->found;
  const ContainerRun run{.image = image,
                         .name = NewName(spec_.attempt, rank.slot().rank),
                         .label = ToString(spec_.attempt),
                         .argv = preparation_.argv,
                         .folder = StartFolder(spec_),
                         .mounts = MountsOf(spec_, rank.path().parent_path()),
                         .environment = BuildEnvironment(rank),
                         .uses_gpus = !rank.slot().gpus.empty()};
  const EngineCommand command = RunCommand(run);
  std::vector<std::string> argv{command.program.string()};
  argv.insert(argv.end(), command.arguments.begin(), command.arguments.end());
  if (HasNamedContainers()) {
    if (Status added = services_.containers.Add(run.name, image.engine); !added.ok())
      return added.error();
  }
  Result<Child> child = Spawn({.program = command.program,
                               .argv = std::move(argv),
                               .environment = ProgramEnvironment(command.environment),
                               .working_directory = run.folder,
                               .output_fd = outlets.log.get(),
                               .process_group = group_,
                               .cgroup = cgroup_ ? cgroup_->descriptor() : -1,
                               .announce_fd = services_.guard.announce_fd()});
  if (!HasNamedContainers()) return child;
  if (!child.ok()) {
    services_.containers.Forget(run.name);
    return child;
  }
  Result<Child> removal =
      StartAfterExit(child->pidfd.get(), command.program, RemoveArguments({run.name}));
  if (!removal.ok()) {
    KillAndReap(*child);
    return removal.error();
  }
  Loop::Subscription ended = services_.loop.Watch(
      removal->pidfd.get(), EPOLLIN, [this, name = run.name](uint32_t) { OnRemoved(name); });
  containers_.push_back({run.name, std::move(*removal), std::move(ended)});
  return child;
}

void Gang::OnRemoved(std::string name) {
  const auto container = std::ranges::find(containers_, name, &NamedContainer::name);
  const std::optional<ExitStatus> status = Reap(container->removal.pidfd.get());
  containers_.erase(container);
  if (status && status->ok()) {
    services_.containers.Forget(name);
  } else {
    logging::Warn("{} could not remove the container {}; the next start of this executor will try",
                  spec_.container->found->engine.program.string(), name);
  }
  ConcludeIfGone();
}

bool Gang::AreContainersRemoved() {
  if (containers_.empty()) return true;
  if (!removal_timeout_) {
    removal_timeout_ = services_.loop.CallAfter(kRemovedWithin, [this] {
      logging::Error("{} containers of {} were not removed within {} s; is the engine broken?",
                     containers_.size(), ToString(spec_.attempt), kRemovedWithin.count());
      containers_.clear();
      ConcludeIfGone();
    });
  }
  return false;
}

// A container that did not start says nothing about the program.
void Gang::BlameEngine(Failure& failure) const {
  const bool has_started =
      std::ranges::any_of(ranks_, [](const auto& rank) { return rank->has_spoken(); });
  if (!HasNamedContainers() || has_started || failure.kind != FailureKind::kExit ||
      failure.exit_code != kEngineFailed)
    return;
  failure.kind = FailureKind::kEnvironment;
  failure.message = "the container of rank " + std::to_string(failure.rank) +
                    " did not start on this host; the rank's log has the error of " +
                    std::string(Name(spec_.container->found->engine.kind));
}

}  // namespace attune::gang
