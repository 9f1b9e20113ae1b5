#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "server/store/sqlite_store.h"
#include "tests/conformance/whole_sweep.h"
#include "tests/support/scratch_folder.h"

// Sixteen faults of schedulers in other tuners, one test each. Each test runs whole sweeps with the
// real brain, under every scheduler that could have the fault.
namespace attune::conformance {
namespace {

using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Schedulers that compare a trial with others.
const std::vector<std::string> kJudging = {"asha",  "extrapolate", "hyperband", "median",
                                           "pasha", "pb2",         "pbt",       "percentile"};

bool IsPopulation(const Plan& plan) { return plan.scheduler == "pb2" || plan.scheduler == "pbt"; }

// Falls with the steps and ranks the trials alike at each step. Only trial 5 is worse than trial 0.
double Falling(uint32_t trial, int64_t step, const Config&) {
  return 1 + 10.0 / static_cast<double>(1 + (trial * 7 + 5) % 12) + 1 / static_cast<double>(step);
}
// Ranks the trials differently at every step.
double Noisy(uint32_t trial, int64_t step, const Config&) {
  return RandomStream(7, TrialNumber(trial), "noise/" + std::to_string(step)).Uniform();
}

// Returns a sweep under every judging scheduler, with asha in both modes.
std::vector<Plan> Judging(const Plan::Curve& loss) {
  std::vector<Plan> plans;
  for (const std::string& name : kJudging) plans.push_back({.scheduler = name, .loss = loss});
  plans.push_back(plans.front());
  plans.back().options["mode"] = std::string("promote");
  return plans;
}

// 1. A trial whose metric is NaN stopped every other trial, or was never stopped itself.
TEST(Pitfalls, NanStopsOnlyItsTrial) {
  for (Plan& plan : Judging([](uint32_t trial, int64_t step, const Config&config) {
         return trial == 6 ? kNaN : Falling(trial, step, config);
       })) {
    SCOPED_TRACE(plan.scheduler);
    plan.slots = 1;
    const WholeSweep sweep(plan);
    EXPECT_FALSE(sweep.hangs());
    int64_t furthest = 0;
    for (const auto& [trial, end] : sweep.Ends()) {
      if (trial != 6) furthest = std::max(furthest, sweep.Furthest(trial));
    }
    EXPECT_GE(furthest, plan.scheduler == "pasha" ? 3 : 9);
    if (IsPopulation(plan)) {
      bool cloned = false;
      for (const auto& fact : sweep.FactsOf<TrialDecided>())
        cloned |=
            fact.attempt.trial.number.value == 6 && fact.verdict.kind == VerdictKind::kExploit;
      EXPECT_TRUE(cloned);
    } else {
      EXPECT_LT(sweep.Furthest(6), 27);
      EXPECT_EQ(sweep.Ends().at(6), TrialState::kStopped);
    }
  }
}

// 2. A late report was recorded at a lower rung than it had passed, or at several rungs.
TEST(Pitfalls, ALateReportCountsOnlyAtTheRungItHasPassed) {
  for (Plan& plan : Judging(Noisy)) {
    if (IsPopulation(plan)) continue;  // populations have no rungs
    SCOPED_TRACE(plan.scheduler);
    plan.stride = 5;
    const std::vector<Step> rungs = plan.Rungs();
    std::map<TrialNumber, Step> last;
    for (const auto& fact : WholeSweep(plan).FactsOf<TrialDecided>()) {
      const Reason& reason = fact.verdict.reason;
      if (reason.rung.value == 0) continue;
      EXPECT_LE(reason.rung, reason.step);
      EXPECT_GT(reason.rung, last[fact.attempt.trial.number]) << reason.text;
      last[fact.attempt.trial.number] = reason.rung;
      if (plan.scheduler == "hyperband") continue;  // its trials must be promoted at each rung
      for (const Step rung : rungs) EXPECT_FALSE(rung > reason.rung && rung <= reason.step);
    }
    EXPECT_FALSE(last.empty());
  }
}

// 3. A restart of the server lost the rungs, and a retry counted from the start.
TEST(Pitfalls, ARestartLosesNoRung) {
  for (Plan& plan : Judging(Noisy)) {
    SCOPED_TRACE(plan.scheduler);
    plan.failures = {{2, 4}, {5, 2}, {7, 1}, {7, 2}};
    const WholeSweep sweep(plan);
    plan.restart_every = 1;
    EXPECT_EQ(WholeSweep(plan).Decisions(), sweep.Decisions());
    EXPECT_GT(sweep.Decisions().size(), 12u);
  }
}

// 4. Rungs from floating-point logarithms lacked one rung, and some sweeps never ended.
TEST(Pitfalls, RungsAreExactAndEndAtMax) {
  struct Ladder {
    int64_t max, factor;
    size_t rungs, of_hyperband;  // its rungs divide max: 33 and 11, where others have 27 and 81
  };
  for (const auto& [max, factor, count, of_hyperband] : {Ladder{1000, 10, 4, 4},
                                                         {243, 3, 6, 6},
                                                         {125, 5, 4, 4},
                                                         {100, 3, 6, 5},
                                                         {16, 4, 3, 3},
                                                         {7, 3, 3, 2},
                                                         {2, 2, 2, 2}}) {
    for (Plan& plan : Judging(Falling)) {
      if (IsPopulation(plan) || plan.scheduler == "median" || plan.scheduler == "percentile")
        continue;
      SCOPED_TRACE(plan.scheduler + " " + std::to_string(max));
      plan.max = max;
      plan.options["reduction_factor"] = factor;
      const std::vector<Step> rungs = plan.Rungs();
      EXPECT_EQ(rungs.size(), plan.scheduler == "hyperband" ? of_hyperband : count);
      EXPECT_EQ(rungs.back(), Step(max));
      plan.stride = max > 100 ? 5 : 1;
      EXPECT_FALSE(WholeSweep(plan).hangs());
    }
  }
}

// 5. Sweeps stalled with every trial paused, after few slots, failures or an exhausted searcher.
TEST(Pitfalls, NoSweepStallsWithAllTrialsPaused) {
  for (const int slots : {1, 3, 20}) {
    for (const int trials : {1, 2, 5, 13}) {
      for (Plan& plan : Judging(Noisy)) {
        SCOPED_TRACE(plan.scheduler + " with " + std::to_string(slots) + " slots and " +
                     std::to_string(trials) + " trials");
        plan.slots = slots;
        plan.trials = trials;
        plan.kills = {{1, 1}, {3, 2}};
        for (const int64_t step : {1, 2, 3, 4}) plan.failures.insert({2, step});
        const WholeSweep sweep(plan);
        EXPECT_FALSE(sweep.hangs());
        EXPECT_EQ(sweep.Ends().size(), static_cast<size_t>(trials));
      }
    }
  }
}

// 6. Steps that go back killed trials, or were counted twice.
TEST(Pitfalls, RepeatedStepsChangeNoDecision) {
  for (Plan& plan : Judging(Noisy)) {
    SCOPED_TRACE(plan.scheduler);
    plan.slots = 1;
    plan.saves = false;  // so that a retry starts at the first step
    const WholeSweep sweep(plan);
    plan.failures = {{0, 2}, {4, 2}, {4, 1}};
    const WholeSweep retried(plan);
    const auto judged = [](const WholeSweep& whole) {
      std::vector<std::string> texts;
      for (const auto& fact : whole.FactsOf<TrialDecided>()) {
        if (fact.verdict.reason.peers > 0) texts.push_back(fact.verdict.reason.text);
      }
      return texts;
    };
    EXPECT_EQ(judged(retried), judged(sweep));
    EXPECT_GT(retried.FactsOf<AttemptEnded>().size(), sweep.FactsOf<AttemptEnded>().size());
    for (const auto& [trial, end] : retried.Ends()) EXPECT_NE(end, TrialState::kFailed);
  }
}

// 7. Among trials with equal values, all continued or none.
TEST(Pitfalls, SomeTrialsWithEqualValuesContinue) {
  for (Plan& plan : Judging([](uint32_t, int64_t, const Config&) { return 0.5; })) {
    if (plan.scheduler == "median" || plan.scheduler == "percentile" || IsPopulation(plan))
      continue;  // these only stop or replace a trial that is strictly worse
    SCOPED_TRACE(plan.scheduler);
    const WholeSweep sweep(plan);
    int went_on = 0;
    for (uint32_t trial = 0; trial < 12; ++trial) went_on += sweep.Furthest(trial) >= 3 ? 1 : 0;
    EXPECT_GT(went_on, 0);
    EXPECT_LT(went_on, 12);
  }
}

// 8. The second trial was stopped for being worse than a single long one.
TEST(Pitfalls, NoTrialIsStoppedAgainstTooFewPeers) {
  for (Plan& plan : Judging([](uint32_t trial, int64_t step, const Config&) {
         return trial == 0 ? 0.1 / static_cast<double>(step) : 100;
       })) {
    SCOPED_TRACE(plan.scheduler);
    plan.slots = 1;
    bool judged = false;
    for (const auto& fact : WholeSweep(plan).FactsOf<TrialDecided>()) {
      if (fact.attempt.trial.number.value != 1 || judged) continue;
      judged = true;
      EXPECT_NE(fact.verdict.kind, VerdictKind::kStop) << fact.verdict.reason.text;
    }
    EXPECT_TRUE(judged);
  }
}

// 9. Means from step 1 of a steep curve are so bad that their median stops no trial.
TEST(Pitfalls, MeansStartAfterTheSteepPart) {
  Plan plan{.scheduler = "median",
            .options = {{"grace_period", int64_t{8}}},
            .slots = 12,
            .loss = [](uint32_t trial, int64_t step, const Config&) {
              return 1000 * std::exp2(-3.0 * static_cast<double>(step)) +
                     (trial == 7 && step > 2 ? 2.0 : 1.0) - 1e-3 * static_cast<double>(step);
            }};
  const WholeSweep behind(plan);
  EXPECT_EQ(behind.Ends().at(7), TrialState::kStopped);
  EXPECT_EQ(behind.Count(TrialState::kCompleted), 11);
  plan.options.clear();
  EXPECT_EQ(WholeSweep(plan).Ends().at(7), TrialState::kCompleted) << "from step 1 on";
}

// 10. Paused trials counted as completed, lost their checkpoints, and ended the sweep.
TEST(Pitfalls, APausedTrialKeepsItsCheckpoint) {
  int promoted = 0;
  for (Plan& plan : Judging(Noisy)) {
    SCOPED_TRACE(plan.scheduler);
    const WholeSweep sweep(plan);
    std::map<TrialNumber, CheckpointId> paused;
    for (const Event& event : sweep.log()) {
      if (const auto* decided = std::get_if<TrialDecided>(&event.fact);
          decided != nullptr && decided->verdict.kind == VerdictKind::kPause)
        paused[decided->attempt.trial.number] = {decided->attempt.trial, decided->attempt.number,
                                                 decided->step};
      if (const auto* dropped = std::get_if<CheckpointDropped>(&event.fact)) {
        const auto held = paused.find(dropped->checkpoint.trial.number);
        EXPECT_FALSE(held != paused.end() && held->second == dropped->checkpoint);
      }
      if (const auto* ended = std::get_if<TrialEnded>(&event.fact))
        paused.erase(ended->trial.number);
      const auto* assigned = std::get_if<AttemptAssigned>(&event.fact);
      if (assigned == nullptr || !paused.contains(assigned->attempt.trial.number)) continue;
      ++promoted;
      ASSERT_TRUE(assigned->resume);
      if (!IsPopulation(plan)) {
        EXPECT_EQ(assigned->resume->step, paused.at(assigned->attempt.trial.number).step);
      }
      paused.erase(assigned->attempt.trial.number);
    }
    EXPECT_EQ(sweep.Ends().size(), 12u) << "a paused trial does not count as an end";
  }
  EXPECT_GT(promoted, 10);
}

Plan Population(bool synchronous = false) {
  return {.scheduler = "pbt",
          .options = {{"perturbation_interval", int64_t{3}}, {"synchronous", synchronous}},
          .max = 24,
          .trials = 8,
          .slots = 8,
          .loss = Noisy};
}

// 11. A donor's checkpoint was deleted between the decision and the clone's start.
TEST(Pitfalls, ADonorsCheckpointStaysUntilItsCloneHasSaved) {
  int clones = 0;
  for (const bool synchronous : {false, true}) {
    Plan plan = Population(synchronous);
    plan.slots = 3;  // so that donors continue before their clones
    const WholeSweep sweep(plan);
    EXPECT_EQ(sweep.Count(TrialState::kCompleted), 8) << "nobody waits for what is gone";
    std::map<TrialNumber, CheckpointId> donors;
    for (const Event& event : sweep.log()) {
      if (const auto* decided = std::get_if<TrialDecided>(&event.fact);
          decided != nullptr && decided->verdict.kind == VerdictKind::kExploit) {
        donors[decided->attempt.trial.number] = decided->verdict.donor;
        ++clones;
      }
      if (const auto* promoted = std::get_if<TrialPromoted>(&event.fact);
          promoted != nullptr && promoted->donor) {
        donors[promoted->trial.number] = *promoted->donor;
        ++clones;
      }
      if (const auto* saved = std::get_if<CheckpointSaved>(&event.fact))
        donors.erase(saved->attempt.trial.number);
      if (const auto* ended = std::get_if<TrialEnded>(&event.fact))
        donors.erase(ended->trial.number);
      if (const auto* dropped = std::get_if<CheckpointDropped>(&event.fact)) {
        for (const auto& [clone, donor] : donors)
          EXPECT_FALSE(donor == dropped->checkpoint)
              << "of which trial " << clone.value << " is a clone";
      }
    }
  }
  EXPECT_GT(clones, 8);
}

// 12. A clone had its donor's configuration, but its old weights or weights of another step.
TEST(Pitfalls, ACloneGetsWeightsAndConfigurationOfOneStep) {
  Plan plan = Population();
  plan.options["resample_probability"] = 0.0;
  plan.options["smaller_factor"] = 1.0;
  plan.options["larger_factor"] = 1.0;
  std::map<AttemptId, Config> trained;  // the configuration of each attempt
  std::map<TrialNumber, Config> now;
  std::map<TrialNumber, CheckpointId> donors;
  int clones = 0;
  const WholeSweep sweep(plan);
  for (const Event& event : sweep.log()) {
    if (const auto* created = std::get_if<TrialCreated>(&event.fact))
      now[created->trial.number] = created->config;
    if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact)) {
      const TrialNumber trial = assigned->attempt.trial.number;
      trained[assigned->attempt] = now.at(trial);
      if (const auto donor = donors.find(trial); donor != donors.end()) {
        ASSERT_TRUE(assigned->resume);
        const CheckpointId& from = donor->second;
        EXPECT_EQ(assigned->resume->step, from.step);
        EXPECT_THAT(assigned->resume->path,
                    ::testing::StartsWith(ToString(AttemptId{from.trial, from.attempt}) + "/"));
        donors.erase(donor);
      }
    }
    const auto* decided = std::get_if<TrialDecided>(&event.fact);
    if (decided == nullptr || decided->verdict.kind != VerdictKind::kExploit) continue;
    const CheckpointId& donor = decided->verdict.donor;
    EXPECT_EQ(decided->verdict.config, trained.at({donor.trial, donor.attempt}));
    now[decided->attempt.trial.number] = decided->verdict.config;
    donors[decided->attempt.trial.number] = donor;
    ++clones;
  }
  EXPECT_GT(clones, 4);
  plan.saves = false;
  for (const auto& fact : WholeSweep(plan).FactsOf<TrialDecided>())
    EXPECT_NE(fact.verdict.kind, VerdictKind::kExploit) << "of a donor without a checkpoint";
}

// 13. A synchronous population hung when a member failed, or shrank with every failure.
TEST(Pitfalls, AFailedMemberIsReplacedAndNotWaitedFor) {
  Plan plan = Population(/*synchronous=*/true);
  plan.options["population"] = int64_t{4};
  plan.kills = {{1, 2}, {3, 4}};
  const WholeSweep sweep(plan);
  EXPECT_FALSE(sweep.hangs());
  EXPECT_EQ(sweep.Count(TrialState::kKilled), 2);
  EXPECT_EQ(sweep.Count(TrialState::kCompleted), 4) << "those that died were replaced";
}

// 14. Reversed bounds crashed an algorithm long after the start.
TEST(Pitfalls, InvalidBoundsAreRefusedBeforeTheStart) {
  const auto faults =
      SearchSpace::Check({{.name = "x", .domain = FloatDomain{.min = 2, .max = 1}}});
  EXPECT_FALSE(faults.empty());
  const auto refused = [](const Plan& plan) {
    const auto made = AllAlgorithms().MakeScheduler(plan.Spec());
    return made.ok() ? std::string() : made.error().message;
  };
  for (Plan& plan : Judging(Falling)) {
    SCOPED_TRACE(plan.scheduler);
    EXPECT_EQ(refused(plan), "");
    const bool lines = plan.scheduler == "median" || plan.scheduler == "percentile";
    if (IsPopulation(plan)) {
      plan.options["perturbation_interval"] = int64_t{100};
    } else {
      plan.options[lines ? "grace_period" : "min"] = int64_t{100};
    }
    EXPECT_THAT(refused(plan), HasSubstr("scheduler."));
  }
}

// 15. A lock outlived its process, or a process that counted as dead continued to write.
TEST(Pitfalls, DeadProcessesHoldNoLockAndReplacedOnesAreIgnored) {
  const testing::ScratchFolder folder;
  const std::string path = folder / "attune.db";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto store = server::SqliteStore::Open(path);
    const bool wrote = write(ready[1], store.ok() ? "1" : "0", 1) == 1;
    if (wrote) pause();  // it is killed with the store open
    _exit(1);
  }
  char opened = 0;
  ASSERT_EQ(read(ready[0], &opened, 1), 1);
  EXPECT_EQ(opened, '1');
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(server::SqliteStore::Open(path, {.busy_timeout_ms = 0}).ok());
  for (const int end : ready) close(end);

  Brain brain(AllAlgorithms(), [](const std::string&) { return true; });
  const auto execute = [&](const Command& command) {
    auto events = brain.Execute(command, Time{1}).value();
    const auto following = brain.Advance(Time{1});
    events.insert(events.end(), following.begin(), following.end());
    return events.size();
  };
  execute(JoinExecutor{"box", "a", "", {.cpus = 1}});
  const Plan plan{.scheduler = "asha", .loss = Falling};
  execute(CreateSweep{.spec = plan.Spec(), .source = ""});
  const TrialId trial{SweepId(1), TrialNumber(0)};
  const Attempt first = *brain.state().Find(trial)->live;
  execute(LoseExecutor{"box", brain.state().executors.at("box").incarnation, "silent"});
  execute(JoinExecutor{"box", "b", "", {.cpus = 1}});
  ASSERT_GT(brain.state().Find(trial)->live->epoch, first.epoch);
  const TrialReported late{first.id, {Step(1), {{"loss", 0.1}}, Seconds(0), true}};
  EXPECT_EQ(execute(RecordFact{first.epoch, late}), 0u);
}

// 16. A shared random generator made decisions depend on other sweeps and on restarts.
TEST(Pitfalls, RandomDrawsDependOnlyOnSeedAndTrial) {
  for (Plan& plan : Judging(Noisy)) {
    SCOPED_TRACE(plan.scheduler);
    if (plan.scheduler == "asha") plan.options["brackets"] = int64_t{3};
    if (plan.scheduler == "pb2") plan.max = 9;  // each of its draws fits a regression
    plan.slots = 100;
    const auto alone = WholeSweep(plan).Decisions();
    plan.others = 2;
    EXPECT_EQ(WholeSweep(plan).Decisions(), alone);
    plan.seed = 2;
    const bool draws = IsPopulation(plan) || plan.options.contains("brackets");
    if (draws) {
      EXPECT_NE(WholeSweep(plan).Decisions(), alone);
    }
  }
}

}  // namespace
}  // namespace attune::conformance
