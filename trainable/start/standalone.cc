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
#include "trainable/start/local_gang.h"

namespace attune::inline sdk::trainable {
namespace {

namespace fs = std::filesystem;

// What shells give for a program that a signal ended, less the signal's number.
constexpr int kSignalled = 128;

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

// The signals that end a gang by hand, as a descriptor: from here on none is missed, and none ends
// this process before its gang. Ctrl-C and SIGTERM count even where whoever started the program
// ignores or blocks them, as shells do for what runs in the background; SIGHUP does unless it is
// ignored, as by nohup.
class EndingSignals {
 public:
  EndingSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    struct sigaction hangup {};
    sigaction(SIGHUP, nullptr, &hangup);
    if (hangup.sa_handler != SIG_IGN) sigaddset(&signals_, SIGHUP);
    // One that is ignored reaches the descriptor all the same, since it is blocked.
    sigprocmask(SIG_BLOCK, &signals_, &before_);
    fd_.reset(signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_) ThrowErrno("signalfd");
  }

  int fd() const { return fd_.get(); }
  const sigset_t& mask_before() const { return before_; }

  // The one that came first. REQUIRES: the descriptor was readable.
  int Take() {
    signalfd_siginfo info{};
    return read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                              : SIGTERM;
  }

  // Back to what they were.
  void Release() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t signals_;
  sigset_t before_;
  UniqueFd fd_;
};

int Supervise(LocalLauncher launcher, const StandaloneOptions& options,
              std::vector<channel::Start> starts, EndingSignals& signals) {
  std::int64_t step = 0;
  std::string checkpoint;
  LocalGang::Events events{
      .report =
          [&](const channel::Report& report) {
            step = report.step;
            std::cout << "step " << step << "  "
                      << ToText({report.metrics.begin(), report.metrics.end()}) << "  ("
                      << static_cast<std::int64_t>(report.seconds * 10) / 10.0 << " s)"
                      << std::endl;
          },
      .logged =
          [](const channel::Logged& logged) {
            std::ostringstream at;
            at << std::setprecision(12) << logged.step;
            std::cout << "at step " << at.str() << "  "
                      << ToText({logged.metrics.begin(), logged.metrics.end()}) << std::endl;
          },
      .checkpoint = [&](const channel::CheckpointSaved& saved) { checkpoint = saved.path; }};
  LocalGang gang(launcher, std::move(starts), options.args, std::move(events));
  const LocalGang::End end = gang.Run(signals.fd());
  switch (end.outcome) {
    case LocalGang::End::Outcome::kFinished:
      std::cout << "finished after step " << step
                << (checkpoint.empty() ? "" : "; checkpoint " + checkpoint) << std::endl;
      signals.Release();
      return 0;
    case LocalGang::End::Outcome::kFailed:
      std::cerr << (end.rank < 0 ? "the workers" : "rank " + std::to_string(end.rank))
                << " failed: " << end.message << std::endl;
      signals.Release();
      return 1;
    case LocalGang::End::Outcome::kStopped:
      break;
  }
  // The signals stay blocked: another Ctrl-C changes nothing about what this one has ended.
  const int signal = signals.Take();
  std::cerr << "interrupted after step " << step << std::endl;
  return kSignalled + signal;
}

}  // namespace

Role RunStandalone(const StandaloneOptions& options) {
  std::vector<channel::Start> starts = StartsOf(options);
  EndingSignals signals;
  auto forked = LocalLauncher::Fork(signals.mask_before());
  if (auto* rank = std::get_if<Role>(&forked)) return std::move(*rank);
  return {.exit_code = Supervise(std::move(std::get<LocalLauncher>(forked)), options,
                                 std::move(starts), signals)};
}

}  // namespace attune::inline sdk::trainable
