#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/scheduler.h"
#include "core/space/objective.h"
#include "core/space/search_space.h"
#include "schedulers/bandit.h"
#include "schedulers/explore.h"

namespace attune::schedulers {

// Population-based training (Jaderberg et al., "Population based training of neural networks",
// 2017), with truncation selection (§4.1.1), asynchronous as there or synchronous.
//
// Every `interval` steps a trial is ranked among the members of the population by the value that
// each had when it was ranked last. One that is among the last of them takes over the weights and
// the configuration of one of the first, drawn at random, and goes on with the configuration
// explored (explore.h). How many the first and the last are: ⌈fraction · n⌉ of n, and no more than
// half.
//
// - Nobody waits for anyone. Members that have ended are neither ranked nor cloned.
// - A donor has a newest checkpoint, of the configuration that it is named with, and a value that
//   is finite and better. A member that has just cloned another is ranked, and may be cloned, from
//   the next time on: until then it has nothing of its own.
// - A clone goes on at its donor's step, which may lie behind its own. In the paper a member counts
//   its own steps; so here: one that has come to max / interval decisions clones no more, and
//   every sweep ends.
// - The population is `population` trials. One that fails is replaced, as long as the sweep may
//   have more. Where there are fewer slots than members these take turns: while some wait for a
//   slot, a trial is paused after each interval, and the one with the fewest of them goes on.
//
// The synchronous form differs in this: who has come to an interval is paused there until every
// member that lives has come to its own, and the population is complete. Then all are ranked by
// what they have, the last of them clone, and all go on as slots are free. The checkpoints that are
// to be cloned stay until they have been. A member that ends is waited for no longer.
//
// With `bandit` (PB2) the numeric parameters of a clone are chosen by what all members have gained
// from one decision to the next so far (bandit.h), and explored where that says nothing yet.
//
// NaN, infinities and a missing metric are the worst value. Of equal values that of the lower trial
// number is better. A report that passes several intervals counts once; a step that was reported
// before, or lies before such a one, changes nothing.
class Pbt final : public Scheduler {
 public:
  struct Options {
    int64_t interval = 1;  // steps
    double fraction = 0.25;
    int64_t population = 0;
    int64_t max_trials = 0;  // of the sweep; 0: any number
    Exploration exploration;
    Step max{0};
    bool synchronous = false;
    bool bandit = false;
  };
  static Options OptionsOf(const SweepSpec& spec);  // of pbt and pb2

  // Of the synchronous form: how a member goes on that has been ranked.
  struct Turn {
    std::optional<CheckpointId> donor;
    Config config;  // with a donor
    Reason reason;
  };
  // A trial of the population that has not ended.
  struct Member {
    Config config;                                            // that its weights are trained with
    double value = std::numeric_limits<double>::quiet_NaN();  // when it was ranked last
    bool ranked = false;                                      // since it began, or cloned another
    bool paused = false;
    bool left = false;  // paused, and its gang has gone
    Step step{0};       // at which it was ranked, or which it has cloned
    double base = std::numeric_limits<double>::quiet_NaN();  // its value there, or its donor's
    int64_t decisions = 0;
    std::optional<CheckpointId> newest;
    uint32_t foreign_attempts = 0;  // up to this one what it saved is not of its configuration
    std::optional<Turn> turn;       // while it is paused and may go on
  };

  // REQUIRES: interval, population, max >= 1; 0 < fraction <= 0.5.
  Pbt(Objective objective, SearchSpace space, uint64_t seed, Options options);

  // O(n log n) in the members.
  Verdict Judge(const TrialView& trial, const Report& report) const override;
  std::optional<Step> NextMilestone(const TrialView& trial, Step after) const override;
  NextMove Next(const SweepView& sweep) const override;
  const std::set<CheckpointId>& Retained() const override { return retained_; }
  void Observe(const Event& event) override;
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

 private:
  // How a member stands among those that have been ranked, itself included.
  struct Ranking {
    int64_t rank = 0;
    int64_t peers = 0;
    int64_t ends = 0;  // so many are the first, and the last
    double cutoff = std::numeric_limits<double>::quiet_NaN();  // of the worst that is not the last
    std::vector<TrialNumber> donors;                           // of the first
  };
  struct Entry {
    TrialNumber trial;
    double value;
  };
  bool Before(const Entry& a, const Entry& b) const;
  Ranking RankingOf(TrialNumber trial, double value) const;
  // Of the one at a place among all. REQUIRES: the best come first.
  Ranking RankingIn(const std::vector<Entry>& ranked, size_t place) const;
  // Whether a report of the step is the first at or after the member's next interval.
  bool Ranks(const Member& member, Step step) const;
  Step IntervalUpTo(Step step) const;
  // For a slot: one that is paused, or that is yet to be created.
  bool OthersWait(TrialNumber trial) const;
  bool MoreJoin() const;
  // The reason so far: how a member ranks.
  Reason ReasonFor(const Ranking& ranking, double value, Step step) const;
  // Of a ranked one: what it takes over, if anything, and why; `decisions` were made before.
  Turn TurnOf(TrialNumber trial, const Ranking& ranking, int64_t decisions, Reason reason) const;
  std::string Rule() const { return options_.bandit ? "pb2" : "pbt"; }  // and the name
  // Of a clone of the source, the values of the parameters and how they were found.
  std::pair<Config, std::string> ConfigFrom(const Member& source, TrialNumber trial,
                                            int64_t decisions) const;
  void Learn(const Member& member, Step step, double value);
  double BaseOf(const CheckpointId& donor) const;
  void Join(const Fact& fact);  // a new member, or one that comes back
  void Forget(const CheckpointId& checkpoint);
  void ForgetAllBut(const TrialRecord& record);
  void ObserveMember(TrialNumber trial, const Fact& fact);
  // Of the synchronous form, where all have come: turns for all.
  void RankAll();
  void Retain();
  const Member& MemberOf(const TrialView& trial) const;

  Objective objective_;
  SearchSpace space_;
  uint64_t seed_;
  Options options_;
  std::map<TrialNumber, Member> members_;
  int64_t created_ = 0;              // trials so far
  int64_t joined_ = 0;               // of them, those that neither failed nor were killed
  bool exhausted_ = false;           // the searcher has no more
  std::set<CheckpointId> retained_;  // of the turns to come
  std::vector<Gain> gains_;          // of a bandit, the newest
};

Entry<Scheduler> PbtEntry();
Entry<Scheduler> Pb2Entry();

}  // namespace attune::schedulers
