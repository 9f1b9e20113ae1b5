#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "channel/launcher.h"
#include "channel/line_reader.h"
#include "channel/messages.h"
#include "system/unique_fd.h"
#include "trainable/start/launcher.h"

namespace attune::inline sdk::trainable {

// A launcher of ranks that was forked from this very process, which may do what it likes from then
// on: start threads, use tensors, run gangs of any size one after the other.
//
// It ends with this process, however that ends, and takes all with it that its ranks have started.
// When it is itself killed, by SIGKILL, its ranks and what is in their process group go with it,
// and a process that has left that group stays.
class LocalLauncher {
 public:
  // Returns here with the launcher, and in each of its ranks with what the rank is to do. Ranks
  // have the signal mask `rank_signals`. Throws Error.
  //
  // REQUIRES: one thread, no tensor operation so far.
  static std::variant<LocalLauncher, Role> Fork(const sigset_t& rank_signals);

  LocalLauncher(LocalLauncher&&) = default;
  // Returns when no process of it is left, or kPatience has passed.
  ~LocalLauncher();

  // One that another process has forked, and reaps; it serves the other end of `socket`.
  LocalLauncher(pid_t pid, UniqueFd pidfd, UniqueFd socket)
      : pid_(pid), pidfd_(std::move(pidfd)), socket_(std::move(socket)) {}

  static constexpr std::chrono::seconds kPatience{5};

  int socket() const { return socket_.get(); }

 private:
  pid_t pid_;
  UniqueFd pidfd_;
  UniqueFd socket_;
};

// One gang as one thing, with this thread as its executor: ranks are told the same, and torn down
// together when one of them fails.
class LocalGang {
 public:
  struct Events {
    std::function<void(const channel::Report&)> report;
    std::function<void(const channel::Logged&)> logged;
    std::function<void(const channel::CheckpointSaved&)> checkpoint;
    std::function<void(int index, pid_t pid)> started;
    // It said anything, and may say nothing more for as long.
    std::function<void(int index, std::chrono::milliseconds silence)> heard;
    // Its process has ended in good order, with exit code 0.
    std::function<void(int index)> left;
  };

  struct End {
    enum class Outcome { kFinished, kFailed, kStopped };
    Outcome outcome = Outcome::kFinished;
    int rank = -1;        // of kFailed: the first that failed by itself; -1: none in particular
    bool threw = false;   // of kFailed: by an exception of the program, and not of its process
    std::string message;  // of kFailed
  };

  // `ranks` are what they are told, rank 0 first; `args` their arguments. A report that waits is
  // answered with `stop`. `launcher` must outlive the gang, and run no other meanwhile. Each rank
  // gets its descriptor of `drivers`, unless there are none.
  LocalGang(LocalLauncher& launcher, std::vector<channel::Start> ranks,
            std::vector<std::string> args, Events events, std::vector<UniqueFd> drivers = {});

  // Starts the ranks and watches them to their end. When `stop_fd` becomes readable, at whatever
  // moment, all of it is torn down: kStopped. Returns when no process of the gang is left, or
  // LocalLauncher::kPatience after it was told to end. Once only.
  End Run(int stop_fd);

 private:
  using Clock = std::chrono::steady_clock;

  struct Rank {
    channel::Start start;
    pid_t pid = 0;
    UniqueFd pidfd;
    UniqueFd channel;
    UniqueFd driver;  // until it has it
    channel::LineReader lines;
    std::string unsent;
    std::optional<channel::Exited> exited;
    std::string error;  // of its `error` message, or what was wrong with what it wrote
    bool lost_peer = false;
    std::optional<Clock::time_point> suspected_at;

    bool is_running() const { return pid != 0 && !exited; }
  };

  bool IsOver() const;
  void Wait(int stop_fd);
  void AskForNext();
  void OnLauncher();
  void OnForked(const channel::Forked& forked, UniqueFd pidfd);
  void OnExited(const channel::Exited& exited);
  void OnChannel(Rank& rank, short events);
  // False when nothing is left to read now.
  bool Read(Rank& rank);
  void Send(Rank& rank, const std::string& line);

  void On(Rank& rank, const channel::Rendezvous& rendezvous);
  void On(Rank& rank, const channel::Report& report);
  void On(Rank& rank, const channel::Logged& logged);
  void On(Rank& rank, const channel::CheckpointSaved& checkpoint);
  void On(Rank& rank, const channel::ErrorText& error);
  void On(Rank& rank, const channel::Heartbeat& heartbeat);
  template <typename Other>
  void On(Rank&, const Other&) {}
  int IndexOf(const Rank& rank) const { return static_cast<int>(&rank - ranks_.data()); }

  void Suspect(Rank& rank);
  void Blame();
  void TearDown(End end);

  LocalLauncher& launcher_;
  std::vector<std::string> args_;
  Events events_;
  std::vector<Rank> ranks_;
  std::size_t forked_ = 0;
  bool fork_pending_ = false;
  bool launcher_gone_ = false;
  std::vector<Rank*> suspects_;  // in the order in which they were seen to fail
  std::optional<Clock::time_point> blame_at_;
  std::optional<Clock::time_point> give_up_at_;  // once it is being torn down
  End end_;
};

}  // namespace attune::inline sdk::trainable
