#include "core/state/snapshot.h"

#include "core/brain/audit.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

namespace attune {
namespace {

// A state with some data in every field.
class Snapshot : public BrainTest {
 protected:
  Snapshot() {
    SweepSpec spec = testing::ToySpec();
    spec.space =
        SearchSpace({{.name = "x", .domain = IntDomain{.min = 0, .max = 999}},
                     {.name = "y",
                      .domain = FloatDomain{.min = 0.1, .max = 1, .scale = Scale::kLog},
                      .when = {{.parent = "x", .at_least = 500}}},
                     {.name = "z", .domain = CategoricalDomain{{std::string("a"), true, 1.5}}},
                     {.name = "c", .domain = ConstantDomain{std::string("constant")}}});
    spec.stop.max_trials = 1;
    Do(CreateSweep{spec, "text", "a key"});
    Save(0, 2);
    Report(0, 2, 0.9);
    Save(0, 4);
    Report(0, 4, 0.8);
    Finish(0);  // an ended sweep
    spec.stop.max_trials = 8;
    Create(spec);
    Save(0, 2);
    Report(0, 2, 0.5);  // paused by the scheduler
    Report(1, 1, 0.9);
    Do(PauseSweep{id()});  // asks trial 1 to yield
    Do(EnqueueTrial{id(), {{"x", int64_t{3}}, {"z", true}}, "another key"});
  }
};

TEST_F(Snapshot, EqualsTheStateOfAReplay) {
  Brain replayed(algorithms, [](const std::string&) { return true; });
  for (const Event& event : log) replayed.Replay(event);
  EXPECT_EQ(SaveState(replayed.state()), SaveState(brain.state()));
}

TEST_F(Snapshot, RoundTrips) {
  const std::string bytes = SaveState(brain.state());
  State state(algorithms);
  ASSERT_TRUE(LoadState(bytes, state).ok());
  EXPECT_EQ(SaveState(state), bytes);
}

TEST_F(Snapshot, DecidesLikeTheOriginalBrain) {
  Brain again(algorithms, [](const std::string&) { return true; });
  ASSERT_TRUE(again.Load(SaveState(brain.state())).ok());
  const size_t before = log.size();
  Finish(0);
  Do(ResumeSweep{id()});
  for (size_t i = before; i < log.size(); ++i) again.Replay(log[i]);
  EXPECT_EQ(SaveState(again.state()), SaveState(brain.state()));
}

TEST_F(Snapshot, ACutOrAlteredOneIsRefused) {
  const std::string bytes = SaveState(brain.state());
  for (size_t size = 0; size < bytes.size(); size += 7) {
    State state(algorithms);
    EXPECT_FALSE(LoadState(std::string_view(bytes).substr(0, size), state).ok()) << size;
  }
  for (size_t at = 0; at < bytes.size(); at += 7) {
    std::string altered = bytes;
    altered[at] = static_cast<char>(altered[at] ^ 0x55);
    State state(algorithms);
    EXPECT_FALSE(LoadState(altered, state).ok()) << at;
  }
}

using Audit = Snapshot;

TEST_F(Audit, FindsNothingInAnHonestLog) {
  Auditor auditor(algorithms);
  for (const Event& event : log) EXPECT_EQ(auditor.Next(event), std::nullopt);
  EXPECT_GE(auditor.proposals(), 3);
  EXPECT_GE(auditor.verdicts(), 3);
}

TEST_F(Audit, FindsAProposalThatTheSearcherDidNotMake) {
  Auditor auditor(algorithms);
  std::optional<std::string> fault;
  for (Event event : log) {
    if (auto* created = std::get_if<TrialCreated>(&event.fact);
        created != nullptr && created->trial.number == TrialNumber(1))
      created->config.Set("x", int64_t{7});
    if (auto found = auditor.Next(event); found && !fault) fault = found;
  }
  ASSERT_TRUE(fault);
  EXPECT_THAT(*fault, testing::Mentions("s2/1", "x=7", "counting", "x=1"));
}

// The audit need not find every missing event, but it must not crash.
TEST_F(Audit, SurvivesALogWithAnyOfItsEventsMissing) {
  int noticed = 0;
  for (size_t missing = 0; missing < log.size(); ++missing) {
    Auditor auditor(algorithms);
    std::optional<std::string> fault;
    uint64_t seq = 0;
    for (size_t i = 0; i < log.size() && !fault; ++i) {
      if (i == missing) continue;
      fault = auditor.Next({EventSeq(++seq), log[i].time, log[i].fact});
    }
    noticed += fault ? 1 : 0;
  }
  EXPECT_GT(noticed, std::ssize(log) / 3);
}

TEST_F(Audit, FindsAVerdictThatTheSchedulerDidNotGive) {
  Auditor auditor(algorithms);
  std::optional<std::string> fault;
  for (Event event : log) {
    if (auto* decided = std::get_if<TrialDecided>(&event.fact);
        decided != nullptr && decided->verdict.reason.rule == "toy")
      decided->verdict.reason = {.rule = "toy", .rank = 7, .text = "because"};
    if (auto found = auditor.Next(event); found && !fault) fault = found;
  }
  ASSERT_TRUE(fault);
  EXPECT_THAT(*fault, testing::Mentions("because", "judged"));
}

}  // namespace
}  // namespace attune
