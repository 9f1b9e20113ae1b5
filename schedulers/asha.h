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
  };
  struct Options {
    Step min{1};
    Step max{0};
    int64_t reduction_factor = 4;
    Form form = Form::kStop;
  };

  // REQUIRES: 1 <= min < max, reduction_factor >= 2.
  Asha(Objective objective, Options options);

  // O(log n) in the trials recorded at the rung.
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
  // What a trial was recorded with. Best first; of equal values the earlier one.
  struct Mark {
    double value = 0;
    uint32_t order = 0;  // how many there were at the rung before it
  };
  // Where, and with what, a trial was recorded last.
  struct Last {
    Step step;
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
  // How a trial stands at a rung, with its own mark counted.
  struct Standing {
    int64_t rank = 0;
    int64_t peers = 0;
    int64_t going_on = 0;
    double cutoff = std::numeric_limits<double>::quiet_NaN();  // where none goes on yet
  };

  void SetRungs(const Options& options);
  // All that follows from the rungs, what was recorded and who is paused.
  void Rebuild();
  // The rung at which the trial is recorded with a report of this step; null: at none.
  const Rung* RungFor(TrialNumber trial, Step step) const;
  size_t Passed(TrialNumber trial) const;
  size_t RungsUpTo(Step step) const;
  bool Before(const Mark& a, const Mark& b) const;
  // Where the mark stands among those of the rung, or would stand.
  size_t PlaceIn(const Rung& rung, const Mark& mark) const;
  Standing StandingIn(const Rung& rung, const Mark& mark) const;
  // Whether a slot that is free now is for this trial, which has just come to the rung and is among
  // its best, and for none that is paused.
  bool NextIn(const Rung& rung, const Candidate& candidate) const;
  // Of a rung, the paused trial that is to go on; null: none.
  const Candidate* Promotable(const Rung& rung, const SweepView& sweep) const;
  void Add(const Record& record);
  void Park(TrialNumber trial);
  void Forget(TrialNumber trial);
  Candidate CandidateOf(TrialNumber trial, const Mark& mark) const;
  Reason ReasonFor(const Rung& rung, const Standing& standing, double value) const;
  // Two halves of a sentence: how the value stands, and who goes on.
  std::string Stands(const Rung& rung, const Standing& standing, const std::string& value) const;
  std::string Rule(const Standing& standing) const;

  Objective objective_;
  int64_t reduction_factor_;
  Form form_;
  std::vector<Rung> rungs_;
  std::vector<Record> records_;    // in order
  std::set<TrialNumber> waiting_;  // trials that were paused

  // What follows from these and the rungs.
  std::map<TrialNumber, Last> last_;
  std::set<TrialNumber> below_;  // of those that wait, the ones that have come to no rung
};

Entry<Scheduler> AshaEntry();

}  // namespace attune::schedulers
