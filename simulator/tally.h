#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/log/event.h"
#include "core/log/sweep_spec.h"

namespace attune::simulate {

// What became of a sweep.
struct Summary {
  struct Rung {
    Step step;
    int reached = 0;  // trials that trained so far
    int stopped = 0;  // of them, those that went no further, but for complete ones
  };
  struct Best {
    TrialNumber trial;
    Step step;
    double value = 0;
    Seconds at;  // after so long, as `wall`
  };

  SweepState state = SweepState::kRunning;
  std::string reason;
  Seconds wall;               // from its start to its end, while it was neither paused nor over
  double slot_seconds = 0;    // that ranks occupied
  int peak_slots = 0;         // at once
  std::array<int, 7> trials;  // indexed by TrialState
  int created = 0;            // trials
  std::vector<Rung> rungs;
  int64_t steps = 0;          // trained, by all trials
  int64_t steps_in_full = 0;  // that the same trials would train if none were stopped
  std::optional<Best> best;

  int Count(TrialState which) const { return trials[static_cast<size_t>(which)]; }
};

// Reads a summary off a sweep's events. REQUIRES: the events of one sweep, each once, in order.
class Tally {
 public:
  struct Trial {
    TrialState state = TrialState::kPending;
    std::string reason;  // why it has ended
    Step step{0};        // the furthest
    Step at{0};          // of its newest report, or that it goes on from
    int slots = 0;       // of its attempt
  };

  // The best is the first one in the sweep's first objective, of the reports that count.
  Tally(const SweepSpec& spec, const std::vector<Step>& rungs);

  void Observe(const Event& event);

  // All but steps_in_full. Complete once `over`; before that, what it is at the newest event.
  const Summary& summary() const { return summary_; }
  bool over() const { return Ended(summary_.state); }
  const std::vector<Trial>& trials() const { return trials_; }  // by number

 private:
  void On(const SweepCreated& fact, Time now);
  void On(const SweepPaused& fact, Time now);
  void On(const SweepResumed& fact, Time now);
  void On(const SweepReopened& fact, Time now);
  void On(const TrialCreated& fact, Time now);
  void On(const TrialReopened& fact, Time now);
  void On(const AttemptAssigned& fact, Time now);
  void On(const TrialReported& fact, Time now);
  void On(const AttemptEnded& fact, Time now);
  void On(const TrialEnded& fact, Time now);
  void On(const SweepEnded& fact, Time now);

  Trial& At(const TrialId& id) { return trials_[id.number.value]; }
  void Occupy(int slots, Time now);
  void Start(Time now) { running_since_ = now; }
  void Stop(Time now);
  Seconds Ran(Time now) const;

  const std::vector<Objective> objectives_;
  const std::vector<Constraint> constraints_;
  Summary summary_;
  std::optional<Time> running_since_;
  int64_t ran_us_ = 0;         // before that
  std::vector<Trial> trials_;  // by number
  int64_t slot_us_ = 0;
  int slots_ = 0;  // occupied since slots_since_
  Time slots_since_;
};

}  // namespace attune::simulate
