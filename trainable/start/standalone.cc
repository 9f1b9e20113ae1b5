#include "trainable/start/standalone.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <utility>

#include "attune/checkpoint.h"
#include "attune/error.h"
#include "system/unique_fd.h"
#include "trainable/channel/messages.h"
#include "trainable/checkpoints/unfinished.h"
#include "trainable/gang/gang.h"

namespace attune::inline sdk::trainable {
namespace {

namespace fs = std::filesystem;

// Shells report exit code 128 + N for a program that signal N ended.
constexpr int kSignalExitBase = 128;

std::vector<channel::Start> StartsOf(const StandaloneOptions& options) {
  channel::Start start{.sweep = "by-hand",
                       .world_size = options.workers,
                       .local_world_size = options.workers,
                       .cpus = options.cpus_per_worker,
                       .seed = options.seed,
                       .parameters = ToParameters(options.config),
                       .max_step = options.max_step,
                       .checkpoint_every = options.checkpoint_every,
                       .checkpoint_dir = options.checkpoint_dir};
  if (!options.checkpoint_dir.empty()) start.attempt = NextAttempt(options.checkpoint_dir);
  if (!options.resume.empty()) {
    start.resume = {CheckpointReader(options.resume).time(), fs::absolute(options.resume), ""};
  }
  std::vector<channel::Start> starts(options.workers, start);
  for (int rank = 0; rank < options.workers; ++rank) {
    starts[rank].rank = starts[rank].local_rank = rank;
    if (options.cuda) starts[rank].device = "cuda:" + std::to_string(rank);
  }
  return starts;
}

// The signals that end a gang run by hand, as a descriptor. From its creation on, none is missed,
// and none ends this process before its gang. Ctrl-C and SIGTERM count even if they were ignored or
// blocked at the start, as in background jobs of shells. SIGHUP counts unless it is ignored, as
// under nohup.
class TerminationSignals {
 public:
  TerminationSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    struct sigaction hangup {};
    sigaction(SIGHUP, nullptr, &hangup);
    if (hangup.sa_handler != SIG_IGN) sigaddset(&signals_, SIGHUP);
    // Blocked signals reach the descriptor even if they are ignored.
    sigprocmask(SIG_BLOCK, &signals_, &previous_mask_);
    fd_.reset(signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_) ThrowErrno("signalfd");
  }

  int fd() const { return fd_.get(); }
  const sigset_t& previous_mask() const { return previous_mask_; }

  // Returns the first signal. REQUIRES: the descriptor is readable.
  int Take() {
    signalfd_siginfo info{};
    return read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                              : SIGTERM;
  }

  // Restores the signal mask.
  void Release() { sigprocmask(SIG_SETMASK, &previous_mask_, nullptr); }

 private:
  sigset_t signals_;
  sigset_t previous_mask_;
  UniqueFd fd_;
};

int Supervise(Launcher launcher, const StandaloneOptions& options,
              std::vector<channel::Start> starts, TerminationSignals& signals) {
  std::int64_t step = 0;
  std::string checkpoint;
  Gang::Events events{
      .on_report =
          [&](const channel::Report& report) {
            step = report.step;
            std::cout << "step " << step << "  "
                      << ToText({report.metrics.begin(), report.metrics.end()}) << "  ("
                      << static_cast<std::int64_t>(report.seconds * 10) / 10.0 << " s)"
                      << std::endl;
          },
      .on_logged =
          [](const channel::Logged& logged) {
            std::ostringstream step_text;
            step_text << std::setprecision(12) << logged.step;
            std::cout << "at step " << step_text.str() << "  "
                      << ToText({logged.metrics.begin(), logged.metrics.end()}) << std::endl;
          },
      .on_checkpoint = [&](const channel::CheckpointSaved& saved) { checkpoint = saved.path; }};
  Gang gang(launcher, std::move(starts), options.args, std::move(events));
  const Gang::End end = gang.Run(signals.fd());
  switch (end.outcome) {
    case Gang::End::Outcome::kFinished:
      std::cout << "finished after step " << step
                << (checkpoint.empty() ? "" : "; checkpoint " + checkpoint) << std::endl;
      signals.Release();
      return 0;
    case Gang::End::Outcome::kFailed:
      std::cerr << (end.worker < 0 ? "the workers" : "rank " + std::to_string(end.worker))
                << " failed: " << end.message << std::endl;
      signals.Release();
      return 1;
    case Gang::End::Outcome::kStopped:
      break;
  }
  // The signals stay blocked, so another Ctrl-C changes nothing.
  const int signal = signals.Take();
  std::cerr << "interrupted after step " << step << std::endl;
  return kSignalExitBase + signal;
}

}  // namespace

std::variant<int, ForkedWorker> RunStandalone(const StandaloneOptions& options) {
  std::vector<channel::Start> starts = StartsOf(options);
  TerminationSignals signals;
  auto forked = Launcher::Fork(signals.previous_mask());
  if (auto* worker = std::get_if<ForkedWorker>(&forked)) return std::move(*worker);
  return Supervise(std::move(std::get<Launcher>(forked)), options, std::move(starts), signals);
}

}  // namespace attune::inline sdk::trainable
