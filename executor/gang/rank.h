#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "channel/line_reader.h"
#include "channel/messages.h"
#include "executor/gang/descendants.h"
#include "executor/gang/spec.h"
#include "executor/processes/loop.h"
#include "system/spawn.h"
#include "system/unique_fd.h"

namespace attune::gang {

// One process of a gang: its channel, and how it ends. Knows nothing of its peers.
//
// If a program below the process has claimed the rank, that program speaks for it.
//
// Used on the loop's thread only.
class Rank : private Descendants::Owner {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void OnMessage(Rank& rank, channel::FromRank message) = 0;
    // The rank wrote what is not the channel's language. Nothing more is read from it.
    virtual void OnBadLine(Rank& rank, const std::string& problem) = 0;
    // The process has ended; all that it wrote has been handed to OnMessage before.
    virtual void OnExit(Rank& rank) = 0;
    // The process has ended; how, the launcher is yet to say, which is its parent.
    virtual void OnUnexplained() = 0;
    // Whether there is room for more messages now; if not, ReadOn() follows.
    virtual bool MayRead() = 0;
    // The start line of the rank as it is now, or why no program may join it.
    virtual Result<channel::Start> StartLine(const Rank& rank) = 0;
    // A program below the rank's process, which spoke for the rank or had its place, has left.
    virtual void OnProgramLeft() = 0;
    // A program below the rank's process speaks for the rank from now on.
    virtual void OnClaimed(Rank& rank) = 0;
    // What rank 0 was told at this step, if it has finished the step.
    virtual std::optional<channel::Action> ActionAt(int64_t step) const = 0;
  };

  // Who learns how the process ended.
  enum class Parent { kThisProcess, kLauncher };

  Rank(Loop& loop, RankSlot slot, int world_size, Owner& owner);

  // Makes the channel; returns the worker's end.
  Result<UniqueFd> OpenChannel();

  // Listens at this path for programs below the process.
  Status ListenAt(std::filesystem::path path, std::chrono::milliseconds successor_grace) {
    return descendants_.Listen(std::move(path), successor_grace);
  }
  const std::filesystem::path& path() const { return descendants_.path(); }  // empty: none

  // REQUIRES: OpenChannel() succeeded.
  void Attach(Child child, Parent parent);

  // Queues a line; it is never waited for.
  void Send(std::string_view line);

  // For a rank whose parent is a launcher. Without a status, the launcher is gone and the rank has
  // become, or will become, this process's to reap.
  void OnLauncherReport(std::optional<ExitStatus> status);

  // Reads its channel again, where that was left off because there was no room for more.
  void ReadOn();

  void Terminate();  // SIGTERM
  void Kill();

  const RankSlot& slot() const { return slot_; }
  pid_t pid() const { return child_.pid; }
  bool is_attached() const { return child_.pid != 0; }
  bool is_running() const { return is_attached() && !exit_; }
  const std::optional<ExitStatus>& exit() const { return exit_; }
  // From when on others wait for it in vain: its process has exited with 0, or the program below
  // that spoke for it has left, without another one. Empty: not known.
  std::optional<Loop::Clock::time_point> LeftFrom() const;
  bool is_unexplained() const { return ended_at_ && !exit_; }
  // When its end was seen; how it ended may become known later.
  const std::optional<Loop::Clock::time_point>& ended_at() const { return ended_at_; }
  bool was_killed() const { return killed_; }
  bool has_spoken() const { return spoken_; }

  // The last step that it has finished; -1: it has not said so of any.
  int64_t step() const { return step_; }
  void set_step(int64_t step) { step_ = step; }

  // The ranks that it has been waiting for, if it said so last.
  const std::optional<channel::Waiting>& waiting() const { return waiting_; }
  void set_waiting(std::optional<channel::Waiting> waiting) { waiting_ = std::move(waiting); }

  // Why its program ends, if it says that it does; empty text: not known.
  const std::optional<std::string>& leaving() const { return leaving_; }
  void set_leaving(std::string message) { leaving_ = std::move(message); }

  // Counts its silence from now on: it may have waited for another rank until now.
  void ExcuseSilence() { excused_until_ = Loop::Clock::now(); }
  Loop::Clock::time_point excused_until() const { return excused_until_; }

  // From now on it may be silent for as long; until it says something else.
  void ExpectSilence(std::chrono::milliseconds silence);
  Loop::Clock::time_point silent_until() const { return silent_until_; }
  // What it says is not read for want of room; its silence is not its own.
  bool is_left_unread() const { return left_unread_; }
  Loop::Clock::time_point last_heard() const { return last_heard_; }

 private:
  void WatchChannel();
  void OnChannel(uint32_t events);
  void OnPidfd();
  // Reads until nothing is left or `bytes_max`.
  void Read(size_t bytes_max);
  void Flush();
  void Finish(ExitStatus status);

  Result<channel::Start> StartLine() override { return owner_.StartLine(*this); }
  pid_t OwnSpeaker() const override { return trains_ ? child_.pid : 0; }
  void OnClaimed() override;
  void OnProgramLeft() override { owner_.OnProgramLeft(); }
  void OnDescendantMessage(channel::FromRank message) override;
  void OnDescendantBadLine(const std::string& problem) override;
  bool MayReadDescendants() override;
  std::optional<channel::Action> ActionAt(int64_t step) const override {
    return owner_.ActionAt(step);
  }

  Loop& loop_;
  RankSlot slot_;
  Owner& owner_;
  Parent parent_ = Parent::kThisProcess;
  Child child_;
  UniqueFd channel_;
  Loop::Subscription channel_watch_;
  Loop::Subscription exit_watch_;
  channel::LineReader lines_;
  std::string unsent_;
  std::optional<ExitStatus> exit_;
  std::optional<Loop::Clock::time_point> ended_at_;  // as its pidfd says
  bool orphaned_ = false;
  bool killed_ = false;
  bool spoken_ = false;
  bool deaf_ = false;  // after a bad line
  bool left_unread_ = false;
  Loop::Clock::time_point last_heard_;
  Loop::Clock::time_point silent_until_{};
  Loop::Clock::time_point excused_until_{};
  int64_t step_ = -1;
  std::optional<channel::Waiting> waiting_;
  std::optional<std::string> leaving_;
  bool trains_ = false;              // its own process has trained or reported
  bool own_process_speaks_ = false;  // and no program below has claimed the rank since
  Descendants descendants_;
};

}  // namespace attune::gang
