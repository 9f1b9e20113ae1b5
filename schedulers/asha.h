#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/scheduler.h"
#include "core/space/objective.h"
#include "schedulers/ladder.h"
#include "schedulers/ranking.h"
#include "schedulers/rung.h"

namespace attune::schedulers {

// Asynchronous successive halving (Li et al., "A system for massively parallel hyperparameter
// tuning", MLSys 2020, §3) on a Ladder, by a Ranking.
//
// A trial is recorded at a rung once, with its first report at or after the step of the rung. A
// report that passes several rungs is recorded at the highest one only, because a value of a later
// step would be unfair to the trials at the others. A trial is complete at the last rung. Repeated
// and earlier steps, as after a retry, are ignored.
//
// kStop: a trial continues if it is among the best ⌊n/η⌋ of the n recorded at the rung so far,
// itself included, and is stopped otherwise. While n < η, every trial continues. No trial waits for
// another, and no checkpoint is needed.
//
// kPromote (algorithm 2 of the paper): a trial is paused at every rung, and its slot is free. A
// free slot promotes the best paused trial among the best ⌊n/η⌋ of its rung, at the highest rung
// that has one; otherwise a new trial starts. A trial that its own slot would promote continues
// without a pause, which has the same effect sooner. A trial that was paused early can continue
// later, when worse ones have been recorded. A trial whose value is not finite is stopped.
//
// Trials are ranked among those of their bracket. A free slot serves the highest rung of all
// brackets. If values are equal, the one reported first is better.
class Asha final : public Scheduler {
 public:
  enum class Form { kStop, kPromote };
  // A report that was recorded, at whichever rungs there were then.
  struct Record {
    TrialNumber trial;
    Step step;
    double value = 0;
    double best_cost = 0;  // see Ranking::Arrival
  };

  // `rule` is the name of the scheduler in reasons.
  // REQUIRES: the ranking has the rungs of the ladder. If it forecasts or has a limit, the form is
  // kPromote and the ladder has one bracket.
  Asha(Objective objective, Ladder ladder, Form form = Form::kStop,
       std::unique_ptr<Ranking> ranking = std::make_unique<Ranking>(), std::string rule = "asha");

  // O(log n) in the trials recorded at the rung. Observing a report is O(n) if scores change.
  Verdict Judge(const TrialView& trial, const Report& report) const override;
  std::optional<Step> NextMilestone(const TrialView& trial, Step after) const override;
  NextMove Next(const SweepView& sweep) const override;
  void Observe(const Event& event) override;
  // If the rungs change, each record counts for the highest rung at or before its step, one record
  // per trial and rung. A paused trial waits at the highest rung it is recorded at. If min was
  // raised above its steps, the next free slot continues it.
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;
  std::vector<Step> Rungs() const override { return ladder_.steps(); }

 private:
  // The last record of a trial that counts.
  struct Last {
    size_t rung = 0;
    double value = 0;
    Rung::Mark mark;
  };
  struct Candidate {
    const Rung* rung;
    TrialNumber trial;
  };

  std::string RuleOf(TrialNumber trial) const;
  double CostOf(double value) const { return objective_.mode == Mode::kMax ? -value : value; }

  std::vector<Rung>& RungsOf(TrialNumber trial) { return rungs_[ladder_.BracketOf(trial)]; }
  const std::vector<Rung>& RungsOf(TrialNumber trial) const {
    return rungs_[ladder_.BracketOf(trial)];
  }
  // The index of the next rung at which the trial can be recorded.
  size_t NextRung(TrialNumber trial) const;
  // The index of the rung at which a report of this step is recorded.
  std::optional<size_t> RungFor(TrialNumber trial, Step step) const;
  Rung::Mark MarkFor(TrialNumber trial, size_t rung, double value) const;
  // Whether trials may continue from it.
  bool IsOpen(const Rung& rung) const;

  VerdictKind Decide(TrialNumber trial, const Rung& rung, const Rung::Mark& mark,
                     const Rung::Standing& standing) const;
  // Whether a slot that is free now would promote this trial, which has just arrived at the rung.
  bool IsNextAt(const Rung& rung, const Rung::Mark& mark, TrialNumber trial) const;
  std::optional<Candidate> BestPaused(const SweepView& sweep) const;
  Promote Promotion(const Candidate& candidate) const;

  Reason ReasonFor(TrialNumber trial, const Rung& rung, const Rung::Standing& standing,
                   double value) const;
  // Two halves of a sentence. `value` is the reported value.
  std::string StandingText(const Rung& rung, const Rung::Standing& standing, const Rung::Mark& mark,
                           const std::string& value) const;
  std::string RuleText(const Rung& rung, const Rung::Standing& standing) const;

  void ObserveReport(TrialNumber trial, const Report& report);
  void AddPaused(TrialNumber trial);
  void RemovePaused(TrialNumber trial);
  // The records that count on this ladder.
  std::vector<Ranking::Arrival> Arrivals() const;
  // Fills the rungs from the records and the paused trials.
  void Rebuild();

  Objective objective_;
  Ladder ladder_;
  Form form_;
  std::unique_ptr<Ranking> ranking_;
  std::string rule_;
  std::vector<Record> records_;   // in order
  std::set<TrialNumber> paused_;  // trials

  // Derived from the above.
  std::vector<std::vector<Rung>> rungs_;  // by bracket; the first ones of a later bracket are empty
  std::map<TrialNumber, Last> last_;
  std::set<TrialNumber> paused_below_;  // paused trials that are recorded at no rung
};

Entry<Scheduler> AshaEntry();
Entry<Scheduler> ExtrapolateEntry();
Entry<Scheduler> PashaEntry();

}  // namespace attune::schedulers
