#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/log/event.h"

namespace attune::sim {

// The state according to the log. An independent reader of events keeps it, without core's state.
struct AttemptBook {
  AttemptId id;
  Epoch epoch;
  std::vector<RankSlot> ranks;  // ranks that hold slots; ranks of ended parts do not
  std::string first;            // executor of rank 0
  bool spans = false;           // on several executors
  bool fallen = false;          // a part has ended without success
  std::optional<CheckpointRef> resume;
  Time assigned;
  std::string key;  // idempotency key of the request for it
  Step last_reported{0};
  Seconds seconds{0};
  bool saved = false;  // it has saved a checkpoint
  bool left = false;   // a verdict has told it to leave
};

struct CheckpointBook {
  uint32_t attempt = 0;
  CheckpointRef ref;
  std::string executor;
  std::vector<double> values;
  bool pinned = false;
  bool unreported = false;  // the report of its step has not arrived
  bool dropped = false;
  bool removed = false;
  bool stored = false;  // an object store has a copy
  bool only = false;    // and the executor lost the files
};

struct TrialBook {
  TrialId id;
  Config config;
  std::optional<TrialPatch> patch;
  TrialState state = TrialState::kPending;
  std::string origin;
  uint32_t attempts = 0;
  uint32_t earlier_attempts = 0;  // attempts before it restarted from scratch
  int failures = 0;               // failures of the trial itself since it was created or reopened
  bool filled_disk = false;       // since it was created or reopened
  std::set<std::string> avoided;  // executors that it must not use again, by failure.on_log
  Step last_step{0};
  Step until{0};
  bool requested = false;
  bool held = false;  // paused by a user, not by the scheduler
  Time not_before;
  Seconds seconds{0};                // of ended attempts
  std::optional<TrialNumber> donor;  // until it has saved a checkpoint itself
  std::optional<KeptCheckpoint> cloned;
  std::optional<AttemptBook> live;
  std::vector<CheckpointBook> checkpoints;

  TrialRecord Record(EventSeq seen) const;  // the record that a server would build from its tables
};

// A report on the Pareto front: no other report is at least as good in every objective.
struct BestBook {
  CheckpointId at;
  std::vector<double> values;
};

struct SweepBook {
  SweepId id;
  SweepSpec spec;  // with the current limits
  std::string key;
  std::string owner;
  SweepState state = SweepState::kRunning;
  std::optional<SweepState> stopping;
  bool exhausted = false;
  std::optional<ProposalNumber> thinks;  // the proposal that its searcher computes
  bool deletion_scheduled = false;
  bool deleted = false;
  int reopened = 0;
  int edited = 0;
  std::map<TrialNumber, TrialBook> trials;
  Time running_since;
  int64_t ran_us = 0;
  double gpu_seconds = 0;  // of ended attempts
  std::vector<BestBook> front;

  // Whether `a` is at least as good as `b` in every objective.
  bool IsAsGood(const std::vector<double>& a, const std::vector<double>& b) const;
  bool IsOnFront(const CheckpointId& checkpoint) const;
  bool TargetReached() const;  // by a report on the front
  int LiveCount() const;
  int CreatedCount() const { return static_cast<int>(trials.size()); }
};

struct ExecutorBook {
  std::string instance;
  Incarnation incarnation;
  Resources resources;
  bool spans = false;
  std::string folder;
  Labels labels;
  bool lost = false;
  bool drained = false;
  bool unhealthy = false;
  bool quarantined = false;
  std::set<SweepId> excluded;  // sweeps that must not use it
  bool ends = false;           // its lifetime is limited and may be too short for a gang
};

struct ReservationBook {
  SweepId sweep;
  std::map<std::string, int> workers;  // number of ranks on each executor
  std::set<std::pair<std::string, Epoch>>
      ahead;  // attempts that held slots there when it was created
};

class Books {
 public:
  void Record(const Event& event);

  // Return null if the log has no such object.
  const TrialBook* Find(const TrialId& id) const;
  const SweepBook* Find(SweepId id) const;
  const CheckpointBook* Find(const CheckpointId& id) const;
  // All live attempts.
  std::vector<const AttemptBook*> LiveAttempts() const;

  std::map<SweepId, SweepBook> sweeps;
  std::map<std::string, ExecutorBook> executors;
  std::optional<ReservationBook> reservation;
  EventSeq last_seq{0};
  Time last_time;
  Epoch last_epoch{0};
};

}  // namespace attune::sim
