#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "channel/launcher.h"
#include "channel/line_reader.h"
#include "channel/messages.h"
#include "system/unique_fd.h"
#include "trainable/gang/launcher.h"

namespace attune::inline sdk::trainable {

// A gang of workers of this program. They start together, and end together if one of them fails.
// The thread that calls Run() is their executor.
class Gang {
 public:
  struct Events {
    std::function<void(const channel::Report&)> on_report;
    std::function<void(const channel::Logged&)> on_logged;
    std::function<void(const channel::CheckpointSaved&)> on_checkpoint;
    std::function<void(int worker, pid_t pid)> on_started;
    // The worker has sent a message. From now on it may be silent for `silence`.
    std::function<void(int worker, std::chrono::milliseconds silence)> on_message;
    // The worker has exited with code 0.
    std::function<void(int worker)> on_left;
  };

  struct End {
    enum class Outcome { kFinished, kFailed, kStopped };
    Outcome outcome = Outcome::kFinished;
    // The other members are set only for kFailed.
    int worker = -1;     // the first worker that failed by itself; -1: no particular one
    bool threw = false;  // whether an exception of the program was the cause
    std::string message;
  };

  // `starts` are the start messages of the workers, in their order; `args` are their arguments. A
  // report that waits for a verdict is answered with `stop`. `launcher` must outlive the gang and
  // run no other gang at the same time. `drivers`, if not empty, has one descriptor for each
  // worker.
  Gang(Launcher& launcher, std::vector<channel::Start> starts, std::vector<std::string> args,
       Events events, std::vector<UniqueFd> drivers = {});

  // Starts the workers and runs until they have ended. When `stop_fd` becomes readable, it kills
  // all workers and the outcome is kStopped. Returns when no process of the gang is left, or
  // Launcher::kPatience after the start of the teardown. Call it only once.
  End Run(int stop_fd);

 private:
  struct Worker {
    channel::Start start;
    pid_t pid = 0;
    UniqueFd pidfd;
    UniqueFd channel;
    UniqueFd driver;  // closed after the worker has received it
    channel::LineReader lines;
    std::string unsent;
    std::optional<channel::Exited> exited;
    std::string error;  // text of its `error` message
    bool lost_peer = false;
    std::optional<Clock::time_point> suspected_at;

    bool is_running() const { return pid != 0 && !exited; }
    void Kill() const;
  };

  bool IsOver() const;
  void Wait(int stop_fd);
  void RequestNextFork();
  void ReadLauncher();
  void OnForked(const channel::Forked& forked, UniqueFd pidfd);
  void OnExited(const channel::Exited& exited);
  void OnChannel(Worker& worker, short events);
  // Returns false if there is nothing more to read now.
  bool Read(Worker& worker);
  void Send(Worker& worker, const std::string& line);

  void Handle(Worker& worker, const channel::Rendezvous& rendezvous);
  void Handle(Worker& worker, const channel::Report& report);
  void Handle(Worker& worker, const channel::Logged& logged);
  void Handle(Worker& worker, const channel::CheckpointSaved& checkpoint);
  void Handle(Worker& worker, const channel::ErrorText& error);
  void Handle(Worker& worker, const channel::Heartbeat& heartbeat);
  void Handle(Worker&, const channel::Progress&) {}
  void Handle(Worker&, const channel::Waiting&) {}
  void Handle(Worker&, const channel::Join&) {}
  void Handle(Worker&, const channel::Claim&) {}
  void Handle(Worker&, const channel::Leaving&) {}
  void Handle(Worker&, const channel::Done&) {}
  void Handle(Worker&, const channel::Unknown&) {}
  int IndexOf(const Worker& worker) const { return static_cast<int>(&worker - workers_.data()); }

  void Suspect(Worker& worker);
  void Blame();
  void Fail(const Worker& worker, std::string message, bool threw = false);
  void TearDown(End end);

  Launcher& launcher_;
  std::vector<std::string> args_;
  Events events_;
  std::vector<Worker> workers_;
  std::size_t forked_ = 0;
  bool fork_pending_ = false;
  bool launcher_gone_ = false;
  std::vector<Worker*> suspects_;  // in the order of their failures
  std::optional<Clock::time_point> blame_at_;
  std::optional<Clock::time_point> give_up_at_;  // set when the teardown starts
  End end_;
};

}  // namespace attune::inline sdk::trainable
