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
// Every `interval` steps a trial is ranked among the members of the population, each by its value
// at its last ranking. A trial among the last takes over the weights and the configuration of one
// of the first, drawn at random, and continues with that configuration explored (explore.h). The
// first and the last are ⌈fraction · n⌉ of n each, at most half.
//
// - No trial waits for another. Members that have ended are neither ranked nor cloned.
// - A donor has a checkpoint of its present configuration, and a value that is finite and better. A
//   member that has just cloned another has no value until its next ranking, and is no donor.
// - A clone continues at the step of its donor, which may lie behind its own. As in the paper, a
//   member counts its own steps: after max / interval decisions it clones no more, so every sweep
//   ends.
// - The population is `population` trials. A failed trial is replaced while the sweep may create
//   more. If there are fewer slots than members, they take turns: while some wait for a slot, a
//   trial is paused after each interval, and the member with the fewest decisions continues.
//
// In the synchronous form, a trial that reaches an interval is paused there until every live member
// has reached its own and the population is complete. Then all are ranked, the last clone, and all
// continue as slots become free. Checkpoints stay until they have been cloned. Members that end are
// not waited for.
//
// With `bandit` (PB2), the numeric parameters of a clone are chosen by the gains of all members
// from one decision to the next (bandit.h), and explored while there are too few gains.
//
// NaN, infinities and a missing metric are the worst value. The lower trial number is the better
// one of two equal values. A report that passes several intervals counts once. Repeated and earlier
// steps change nothing.
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

  // The decision on a ranked member of the synchronous form.
  struct Turn {
    std::optional<CheckpointId> donor;
    Config config;  // with a donor
    Reason reason;
  };
  // A trial of the population that has not ended.
  struct Member {
    Config config;                                            // in training
    double value = std::numeric_limits<double>::quiet_NaN();  // at its last ranking
    bool ranked = false;                                      // since it started or cloned
    bool paused = false;
    bool gang_ended = false;                                 // paused, and its gang has ended
    Step step{0};                                            // of its last ranking, or of its donor
    double base = std::numeric_limits<double>::quiet_NaN();  // its value there, or its donor's
    int64_t decisions = 0;
    std::optional<CheckpointId> newest;
    uint32_t foreign_attempts = 0;  // the last attempt whose checkpoints have another configuration
    std::optional<Turn> turn;       // while it is paused and may continue
  };

  // REQUIRES: interval, population, max >= 1; 0 < fraction <= 0.5.
  Pbt(Objective objective, SearchSpace space, uint64_t seed, Options options);

  // O(n log n) in the members.
  Verdict Judge(const TrialView& trial, const Report& report) const override;
  std::optional<Step> NextMilestone(const TrialView& trial, Step after) const override;
  NextMove Next(const SweepView& sweep) const override;
  const std::set<CheckpointId>& Retained() const override { return retained_; }
  bool MakesClones() const override { return true; }
  void Observe(const Event& event) override;
  void Adapt(const SweepSpec& spec) override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

 private:
  // The position of a member among the ranked ones, itself included.
  struct Standing {
    int64_t rank = 0;
    int64_t peers = 0;
    int64_t ends = 0;  // the number of the first, and of the last
    double cutoff = std::numeric_limits<double>::quiet_NaN();  // of the worst that does not clone
    std::vector<TrialNumber> donors;                           // among the first
  };
  struct Entry {
    TrialNumber trial;
    double value;
  };
  bool IsBefore(const Entry& a, const Entry& b) const;
  Standing StandingOf(TrialNumber trial, double value) const;
  // REQUIRES: the best come first.
  Standing StandingAt(const std::vector<Entry>& ranked, size_t place) const;
  // Whether a report of the step is the first at or after the next interval of the member.
  bool IsRankedAt(const Member& member, Step step) const;
  Step IntervalUpTo(Step step) const;
  // Whether another member needs a slot: it is paused, or not yet created.
  bool DoOthersWait(TrialNumber trial) const;
  bool CanMoreJoin() const;
  // The first part of a reason: the rank of a member.
  Reason ReasonFor(const Standing& standing, double value, Step step) const;
  // The decision on a ranked member that had `decisions` before.
  Turn TurnOf(TrialNumber trial, const Standing& standing, int64_t decisions, Reason reason) const;
  std::string Rule() const { return options_.bandit ? "pb2" : "pbt"; }  // and the name
  // The configuration of a clone of the source, and a text on its origin.
  std::pair<Config, std::string> ConfigFrom(const Member& source, TrialNumber trial,
                                            int64_t decisions) const;
  void AddGain(const Member& member, Step step, double value);
  double BaseOf(const CheckpointId& donor) const;
  void AddMember(const Fact& fact);  // a new or a reopened one
  void Forget(const CheckpointId& checkpoint);
  void ForgetAllBut(const TrialRecord& record);
  void ObserveMember(TrialNumber trial, const Fact& fact);
  // Decides on all members of the synchronous form, if all wait.
  void RankAll();
  void Retain();
  const Member& MemberOf(const TrialView& trial) const;

  Objective objective_;
  SearchSpace space_;
  uint64_t seed_;
  Options options_;
  std::map<TrialNumber, Member> members_;
  int64_t created_ = 0;              // trials so far
  int64_t joined_ = 0;               // trials that neither failed nor were killed
  bool exhausted_ = false;           // the searcher has no more
  std::set<CheckpointId> retained_;  // donors of members that wait
  std::vector<Gain> gains_;          // the newest, for the bandit
};

Entry<Scheduler> PbtEntry();
Entry<Scheduler> Pb2Entry();

}  // namespace attune::schedulers
