#include "server/rpc/affected_executors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/brain/brain.h"
#include "server/rpc/convert.h"
#include "server/rpc/desired.h"
#include "tests/support/toy_algorithms.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AffectedExecutorsTest : public ::testing::Test {
 protected:
  AffectedExecutorsTest() {
    for (const char* name : {"a", "b", "c"}) Do(JoinExecutor{name, "1", "", {.cpus = 1}});
  }

  // Returns the affected executors. Checks that the desired state of all others is unchanged.
  AffectedExecutors::Executors Do(Command command) {
    auto events = std::move(brain.Execute(command, Time{++now})).value();
    for (Event& event : brain.Advance(Time{now})) events.push_back(std::move(event));
    const AffectedExecutors::Executors by = affected.Find(events);
    for (const auto& [name, executor] : brain.state().executors) {
      const v1::Desired desired = ToDesired(brain.state(), name);
      const bool looked =
          by.all || by.names.contains(name) || (by.removals && removing.contains(name));
      if (!looked) {
        EXPECT_EQ(wanted[name], desired.SerializeAsString()) << name;
      }
      wanted[name] = desired.SerializeAsString();
      if (desired.removals_size() + desired.deleted_sweeps_size() > 0) removing.insert(name);
    }
    return by;
  }

  Trial LiveTrial(uint32_t number) const {
    const Trial& trial = *brain.state().Find(TrialId(SweepId(1), TrialNumber(number)));
    return {.id = trial.id, .milestone = trial.milestone, .live = trial.live};
  }
  Command Report(uint32_t number, int64_t step, double score, bool waits = true) const {
    const Trial trial = LiveTrial(number);
    return RecordFact{
        trial.live->epoch,
        TrialReported{trial.live->id,
                      {.step = Step(step), .metrics = {{"score", score}}, .waits = waits}}};
  }
  std::string HostOf(uint32_t number) const {
    return LiveTrial(number).live->ranks.front().executor;
  }

  const Algorithms algorithms = attune::testing::ToyAlgorithms();
  Brain brain{algorithms, [](const std::string&) { return true; }};
  AffectedExecutors affected;
  std::map<std::string, std::string> wanted;
  std::set<std::string> removing;
  int64_t now = 0;
};

TEST_F(AffectedExecutorsTest, AssignmentsAffectTheExecutorsOfTheirRanks) {
  EXPECT_THAT(Do(CreateSweep{attune::testing::ToySpec(), "", ""}).names,
              ElementsAre("a", "b", "c"));
}

TEST_F(AffectedExecutorsTest, AReportAffectsNobodyAndItsVerdictOneExecutor) {
  Do(CreateSweep{attune::testing::ToySpec(), "", ""});
  EXPECT_THAT(Do(Report(1, 1, 0.9, false)).names, IsEmpty());
  EXPECT_THAT(Do(Report(1, 2, 0.9)).names, ElementsAre(HostOf(1)));
}

TEST_F(AffectedExecutorsTest, ARendezvousAffectsTheWholeGang) {
  for (const char* name : {"d", "e"}) Do(JoinExecutor{name, "1", "", {.cpus = 2}, true});
  SweepSpec spec = attune::testing::ToySpec();
  spec.gang = {.workers = 4, .per_worker = {.cpus = 1}};
  EXPECT_THAT(Do(CreateSweep{spec, "", ""}).names, ElementsAre("d", "e"));
  EXPECT_FALSE(ToDesired(brain.state(), "e").assignments(0).has_rendezvous());
  EXPECT_EQ(ToDesired(brain.state(), "d").assignments(0).node_rank(), 0u);
  EXPECT_EQ(ToDesired(brain.state(), "e").assignments(0).node_rank(), 1u);
  EXPECT_EQ(ToDesired(brain.state(), "e").assignments(0).nodes(), 2u);
  v1::Facts facts;
  v1::Fact& fact = *facts.add_facts();
  const Trial trial = LiveTrial(0);
  *fact.mutable_attempt() = ToProto(trial.live->id, trial.live->epoch);
  fact.mutable_rendezvous()->set_address("10.0.0.3");
  fact.mutable_rendezvous()->set_master_port(4000);
  auto record = std::get<RecordFact>(FromProto(facts).commands.at(0));
  record.executor = "d";
  EXPECT_THAT(Do(record).names, ElementsAre("d", "e"));
  const v1::Rendezvous told = ToDesired(brain.state(), "e").assignments(0).rendezvous();
  EXPECT_EQ(told.address(), "10.0.0.3");
  EXPECT_EQ(told.master_port(), 4000u);
  EXPECT_EQ(told.host(), "");
}

TEST_F(AffectedExecutorsTest, AFailureAffectsTheRestOfTheGang) {
  for (const char* name : {"d", "e"}) Do(JoinExecutor{name, "1", "", {.cpus = 2}, true});
  SweepSpec spec = attune::testing::ToySpec();
  spec.gang = {.workers = 4, .per_worker = {.cpus = 1}};
  Do(CreateSweep{spec, "", ""});
  const Trial trial = LiveTrial(0);
  Do(RecordFact{trial.live->epoch,
                AttemptEnded{.attempt = trial.live->id,
                             .outcome = Outcome::kFailed,
                             .failure = {.kind = FailureKind::kExit, .message = "it broke"}},
                "d"});
  const v1::Desired fallen = ToDesired(brain.state(), "e");
  ASSERT_EQ(fallen.unwanted_size(), 1);
  ASSERT_EQ(fallen.failed_elsewhere_size(), 1);
  EXPECT_EQ(fallen.failed_elsewhere(0).epoch(), fallen.unwanted(0).epoch());
}

TEST_F(AffectedExecutorsTest, AKilledGangIsNotMarkedAsFallen) {
  Do(CreateSweep{attune::testing::ToySpec(), "", ""});
  const std::string host = HostOf(0);
  Do(KillSweep{SweepId(1)});
  const v1::Desired killed = ToDesired(brain.state(), host);
  EXPECT_EQ(killed.unwanted_size(), 1);
  EXPECT_EQ(killed.failed_elsewhere_size(), 0);
}

TEST_F(AffectedExecutorsTest, ProgramsGetSecretsAsVariables) {
  SweepSpec spec = attune::testing::ToySpec();
  spec.program.environment = {{"A", "1"}};
  spec.program.secrets = {"KEY", "REMOVED"};
  Do(CreateSweep{spec, "", ""});
  const v1::Desired desired =
      ToDesired(brain.state(), HostOf(0), {.value_of = [](const std::string& name) {
                  return name == "KEY" ? std::optional<std::string>("value") : std::nullopt;
                }});
  const v1::Program& program = desired.assignments(0).program();
  ASSERT_EQ(program.environment_size(), 2);
  EXPECT_EQ(program.environment(1).name(), "KEY");
  EXPECT_EQ(program.environment(1).value().text(), "value");
  EXPECT_THAT(program.missing_secrets(), ElementsAre("REMOVED"));
}

TEST_F(AffectedExecutorsTest, ADeletedSweepAffectsAllUntilItIsRemoved) {
  Do(CreateSweep{attune::testing::ToySpec(), "", ""});
  const SweepId sweep = brain.state().last_sweep;
  Do(KillSweep{sweep});
  for (const auto& [name, executor] : brain.state().executors) {
    for (const Trial* trial : TrialsToEndOn(brain.state(), name)) {
      const AttemptEnded ended{.attempt = trial->live->id, .outcome = Outcome::kKilled};
      Do(RecordFact{trial->live->epoch, ended, name});
    }
  }
  EXPECT_TRUE(Do(DeleteSweep{sweep, brain.state().last_seq}).all);
  EXPECT_EQ(ToDesired(brain.state(), "c").deleted_sweeps(0).sweeps(0), sweep.value);
  EXPECT_TRUE(Do(RecordSweepRemoval{sweep, "c", "c"}).removals);
  EXPECT_EQ(ToDesired(brain.state(), "c").deleted_sweeps_size(), 0);
  EXPECT_EQ(ToDesired(brain.state(), "b").deleted_sweeps_size(), 1);
}

TEST_F(AffectedExecutorsTest, AnEndAffectsTheOldAndTheNextExecutor) {
  Do(CreateSweep{attune::testing::ToySpec(), "", ""});
  const std::string host = HostOf(1);
  const Trial trial = LiveTrial(1);
  EXPECT_THAT(
      Do(RecordFact{trial.live->epoch, AttemptEnded{trial.live->id, Outcome::kFinished, {}}}).names,
      ElementsAre(host));
}

TEST_F(AffectedExecutorsTest, EventsOfASweepAffectTheExecutorsOfItsTrials) {
  Do(CreateSweep{attune::testing::ToySpec(), "", ""});
  EXPECT_THAT(Do(PauseSweep{SweepId(1)}).names, ElementsAre("a", "b", "c"));
  EXPECT_THAT(Do(ResumeSweep{SweepId(1)}).names, ElementsAre("a", "b", "c"));
  EXPECT_THAT(Do(ExtendSweep{.sweep = SweepId(1), .max_step = Step(9)}).names,
              ElementsAre("a", "b", "c"));
  EXPECT_THAT(Do(KillTrial{TrialId(SweepId(1), TrialNumber(2))}).names, ElementsAre(HostOf(2)));
}

TEST_F(AffectedExecutorsTest, ALoadedStateIsKnown) {
  Do(CreateSweep{attune::testing::ToySpec(), "", ""});
  affected = AffectedExecutors();
  affected.Load(brain.state());
  EXPECT_THAT(Do(KillTrial{TrialId(SweepId(1), TrialNumber(0))}).names, ElementsAre(HostOf(0)));
}

TEST_F(AffectedExecutorsTest, DroppedCheckpointsAffectTheirHolderUntilRemoved) {
  Do(CreateSweep{attune::testing::ToySpec(), "", ""});
  const Trial trial = LiveTrial(0);
  for (int64_t step = 1; step <= 2; ++step) {
    const CheckpointRef saved{Step(step), "/step-" + std::to_string(step), "sha256:0"};
    Do(RecordFact{trial.live->epoch, CheckpointSaved{trial.live->id, saved}});
    const auto by = Do(Report(0, step, 0.1 * static_cast<double>(step), false));
    EXPECT_EQ(by.names.contains(HostOf(0)), step == 2);
  }
  EXPECT_TRUE(Do(RecordRemoval{{trial.id, 1, Step(1)}}).removals);
}

}  // namespace
}  // namespace attune::server
