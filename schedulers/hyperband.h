#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/scheduler.h"
#include "core/space/objective.h"
#include "schedulers/bracket.h"

namespace attune::schedulers {

// HyperBand (Li et al., "Hyperband: a novel bandit-based approach to hyperparameter optimization",
// JMLR 18, 2018, algorithm 1): brackets of synchronous successive halving that range from many
// trials for few steps to few trials for many.
//
// With R = max / min and s_max = ⌊log_η R⌋, in integers, bracket s = s_max … 0 starts with
// ⌈(s_max+1)/(s+1) · η^s⌉ trials and has rungs max/η^s, max/η^(s-1), … below max, rounded down. The
// best 1/η at a rung, rounded down, continue. Trials that pass the last rung train to max.
//
// Trials fill the brackets in the order of their numbers, from bracket s_max, so that a sweep of
// few trials saves most. After bracket 0 a new round starts. A trial is paused at its rung until
// its fate is certain. Meanwhile its slot serves the next trial of this bracket or of a later one.
// A trial whose arrival settles its own fate continues or stops without a pause. So one slot is
// enough for a bracket, and no slot idles.
//
// A trial that fails, is killed or ends before its rung counts as a loss, and no trial waits for
// it. If no more trials come, the best 1/η of an unfilled bracket continue, at least one. A trial
// that is reopened is outside of its bracket: it continues without verdicts.
//
// NaN, infinities and a missing metric are the worst value and never continue. The earlier of two
// equal values is better. A trial arrives at a rung with its first report at or after it. A report
// that passes several rungs competes at each of them, one after the other.
class HyperBand final : public Scheduler {
 public:
  struct Options {
    Step min{1};
    Step max{0};
    int64_t reduction_factor = 3;
    bool operator==(const Options&) const = default;
  };

  // The brackets of a round, in their order. REQUIRES: 1 <= min < max, reduction_factor >= 2.
  static std::vector<BracketShape> Round(const Options& options);

  // REQUIRES: as Round.
  HyperBand(Objective objective, Options options);

  // O(n) in the trials of the bracket.
  Verdict Judge(const TrialView& trial, const Report& report) const override;
  std::optional<Step> NextMilestone(const TrialView& trial, Step after) const override;
  NextMove Next(const SweepView& sweep) const override;
  void Observe(const Event& event) override;
  // Started brackets keep their layout and are filled. The next one is the first of a round with
  // the new options. Trials that pass the last rung of any bracket train to the new max.
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;
  std::vector<Step> Rungs() const override;

 private:
  using Brackets = std::map<uint32_t, Bracket>;  // by the number of the first trial

  // The place of a trial in a bracket, which need not have started. SeatOf: nullopt once its
  // bracket is decided.
  struct Seat {
    uint32_t first = 0;
    uint32_t member = 0;
    Bracket bracket;
  };
  std::optional<Seat> SeatOf(TrialNumber trial) const;
  // The bracket with the number of the trial; end: it has not started, or is decided.
  Brackets::const_iterator FindStarted(TrialNumber trial) const;
  // The bracket that the trial has joined; end: it is decided.
  Brackets::const_iterator FindJoined(TrialNumber trial) const;
  void Create(TrialNumber trial);
  void EraseIfDecided(Brackets::iterator bracket);
  // The paused trial of the bracket that continues first.
  std::optional<uint32_t> ChosenOf(const Brackets::value_type& entry, const SweepView& sweep) const;
  Reason ReasonFor(const Bracket& bracket, uint32_t first, const Bracket::Standing& standing) const;

  Objective objective_;
  Options options_;
  std::vector<BracketShape> round_;
  int64_t round_trials_ = 0;
  uint32_t rounds_from_ = 0;  // the first trial of the rounds with these options
  uint32_t created_ = 0;
  Brackets brackets_;
};

Entry<Scheduler> HyperBandEntry();

}  // namespace attune::schedulers
