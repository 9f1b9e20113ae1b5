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
// JMLR 18, 2018, algorithm 1): brackets of synchronous successive halving, each of another balance
// between many trials that begin and few that are trained far.
//
// With R = max / min and s_max = ⌊log_η R⌋, in integers, bracket s = s_max … 0 begins with
// ⌈(s_max+1)/(s+1) · η^s⌉ trials and has rungs max/η^s, max/η^(s-1), … below max, rounded down. At
// each the best 1/η, rounded down, go on; who comes past the last is trained to max.
//
// Trials fill the brackets by their numbers, the one that thins out most first, so that a sweep of
// few trials saves most; after bracket 0 a new round begins. A trial is paused at its rung until it
// is certain whether it goes on, and its slot is for another one meanwhile: the next of its bracket
// or of a later one. Whom the trial that has just come decides goes on, or is stopped, without a
// pause. So a bracket needs no more slots than one, and none of them idles.
//
// A trial that fails, is killed or ends by itself before its rung counts as a loss, and nobody
// waits for it. Where no more trials come, the best 1/η of those that did go on from the bracket
// that was not filled, and one at least. A trial that had ended and is opened again is outside of
// its bracket: it goes on unjudged.
//
// NaN, infinities and a missing metric are the worst value, and never go on. Of equal values the
// one that came first is better. A trial comes to a rung with its first report at or after it; with
// one that passes several rungs it competes at each of them, one after the other.
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
  // A bracket that has begun stays as it is, and is filled. What is new holds from the next one on,
  // which is the first of a round. Who goes on past its last rung goes on to the new max.
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;
  std::vector<Step> Rungs() const override;

 private:
  using Brackets = std::map<uint32_t, Bracket>;  // by the number of the first trial

  // Where the trial belongs, which may be in a bracket that has not begun; nullopt: in none any
  // more.
  struct Seat {
    uint32_t first = 0;
    uint32_t member = 0;
    Bracket bracket;
  };
  std::optional<Seat> SeatOf(TrialNumber trial) const;
  // The bracket of the trial's number, if it has begun; end: it has not, or nothing in it is
  // decided any more.
  Brackets::const_iterator Begun(TrialNumber trial) const;
  // The bracket that the trial has joined; end: nothing in it is decided any more.
  Brackets::const_iterator Find(TrialNumber trial) const;
  void Create(TrialNumber trial);
  // Lets go of a bracket in which nothing is decided any more.
  void Tidy(Brackets::iterator bracket);
  // The paused trial of the bracket that goes on first.
  std::optional<uint32_t> ChosenOf(const Brackets::value_type& entry, const SweepView& sweep) const;
  Reason ReasonFor(const Bracket& bracket, uint32_t first, const Bracket::Standing& standing) const;

  Objective objective_;
  Options options_;
  std::vector<BracketShape> round_;
  int64_t round_trials_ = 0;
  uint32_t rounds_from_ = 0;  // the trial with which the rounds of these options begin
  uint32_t created_ = 0;
  Brackets brackets_;
};

Entry<Scheduler> HyperBandEntry();

}  // namespace attune::schedulers
