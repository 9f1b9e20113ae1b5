#include "trainable/start/standalone.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <regex>

#include "attune/checkpoint.h"
#include "attune/error.h"
#include "trainable/channel/messages.h"

namespace attune::trainable {
namespace {

namespace fs = std::filesystem;

constexpr int kInterrupted = 130;  // what shells give for a program ended by Ctrl-C

struct Worker {
  pid_t pid = 0;
  UniqueFd channel;
  UniqueFd pidfd;
  LineBuffer lines;
  std::string error;  // of its `error` message
};

// One more than the attempts whose checkpoints lie in the folder, so that no name is taken.
int NextAttempt(const std::string& checkpoint_dir) {
  int attempt = 1;
  std::error_code absent;  // a folder that does not exist yet has no attempts
  for (const auto& entry : fs::directory_iterator(checkpoint_dir, absent)) {
    static const std::regex kName("step-\\d+-attempt-(\\d{1,9})");
    std::smatch match;
    const std::string name = entry.path().filename().string();
    if (std::regex_match(name, match, kName)) attempt = std::max(attempt, std::stoi(match[1]) + 1);
  }
  return attempt;
}

Start StartOf(const StandaloneOptions& options, int rank) {
  Start start{.sweep = "by-hand",
              .rank = rank,
              .world_size = options.workers,
              .local_rank = rank,
              .local_world_size = options.workers,
              .device = options.cuda ? "cuda:" + std::to_string(rank) : "cpu",
              .cpus = options.cpus_per_worker,
              .seed = options.seed,
              .config = options.config,
              .max_step = options.max_step,
              .checkpoint_every = options.checkpoint_every,
              .checkpoint_dir = options.checkpoint_dir};
  if (!options.checkpoint_dir.empty()) start.attempt = NextAttempt(options.checkpoint_dir);
  if (!options.resume.empty()) {
    start.resume = {CheckpointReader(options.resume).step(), fs::absolute(options.resume)};
  }
  return start;
}

std::string Describe(int status) {
  if (WIFSIGNALED(status)) {
    return std::string("killed by signal ") + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  }
  return "exit code " + std::to_string(WEXITSTATUS(status));
}

bool IsReadable(const UniqueFd& fd) {
  pollfd polled{fd.get(), POLLIN, 0};
  return poll(&polled, 1, /*timeout=*/0) == 1;
}

// The executor of one gang, in one thread.
class LocalGang {
 public:
  explicit LocalGang(const StandaloneOptions& options) : options_(options) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals_, &signals_before_);
    signal_fd_.reset(signalfd(-1, &signals_, SFD_CLOEXEC));
    if (!signal_fd_.valid()) ThrowErrno("signalfd");
    workers_.resize(options.workers);
  }

  // A role in each worker, nothing in the parent.
  std::optional<Role> Fork() {
    const pid_t parent = getpid();
    std::cout.flush();
    std::fflush(nullptr);
    for (int rank = 0; rank < options_.workers; ++rank) {
      auto [ours, theirs] = StreamSocketPair();
      const pid_t pid = fork();
      if (pid < 0) {
        KillAll();
        ThrowErrno("fork");
      }
      if (pid == 0) {
        DieWithParent(parent);
        setpgid(0, 0);  // Ctrl-C goes to the parent, which ends the gang as one
        sigprocmask(SIG_SETMASK, &signals_before_, nullptr);
        workers_.clear();
        signal_fd_.reset();
        return Role{.channel = std::move(theirs), .args = options_.args};
      }
      setpgid(pid, pid);
      Worker& worker = workers_[rank];
      worker.pid = pid;
      worker.channel = std::move(ours);
      worker.pidfd = OpenPidfd(pid);
      WriteAll(worker.channel.get(), ToLine(StartOf(options_, rank)));
    }
    return std::nullopt;
  }

  int Supervise() {
    while (running_ranks() > 0) {
      std::vector<pollfd> polled = {{signal_fd_.get(), POLLIN, 0}};
      for (const Worker& worker : workers_) {
        polled.push_back({worker.channel.get(), POLLIN, 0});
        polled.push_back({worker.pidfd.get(), POLLIN, 0});
      }
      if (poll(polled.data(), polled.size(), -1) < 0) continue;
      if (polled[0].revents != 0) {
        KillAll();
        std::cerr << "interrupted after step " << step_ << std::endl;
        return kInterrupted;
      }
      for (int rank = 0; rank < options_.workers; ++rank) {
        if (polled[1 + 2 * rank].revents != 0) ReadFrom(rank);
        if (polled[2 + 2 * rank].revents != 0 && !Reap(rank)) return 1;
      }
    }
    std::cout << "finished after step " << step_;
    if (!checkpoint_.empty()) std::cout << "; checkpoint " << checkpoint_;
    std::cout << std::endl;
    return 0;
  }

 private:
  int running_ranks() const {
    return static_cast<int>(std::count_if(workers_.begin(), workers_.end(),
                                          [](const Worker& w) { return w.pid != 0; }));
  }

  void ReadFrom(int rank) {
    Worker& worker = workers_[rank];
    try {
      if (!worker.lines.ReadFrom(worker.channel.get())) worker.channel.reset();
      while (const auto line = worker.lines.Next()) {
        std::visit([&](const auto& message) { On(rank, message); }, ParseFromRank(*line));
      }
    } catch (const Error& error) {
      worker.error = error.what();
      worker.channel.reset();
      kill(-worker.pid, SIGKILL);
    }
  }

  void On(int, const std::monostate&) {}
  void On(int, const ProgressLine&) {}
  void On(int, const DoneLine&) {}
  void On(int rank, const ErrorLine& error) { workers_[rank].error = error.message; }
  void On(int, const CheckpointInfo& checkpoint) { checkpoint_ = checkpoint.path.string(); }

  void On(int rank, const Rendezvous& rendezvous) {
    for (int other = 0; other < options_.workers; ++other) {
      if (other != rank) WriteAll(workers_[other].channel.get(), ToLine(rendezvous));
    }
  }

  void On(int rank, const ReportLine& report) {
    step_ = report.step;
    std::cout << "step " << report.step << "  " << ToText(report.metrics) << "  ("
              << static_cast<std::int64_t>(report.seconds * 10) / 10.0 << " s)" << std::endl;
    if (report.waits) {
      const Verdict stop{.step = report.step, .action = Verdict::Action::kStop};
      WriteAll(workers_[rank].channel.get(), ToLine(stop));
    }
  }

  // False when the rank has failed, and with it the gang.
  bool Reap(int rank) {
    Worker& worker = workers_[rank];
    int status = 0;
    if (waitpid(worker.pid, &status, WNOHANG) != worker.pid) return true;
    kill(-worker.pid, SIGKILL);  // what it started goes with it
    // Its last words are in the socket by now. The stream need not end with them: what it has
    // forked may hold the other end.
    while (worker.channel.valid() && IsReadable(worker.channel)) ReadFrom(rank);
    worker.pid = 0;
    worker.pidfd.reset();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    KillAll();
    std::cerr << "rank " << rank << " failed: " << Describe(status)
              << (worker.error.empty() ? "" : ": " + worker.error) << std::endl;
    return false;
  }

  void KillAll() {
    for (const Worker& worker : workers_) {
      if (worker.pid != 0) kill(-worker.pid, SIGKILL);
    }
    for (Worker& worker : workers_) {
      if (worker.pid != 0) waitpid(worker.pid, nullptr, 0);
      worker.pid = 0;
    }
  }

  const StandaloneOptions& options_;
  sigset_t signals_;
  sigset_t signals_before_;
  UniqueFd signal_fd_;
  std::vector<Worker> workers_;
  std::int64_t step_ = 0;
  std::string checkpoint_;
};

}  // namespace

Role RunStandalone(const StandaloneOptions& options) {
  LocalGang gang(options);
  if (auto role = gang.Fork()) return std::move(*role);
  return {.exit_code = gang.Supervise()};
}

}  // namespace attune::trainable
