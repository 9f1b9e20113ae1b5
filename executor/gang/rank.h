#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "channel/line_reader.h"
#include "channel/messages.h"
#include "executor/gang/descendants.h"
#include "executor/gang/socket_folder.h"
#include "executor/gang/spec.h"
#include "executor/processes/loop.h"
#include "system/spawn.h"
#include "system/unique_fd.h"

namespace attune::gang {

// One process of a gang: its channel and its exit. It knows nothing about the other ranks.
//
// If a descendant of the process has claimed the rank, that program speaks for it.
//
// Use on the loop's thread only.
class Rank : private Descendants::Owner {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void OnMessage(Rank& rank, channel::FromRank message) = 0;
    // The rank broke the protocol of the channel. Nothing more is read from it.
    virtual void OnBadLine(Rank& rank, const std::string& problem) = 0;
    // The process has ended, and all its messages were passed to OnMessage() before.
    virtual void OnExit(Rank& rank) = 0;
    // The process has ended, but its parent, the launcher, has not reported the exit status yet.
    virtual void OnUnexplained() = 0;
    // Whether more messages may be read now; if not, the owner calls ResumeReading() later.
    virtual bool MayRead() = 0;
    // The current start line of the rank, or the reason why no program may join it.
    virtual Result<channel::Start> StartLine(const Rank& rank) = 0;
    // A descendant that spoke for the rank, or the last one with its number, has exited.
    virtual void OnProgramLeft() = 0;
    // A descendant of the rank's process speaks for the rank from now on.
    virtual void OnClaimed(Rank& rank) = 0;
    // The verdict that rank 0 got at this step, if it has finished the step.
    virtual std::optional<channel::Action> ActionAt(int64_t step) const = 0;
  };

  // The parent of the process, which reaps it.
  enum class Parent { kThisProcess, kLauncher };

  Rank(Loop& loop, RankSlot slot, int world_size, Owner& owner);

  // Makes the channel and returns the worker's end.
  Result<UniqueFd> OpenChannel();

  // Listens for descendants of the process; see Descendants::Listen().
  Status Listen(SocketFolder& folder, std::chrono::milliseconds successor_grace) {
    return descendants_.Listen(folder, successor_grace);
  }
  const std::filesystem::path& path() const { return descendants_.path(); }  // empty: none

  // REQUIRES: OpenChannel() succeeded.
  void Attach(Child child, Parent parent);

  // Queues a line; never blocks.
  void Send(std::string_view line);

  // The launcher, its parent, has reported the exit status. nullopt: the launcher is gone, so this
  // process adopts the rank and reaps it.
  void OnLauncherReport(std::optional<ExitStatus> status);

  // Resumes reading after Owner::MayRead() had returned false.
  void ResumeReading();

  void Terminate();  // SIGTERM
  void Kill();

  const RankSlot& slot() const { return slot_; }
  pid_t pid() const { return child_.pid; }
  bool is_attached() const { return child_.pid != 0; }
  bool is_running() const { return is_attached() && !exit_; }
  const std::optional<ExitStatus>& exit() const { return exit_; }
  // The time from which other ranks wait for it in vain: its process has exited with status 0, or
  // the descendant that spoke for it has exited without a successor. nullopt: not known.
  std::optional<Loop::Clock::time_point> CountsAsLeftFrom() const;
  bool is_unexplained() const { return ended_at_ && !exit_; }
  // When its end was noticed; the exit status may become known later.
  const std::optional<Loop::Clock::time_point>& ended_at() const { return ended_at_; }
  bool was_killed() const { return killed_; }
  bool has_spoken() const { return has_spoken_; }

  // The last step that it has reported as finished; -1: none.
  int64_t step() const { return step_; }
  void set_step(int64_t step) { step_ = step; }

  // The ranks that it waits for, if its last message said so.
  const std::optional<channel::Waiting>& waiting() const { return waiting_; }
  void set_waiting(std::optional<channel::Waiting> waiting) { waiting_ = std::move(waiting); }

  // The reason why its program exits, if it has announced its exit; an empty string: no reason.
  const std::optional<std::string>& leaving() const { return leaving_; }
  void set_leaving(std::string message) { leaving_ = std::move(message); }

  // Its silence counts from now on, because it may have waited for another rank until now.
  void ExcuseSilence() { excused_until_ = Loop::Clock::now(); }
  Loop::Clock::time_point excused_until() const { return excused_until_; }

  // It may be silent for this duration from now on, until its next message.
  void ExpectSilence(std::chrono::milliseconds silence);
  Loop::Clock::time_point silent_until() const { return silent_until_; }
  // Whether reading is paused because of Owner::MayRead(), so that its silence does not count.
  bool is_reading_paused() const { return reading_paused_; }
  Loop::Clock::time_point last_heard() const { return last_heard_; }

 private:
  void WatchChannel();
  void OnChannel(uint32_t events);
  void OnPidfd();
  // Reads until no bytes are left or `bytes_max` is reached.
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
  std::optional<Loop::Clock::time_point> ended_at_;  // when its pidfd became readable
  bool orphaned_ = false;
  bool killed_ = false;
  bool has_spoken_ = false;
  bool is_ignored_ = false;  // input is dropped after a bad line
  bool reading_paused_ = false;
  Loop::Clock::time_point last_heard_;
  Loop::Clock::time_point silent_until_{};
  Loop::Clock::time_point excused_until_{};
  int64_t step_ = -1;
  std::optional<channel::Waiting> waiting_;
  std::optional<std::string> leaving_;
  bool trains_ = false;              // its own process has trained or reported
  bool own_process_speaks_ = false;  // no descendant has claimed the rank since its process spoke
  Descendants descendants_;
};

}  // namespace attune::gang
