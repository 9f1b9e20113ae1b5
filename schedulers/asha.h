#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/scheduler.h"
#include "core/space/objective.h"
#include "schedulers/extrapolation.h"
#include "schedulers/progression.h"

namespace attune::schedulers {

// Asynchronous successive halving (Li et al., "A system for massively parallel hyperparameter
// tuning", MLSys 2020, §3), in two forms.
//
// Rungs are min, min·η, min·η², … below max, and max; η is the reduction factor. A trial is
// recorded at a rung once, with its first report at or after the rung's step. At the last rung it
// is complete.
//
// The form that stops: a trial goes on if it is then among the best ⌊n/η⌋ of the n recorded at the
// rung so far, itself included, and is stopped otherwise; while n < η every one goes on. No trial
// ever waits for another and no checkpoint is needed.
//
// The form that promotes (algorithm 2 of the paper): a trial is paused at every rung, and its slot
// is free. A free slot promotes the best paused trial that is among the best ⌊n/η⌋ of its rung, of
// the highest rung that has one; where none has, a new trial begins. A trial that its own slot
// would promote goes on without a pause, which is the same thing sooner. So no decision is taken on
// few values for good: a trial that was paused early goes on once enough worse ones have come. A
// value that is not finite is never promoted: its trial is stopped.
//
// A report that passes several rungs at once counts for the highest; the trial has skipped the
// others and is never recorded there, because a value of a later step would be unfair to them. A
// step that lies before, or was already reported, is ignored: a retried trial that repeats steps is
// not judged twice.
//
// With several brackets a trial's first rung is that of its own: min in the first bracket, min·η in
// the second and so on, for values that mislead early. A trial's bracket is drawn from the seed and
// its number, as often as HyperBand (Li et al., JMLR 2018) has trials in its brackets, and it is
// ranked among those of its own. A free slot is for the highest rung of all of them.
//
// With `extrapolates` (the scheduler `extrapolate`) the form that promotes ranks a rung by where
// each curve is going (Extrapolation) and not by where it is, and nobody is promoted before six
// trials have come to a rung, while others may still begin. A report is ranked by the fit before
// it.
//
// With `progresses` (the scheduler `pasha`) the form that promotes goes no further than a rung that
// the rankings of its trials decide (Progression): all are paused there until the next one opens.
//
// NaN, infinities and a missing metric are the worst value. Of equal values the one reported first
// is better.
class Asha final : public Scheduler {
 public:
  enum class Form { kStop, kPromote };
  // A report that was recorded, whatever the rungs were.
  struct Record {
    TrialNumber trial;
    Step step;
    double value = 0;
    double best_cost = 0;  // up to there; small is better
  };
  struct Options {
    Step min{1};
    Step max{0};
    int64_t reduction_factor = 4;
    Form form = Form::kStop;
    bool extrapolates = false;
    bool progresses = false;
    int64_t brackets = 1;
    uint64_t seed = 0;  // of the draws of brackets

    int64_t RungsBelowMax() const;
  };
  static constexpr const char* kAsha = "asha";
  static constexpr const char* kExtrapolate = "extrapolate";
  static constexpr const char* kPasha = "pasha";

  // REQUIRES: the table has completed the options of one of these.
  static Options OptionsOf(const SweepSpec& spec);

  // REQUIRES: 1 <= min < max, reduction_factor >= 2, 1 <= brackets <= the rungs below max; one that
  // extrapolates or progresses promotes, and has one bracket.
  Asha(Objective objective, Options options);

  // O(log n) in the trials recorded at the rung. To observe a report is O(n) where it extrapolates
  // and a new fit is due.
  Verdict Judge(const TrialView& trial, const Report& report) const override;
  std::optional<Step> NextMilestone(const TrialView& trial, Step after) const override;
  NextMove Next(const SweepView& sweep) const override;
  void Observe(const Event& event) override;
  // With other rungs every record counts for the highest that it has come to, once a trial and rung
  // as ever. A paused trial waits at the highest it was recorded at; one that has come to none,
  // since min is larger now, goes on with the next free slot.
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;
  std::vector<Step> Rungs() const override;

 private:
  // What a trial is ranked by: its value, or where it is going. Best first; of equal values the
  // earlier one.
  struct Mark {
    double value = 0;
    double spread = 0;
    uint32_t order = 0;  // how many there were at the rung before it
  };
  // Where, and with what, a trial was recorded last.
  struct Last {
    Step step;
    double value = 0;
    Mark mark;
  };
  // A trial that was paused, as the promotions of its rung have it: least cost first.
  struct Candidate {
    double cost = 0;
    uint32_t order = 0;
    TrialNumber trial;

    auto operator<=>(const Candidate&) const = default;
  };
  struct Rung {
    Step step;
    std::vector<Mark> marks;
    std::set<Candidate> paused;
  };
  using Ladder = std::vector<Rung>;  // of a bracket
  // How a trial stands at a rung, with its own mark counted.
  struct Standing {
    int64_t rank = 0;
    int64_t peers = 0;
    int64_t going_on = 0;
    double cutoff = std::numeric_limits<double>::quiet_NaN();  // where none goes on yet
  };

  const char* Name() const;
  // Whose rungs they are: the name in reasons.
  std::string RuleOf(TrialNumber trial) const;
  double CostOf(double value) const { return objective_.mode == Mode::kMax ? -value : value; }
  void SetRungs(const Options& options);
  // What follows from the rungs, what was recorded and who is paused: first who has come where,
  // for the extrapolation; then how all rank.
  void Recall();
  void Rank();
  // With what a trial is recorded at a rung of its ladder, as the last there; and would be.
  Mark MarkOf(const Record& record, size_t rung) const;
  Mark MarkIf(TrialNumber trial, size_t rung, double value) const;
  // The rung at which the trial is recorded with a report of this step; null: at none.
  const Rung* RungFor(TrialNumber trial, Step step) const;
  size_t Passed(TrialNumber trial) const;
  static size_t RungsUpTo(const Ladder& ladder, Step step);
  size_t BracketOf(TrialNumber trial) const;
  const Ladder& LadderOf(TrialNumber trial) const { return ladders_[BracketOf(trial)]; }
  Ladder& LadderOf(TrialNumber trial) { return ladders_[BracketOf(trial)]; }
  bool Before(const Mark& a, const Mark& b) const;
  // Where the mark stands among those of the rung, or would stand.
  size_t PlaceIn(const Rung& rung, const Mark& mark) const;
  Standing StandingIn(const Rung& rung, const Mark& mark) const;
  // Whether anybody goes on from it.
  bool IsOpen(const Rung& rung) const;
  // Whether a slot that is free now is for this trial, which has just come to the rung and is among
  // its best, and for none that is paused.
  bool NextIn(const Rung& rung, const Candidate& candidate) const;
  // Of a rung, the paused trial that is to go on; null: none.
  const Candidate* Promotable(const Rung& rung, const SweepView& sweep) const;
  void Add(Record record);
  void Park(TrialNumber trial);
  void Forget(TrialNumber trial);
  Candidate CandidateOf(TrialNumber trial, const Mark& mark) const;
  Reason ReasonFor(TrialNumber trial, const Rung& rung, const Standing& standing,
                   double value) const;
  // Two halves of a sentence: how the mark stands, and who goes on. `value` is what was reported.
  std::string Stands(const Rung& rung, const Standing& standing, const Mark& mark,
                     const std::string& value) const;
  std::string Rule(const Rung& rung, const Standing& standing) const;
  std::string NobodyGoesBeyond() const;

  Objective objective_;
  int64_t reduction_factor_;
  Form form_;
  uint64_t seed_;
  Step max_;
  std::vector<Ladder> ladders_;  // by bracket
  std::vector<double> shares_;   // of trials, of each bracket and those before it
  std::optional<Extrapolation> extrapolation_;
  std::optional<Progression> progression_;
  std::vector<Record> records_;    // in order
  std::set<TrialNumber> waiting_;  // trials that were paused

  // What follows from these and the rungs.
  std::map<TrialNumber, Last> last_;
  std::set<TrialNumber> below_;  // of those that wait, the ones that have come to no rung
};

Entry<Scheduler> AshaEntry();
Entry<Scheduler> ExtrapolateEntry();
Entry<Scheduler> PashaEntry();

}  // namespace attune::schedulers
