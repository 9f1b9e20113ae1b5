#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/log/event.h"

namespace attune::sim {

// What the log says happened, kept by a reader of its own: core's state has no part in it.
struct AttemptBook {
  AttemptId id;
  Epoch epoch;
  std::vector<RankSlot> ranks;  // that hold slots: those of parts that have not ended
  std::string first;            // executor of rank 0
  bool spans = false;           // over several executors
  bool fallen = false;          // a part has ended, and had not finished
  std::optional<CheckpointRef> resume;
  Time assigned;
  std::string key;  // of the request that asked for it
  Step last_reported{0};
  Seconds seconds{0};
  bool saved = false;  // a checkpoint of its own
  bool left = false;   // as a verdict has told it to
};

struct CheckpointBook {
  uint32_t attempt = 0;
  CheckpointRef ref;
  std::string executor;
  std::vector<double> values;
  bool pinned = false;
  bool unreported = false;  // the report of its step has not come
  bool dropped = false;
  bool removed = false;
};

struct TrialBook {
  TrialId id;
  Config config;
  TrialState state = TrialState::kPending;
  std::string origin;
  uint32_t attempts = 0;
  uint32_t earlier_attempts = 0;  // of those, before it began anew
  int failures = 0;               // of its own since it was created or opened again
  bool filled_disk = false;       // since then
  std::set<std::string> avoided;  // executors that failure.on_log has kept it from
  Step last_step{0};
  Step until{0};
  bool requested = false;
  bool held = false;  // paused by an order, not by the scheduler
  Time not_before;
  Seconds seconds{0};                // of attempts that have ended
  std::optional<TrialNumber> donor;  // until it has saved a checkpoint of its own
  std::optional<KeptCheckpoint> cloned;
  std::optional<AttemptBook> live;
  std::vector<CheckpointBook> checkpoints;

  TrialRecord Record(EventSeq seen) const;  // as a server makes it from its tables
};

// A report that counts and than which none is better in everything.
struct BestBook {
  CheckpointId at;
  std::vector<double> values;
};

struct SweepBook {
  SweepId id;
  SweepSpec spec;  // with its limits as they are now
  std::string key;
  std::string owner;
  SweepState state = SweepState::kRunning;
  std::optional<SweepState> stopping;
  bool exhausted = false;
  std::optional<ProposalNumber> thinks;  // of it
  bool deleted = false;
  int reopened = 0;
  int edited = 0;
  std::map<TrialNumber, TrialBook> trials;
  Time running_since;
  int64_t ran_us = 0;
  double gpu_seconds = 0;  // of attempts that have ended
  std::vector<BestBook> front;

  bool AsGood(const std::vector<double>& a, const std::vector<double>& b) const;  // in everything
  bool OnFront(const CheckpointId& checkpoint) const;
  bool TargetReached() const;  // by a report of the front
  int Live() const;
  int Created() const { return static_cast<int>(trials.size()); }
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
  std::set<SweepId> excluded;  // from these
  bool ends = false;           // it has only so much time, and may have too little for a gang
};

struct ReservationBook {
  SweepId sweep;
  std::map<std::string, int> workers;             // for how many ranks, by executor
  std::set<std::pair<std::string, Epoch>> ahead;  // attempts that held slots there when it was made
};

class Books {
 public:
  void Record(const Event& event);

  // Null when the log has none.
  const TrialBook* Find(const TrialId& id) const;
  const SweepBook* Find(SweepId id) const;
  const CheckpointBook* Find(const CheckpointId& id) const;
  // Of all attempts that hold slots.
  std::vector<const AttemptBook*> Live() const;

  std::map<SweepId, SweepBook> sweeps;
  std::map<std::string, ExecutorBook> executors;
  std::optional<ReservationBook> reservation;
  EventSeq last_seq{0};
  Time last_time;
  Epoch last_epoch{0};
};

}  // namespace attune::sim
