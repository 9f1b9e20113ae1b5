#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/log/event.h"
#include "core/log/sweep_spec.h"

namespace attune::simulate {

// The result of a sweep.
struct Summary {
  struct Rung {
    Step step;
    int reached = 0;  // trials that trained up to this step
    int stopped = 0;  // of these, incomplete trials that ended here
  };
  struct Best {
    TrialNumber trial;
    Step step;
    double value = 0;
    Seconds at;  // time since the start, counted like Summary::wall
  };

  SweepState state = SweepState::kRunning;
  std::string reason;
  Seconds wall;               // from start to end, without the time in which it was paused or over
  double slot_seconds = 0;    // sum over all ranks
  int peak_slots = 0;         // maximum number of occupied slots
  std::array<int, 7> trials;  // indexed by TrialState
  int created = 0;            // number of trials
  std::vector<Rung> rungs;
  int64_t steps = 0;          // trained, by all trials
  int64_t steps_in_full = 0;  // if the same trials trained to their last step
  std::optional<Best> best;

  int Count(TrialState trial_state) const { return trials[static_cast<size_t>(trial_state)]; }
};

// Computes a summary from the events of a sweep.
class Tally {
 public:
  struct Trial {
    TrialState state = TrialState::kPending;
    std::string reason;  // why it has ended
    Step step{0};        // the last step that it reached
    Step current{0};     // step of its newest report, or of the checkpoint it resumed from
    int slots = 0;       // slots of its newest attempt
  };

  // The best report is chosen by the first objective; the earliest wins a tie. Reports with missing
  // or invalid values do not count.
  Tally(const SweepSpec& spec, const std::vector<Step>& rungs);

  // REQUIRES: all events of one sweep, each once, in order.
  void Observe(const Event& event);

  // All fields except steps_in_full. Before the end of the sweep, it describes the newest event.
  const Summary& summary() const { return summary_; }
  bool over() const { return HasEnded(summary_.state); }
  const std::vector<Trial>& trials() const { return trials_; }  // by number

 private:
  void Handle(const SweepCreated& fact, Time now);
  void Handle(const SweepPaused& fact, Time now);
  void Handle(const SweepResumed& fact, Time now);
  void Handle(const SweepReopened& fact, Time now);
  void Handle(const TrialCreated& fact, Time now);
  void Handle(const TrialReopened& fact, Time now);
  void Handle(const AttemptAssigned& fact, Time now);
  void Handle(const TrialReported& fact, Time now);
  void Handle(const AttemptEnded& fact, Time now);
  void Handle(const TrialEnded& fact, Time now);
  void Handle(const SweepEnded& fact, Time now);

  Trial& TrialOf(const TrialId& id) { return trials_[id.number.value]; }
  void ChangeSlots(int change, Time now);
  void StartClock(Time now) { running_since_ = now; }
  void StopClock(Time now);
  Seconds RunningTime(Time now) const;

  const std::vector<Objective> objectives_;
  const std::vector<Constraint> constraints_;
  Summary summary_;
  std::optional<Time> running_since_;
  int64_t ran_us_ = 0;         // before running_since_
  std::vector<Trial> trials_;  // by number
  int64_t slot_us_ = 0;
  int slots_ = 0;  // slots occupied since slots_since_
  Time slots_since_;
};

}  // namespace attune::simulate
