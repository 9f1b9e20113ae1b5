#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "server/conductor/decider.h"
#include "server/conductor/queue.h"
#include "server/conductor/submissions.h"
#include "server/store/event_store.h"

namespace attune::server {

// A snapshot is written after this many events and at the end, so a start replays at most this
// many.
inline constexpr uint64_t kSnapshotEvents = 200'000;

// The interval between probes of a store that refuses writes.
inline constexpr int64_t kProbeIntervalUs = 500'000;

// After a start, the log's time counts the time since the last event if that is at most this long.
// If it seems longer, or negative, the clock may be wrong. The log's time then continues from its
// last event, and people see it with an offset.
inline constexpr int64_t kClockGapMaxUs = int64_t{24} * 3600 * 1'000'000;

// The difference between the clock and the displayed time that is tolerated before an adjustment.
inline constexpr int64_t kClockToleranceUs = 1'000'000;

// Owns all state, without a thread, a lock or a clock. Gets a batch of commands, decides and
// applies them in order, and appends all events in one transaction. Only then it answers and
// notifies listeners.
//
// While the store is full, it only accepts commands that end something or free space. Their events
// are stored in the store's reserve until that is used up.
//
// An exception from the store, a listener or a callback passes through. The object must then be
// destroyed, as if the process had died at that moment.
class ConductorMachine {
 public:
  struct Options {
    MakeDecider make_decider;
    EventStore* store = nullptr;  // outlives the machine
    uint64_t snapshot_events = kSnapshotEvents;
  };
  explicit ConductorMachine(Options options) : options_(std::move(options)) {}

  // REQUIRES: called before Start; the listener outlives the machine.
  void Subscribe(Listener* listener) { listeners_.push_back(listener); }

  // Reports the progress of reading the log: the event just read and the last one.
  using Progress = std::function<void(EventSeq read, EventSeq last)>;

  // Rebuilds the brain from the newest snapshot that can be loaded and the log after it. Calls
  // `read`, which may be empty, for every event.
  Status Start(Time clock, const Progress& read);

  // Reports that the wall clock is `ahead_us` ahead of the clock that is passed to Step. From the
  // next batch on, displayed times follow the wall clock; the log's time does not.
  void SetWallClockOffset(int64_t ahead_us);

  // Handles one batch, which may be empty. After an error the process must end: nobody has been
  // answered, and only the disk knows what has happened. REQUIRES: Start was ok.
  Status Step(std::vector<Submission> batch, Time clock);

  // When Step must be called even if nothing is submitted, perhaps at once. Nullopt: not needed.
  std::optional<Time> NextStep(Time clock) const;

  // Does a small part of the store's background work; call it when idle. Saves a snapshot if that
  // work needs one. Returns whether work is left.
  bool DoBackgroundWork();

  // Call it at the end to make the next start faster.
  void SaveSnapshot();

  const Brain& brain() const { return decider_->brain(); }

 private:
  struct Decision {  // the outcome of a command: a range of the batch's events
    size_t begin = 0, end = 0;
    std::optional<Error> refused;
    bool deferred = false;  // it was not decided, because the store is full
  };

  Status Restore(const Progress& read);
  bool Load(Brain& brain, const Snapshot& snapshot) const;
  Status Replay(Brain& brain, EventSeq after, const Progress& read) const;
  Status RestoreEnded(Brain& brain, std::optional<EndedSweepData> lacking) const;
  // Returns an element for each command.
  std::vector<Decision> Decide(const std::vector<Submission>& batch, Time now,
                               std::vector<Event>& events);
  std::optional<Error> Decide(const Command& command, const std::string& actor, Time now,
                              std::vector<Event>& events);
  void Advance(Time now, std::vector<Event>& events);
  bool MayBeStored(const Command& command, bool ends_only) const;
  // Returns whether the events were appended. After an error the process must end.
  Result<bool> Append(std::span<const Event> events, Time clock);
  void Probe(Time clock);
  // `dropped`: the batch was not stored.
  void Answer(const std::vector<Submission>& batch, const std::vector<Decision>& decided,
              std::span<const Event> events, bool dropped);
  void PublishState();
  void StartClock(Time clock);
  void AdjustClockIfDue(Time now, std::vector<Event>& events);
  Time LogTime(Time clock) const { return Time{clock.us + ahead_us_}; }
  EventSeq last_seq() const { return decider_->brain().state().last_seq; }

  Options options_;
  std::vector<Listener*> listeners_;
  std::unique_ptr<Decider> decider_;
  int64_t ahead_us_ = 0;                   // the log's time minus the clock
  int64_t wall_ahead_us_ = 0;              // the wall clock minus the clock
  std::optional<AdjustClock> adjustment_;  // of the displayed time, not durable yet
  EventSeq snapshot_seq_{0};               // the newest snapshot that was loaded or tried
  bool has_more_ = true;                   // time may cause events without a new command
  Time advanced_at_;                       // the log's time of the last Advance
  std::optional<Error> stalled_;           // why the store refuses writes
  bool has_reserve_ = false;               // while stalled: kills and ends can still be stored
  Time probe_at_;                          // while stalled: the time of the next probe
};

}  // namespace attune::server
