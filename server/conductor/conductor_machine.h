#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "server/conductor/mind.h"
#include "server/conductor/queue.h"
#include "server/conductor/submissions.h"
#include "server/store/event_store.h"

namespace attune::server {

// A snapshot is written after so many events and at the end, so that a start replays no more.
inline constexpr uint64_t kSnapshotEvents = 200'000;

// While the store refuses, it is asked this often whether it still does.
inline constexpr int64_t kProbeIntervalUs = 500'000;

// The time of the log continues at the clock's pace after a start. It counts the time since the
// last event if that is at most this long. If it seems longer, or negative, the clock may be wrong:
// the time of the log continues from its last event, and people see it with an offset.
inline constexpr int64_t kClockGapMaxUs = int64_t{24} * 3600 * 1'000'000;

// So much may the clock differ from the time that people see before that is adjusted.
inline constexpr int64_t kClockToleranceUs = 1'000'000;

// While the store is full, only what ends something or frees space is decided, and stored from the
// store's reserve until that is used up.
//
// What owns all state, without a thread, a lock or a clock of its own: it is given a batch, decides
// and applies in order, appends all of it in one transaction, and only then answers and publishes.
//
// An exception from the store, a listener or a callback goes through; the object is then good for
// nothing but to be destroyed: as if the process had died at that instant.
class ConductorMachine {
 public:
  struct Options {
    MakeMind make_mind;
    EventStore* store = nullptr;  // outlives the machine
    uint64_t snapshot_events = kSnapshotEvents;
  };
  explicit ConductorMachine(Options options) : options_(std::move(options)) {}

  // REQUIRES: called before Start; the listener outlives the machine.
  void Subscribe(Listener* listener) { listeners_.push_back(listener); }

  // How far the reading of the log is: an event, of the last there is.
  using Progress = std::function<void(EventSeq read, EventSeq last)>;

  // Rebuilds the brain from the newest snapshot that can be loaded and the log after it. `read` is
  // told of every event that was read; it may be empty.
  Status Start(Time clock, const Progress& read);

  // The wall clock was found to differ from the clock that is given to Step by so much. The time of
  // the log does not follow it; what people see does, from the next batch on.
  void OnWallClock(int64_t ahead_us);

  // Handles one batch, which may be empty. With an error the process must end: nobody has been
  // answered, and only the disk says what has happened. REQUIRES: Start was ok.
  Status Step(std::vector<Submission> batch, Time clock);

  // When to call Step although nothing was submitted, perhaps at once; nullopt: there is no need.
  std::optional<Time> NextStep(Time clock) const;

  // A little of the store's work that can wait, for when nothing else is to be done; whether some
  // is left. Saves a snapshot if that work needs one.
  bool Tidy();

  // At the end, to save the next start time.
  void SaveSnapshot();

  const Brain& brain() const { return mind_->brain(); }

 private:
  struct Decided {  // what a command led to, as a range of the batch's events
    size_t begin = 0, end = 0;
    std::optional<Error> refused;
    bool waits = false;  // for space: it was not decided
  };

  Status Restore(const Progress& read);
  bool Load(Brain& brain, const Snapshot& snapshot) const;
  Status Replay(Brain& brain, EventSeq after, const Progress& read) const;
  Status BringBack(Brain& brain, std::optional<EndedSweepData> lacking) const;
  // An element for each command.
  std::vector<Decided> Decide(const std::vector<Submission>& batch, Time now,
                              std::vector<Event>& events);
  std::optional<Error> Decide(const Command& command, const std::string& actor, Time now,
                              std::vector<Event>& events);
  void Advance(Time now, std::vector<Event>& events);
  bool MayBeStored(const Command& command, bool ends_only) const;
  // Whether they were appended. With an error the process must end.
  Result<bool> Append(std::span<const Event> events, Time clock);
  void Probe(Time clock);
  // `dropped`: nothing of the batch has happened.
  void Answer(const std::vector<Submission>& batch, const std::vector<Decided>& decided,
              std::span<const Event> events, bool dropped);
  void TellState();
  void StartClock(Time clock);
  void AdjustClockIfDue(Time now, std::vector<Event>& events);
  Time LogTime(Time clock) const { return Time{clock.us + ahead_us_}; }
  EventSeq last_seq() const { return mind_->brain().state().last_seq; }

  Options options_;
  std::vector<Listener*> listeners_;
  std::unique_ptr<Mind> mind_;
  int64_t ahead_us_ = 0;                   // of the log's time before the clock
  int64_t wall_ahead_us_ = 0;              // of the wall clock before the clock
  std::optional<AdjustClock> adjustment_;  // of the clock, not durable yet
  EventSeq snapshot_seq_{0};               // of the newest snapshot that was loaded or tried
  bool more_ = true;                       // something may follow although nobody asks
  Time advanced_at_;                       // by the log's time: what was due by then has followed
  std::optional<Error> stalled_;           // why the store cannot be written
  bool has_reserve_ = false;  // while it is stalled: kills and ends may still be stored
  Time probe_at_;             // while it is stalled
};

}  // namespace attune::server
