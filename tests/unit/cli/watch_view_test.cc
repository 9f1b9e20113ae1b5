#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/text/numbers.h"
#include "cli/text/width.h"
#include "cli/watch/event_line.h"
#include "cli/watch/live_view.h"
#include "cli/watch/outcome.h"
#include "tests/support/golden.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using attune::testing::ExpectGolden;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

SweepModel Model(const std::vector<rest::Trial>& trials) {
  SweepModel model;
  model.Reset(MakeSweep("s1", "running"), trials);
  return model;
}

ServerEvent Changed(int trial, const std::string& state, const std::string& reason) {
  return {.kind = "trial_changed",
          .data = {{"trial", trial}, {"state", state}, {"reason", reason}}};
}

ServerEvent Reported(int trial, int step, Json value) {
  return {.kind = "trial_reported",
          .data = {{"trial", trial}, {"step", step}, {"metrics", {{"accuracy", value}}}}};
}

TEST(SweepModel, ReportsMoveTheBest) {
  SweepModel model = Model({MakeTrial(0, "running"), MakeTrial(1, "running")});
  EXPECT_EQ(model.Best()->number, 0);
  model.Apply(Reported(1, 4, 0.9));
  EXPECT_EQ(model.Best()->number, 1);
  model.Apply(Reported(1, 5, 0.1));
  EXPECT_EQ(model.Best()->best, 0.9);
  EXPECT_EQ(model.trials().at(1).last, 0.1);
}

TEST(SweepModel, NanIsNeverTheBest) {
  SweepModel model = Model({});
  model.Apply(Reported(0, 1, "nan"));
  model.Apply(Reported(1, 1, 0.2));
  model.Apply(Reported(1, 2, "nan"));
  EXPECT_EQ(model.Best()->number, 1);
  EXPECT_EQ(model.Best()->best, 0.2);
}

TEST(SweepModel, AppliesAnEventThatRestIncludesAgain) {
  SweepModel model = Model({MakeTrial(0, "running")});
  model.Apply(Reported(0, 2, 0.3));
  EXPECT_EQ(model.trials().at(0).step, 3);
  EXPECT_EQ(model.trials().at(0).best, 0.412);
}

TEST(SweepModel, CountsTrialsThatReachedARung) {
  const SweepModel model = Model({MakeTrial(0, "running"), MakeTrial(1, "stopped")});
  EXPECT_EQ(model.CountReached(1), 2);
  EXPECT_EQ(model.CountReached(9), 0);
  EXPECT_EQ(model.ended_trials(), 1);
}

TEST(EventLine, HasTheReasonOfAStop) {
  SweepModel model = Model({});
  const std::string reason = "stopped at step 1: accuracy 0.31 is rank 4 of 5 at rung 1";
  const ServerEvent event = Changed(3, "stopped", reason);
  model.Apply(event);
  EXPECT_EQ(EventLine(event, model), "trial 3 " + reason);
}

TEST(EventLine, NamesTheStateIfTheReasonDoesNot) {
  SweepModel model = Model({});
  const ServerEvent event = Changed(3, "failed", "attempt 4");
  model.Apply(event);
  EXPECT_EQ(EventLine(event, model), "trial 3 failed: attempt 4");
}

TEST(EventLine, OmitsTheLogOfAFailedAttempt) {
  const SweepModel model = Model({MakeTrial(4, "running")});
  const ServerEvent event{.kind = "attempt_changed",
                          .data = {{"trial", 4},
                                   {"attempt", 2},
                                   {"state", "ended"},
                                   {"outcome", "failed"},
                                   {"failure", "rank 1: SIGKILL\nlast words"}}};
  EXPECT_EQ(EventLine(event, model), "trial 4 attempt 2 failed: rank 1: SIGKILL");
}

TEST(EventLine, DescribesChangesOfExecutors) {
  const SweepModel model = Model({});
  const auto line = [&](Json data) {
    data["executor"] = "box";
    if (!data.contains("state")) data["state"] = nullptr;
    return EventLine({.kind = "executor_changed", .data = data}, model);
  };
  const std::vector<Json> changes = {
      {{"state", "lost"}},
      {{"drained", true}, {"reason", "a new disk"}, {"now", false}},
      {{"drained", true}, {"reason", ""}},
      {{"drained", false}},
      {{"health_problem", "its disk is full"}},
      {{"health_problem", ""}},
      {{"quarantined", true}, {"reason", "gangs fail there"}, {"until", "noon"}},
      {{"quarantined", false}, {"reason", "its time is over"}}};
  std::string text;
  for (const Json& change : changes) {
    const std::string described = line(change);
    EXPECT_THAT(described, HasSubstr("box"));
    for (const char* key : {"reason", "health_problem", "until"})
      EXPECT_THAT(described, HasSubstr(change.value(key, "")));
    text += change.dump() + "\n    " + described + "\n";
  }
  ExpectGolden("cli/executor_events", text);
  EXPECT_EQ(line(Json::object()), "");
}

TEST(EventLine, IsEmptyForReports) {
  const SweepModel model = Model({MakeTrial(0, "running")});
  EXPECT_EQ(EventLine(Reported(0, 4, 0.5), model), "");
}

TEST(SummaryLine, CountsAndNamesTheBest) {
  const SweepModel model =
      Model({MakeTrial(0, "running"), MakeTrial(1, "stopped"), MakeTrial(2, "stopped")});
  EXPECT_THAT(SummaryLine(model),
              AllOf(HasSubstr("2/12 "), HasSubstr("1 running"), HasSubstr("2 stopped"),
                    HasSubstr("accuracy 0.412"), HasSubstr("trial 0")));
}

TEST(LiveView, ShowsCountsRungsAndTrials) {
  SweepModel model = Model({MakeTrial(0, "running"), MakeTrial(1, "stopped")});
  model.Apply(Reported(0, 9, 0.871));
  const double now = *ParseTime("2026-11-21T10:01:30.000000Z");

  const auto lines = LiveView(model, Style(false), {.columns = 100, .rows = 24}, now);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_THAT(lines[0], AllOf(HasSubstr("1/12 "), HasSubstr("0.871"), HasSubstr("1m30s")));
  EXPECT_THAT(lines[3], AllOf(HasSubstr(" 0  running   9/9 "), HasSubstr("0.871")));
  EXPECT_THAT(lines[4], AllOf(HasSubstr(" 1  stopped   3/9 "), HasSubstr("-0.459")));
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  ExpectGolden("cli/live_view", text);
}

TEST(LiveView, FitsTheTerminal) {
  std::vector<rest::Trial> trials;
  for (int i = 0; i < 40; ++i) trials.push_back(MakeTrial(i, i < 30 ? "running" : "stopped"));
  const SweepModel model = Model(trials);
  for (const int columns : {1, 20, 43, 200}) {
    const auto lines = LiveView(model, Style(true), {.columns = columns, .rows = 10}, 0);
    EXPECT_LT(lines.size(), 10u);
    for (const std::string& line : lines) EXPECT_LE(DisplayWidth(line), std::max(1, columns - 1));
  }
}

TEST(LiveView, ShowsTheWaitingReason) {
  rest::Sweep sweep = MakeSweep("s1", "running");
  sweep.waiting_reason = "trial 0 needs 8 CPUs; box has 2";
  SweepModel model;
  model.Reset(sweep, {});
  EXPECT_THAT(LiveView(model, Style(false), {}, 0), Contains(HasSubstr("trial 0 needs")));
}

TEST(LiveView, AlwaysShowsTheBestTrial) {
  std::vector<rest::Trial> trials;
  for (int i = 0; i < 40; ++i) trials.push_back(MakeTrial(i, i == 39 ? "completed" : "running"));
  trials[39].best = 0.99;
  const auto lines = LiveView(Model(trials), Style(false), {.columns = 80, .rows = 10}, 0);
  EXPECT_THAT(lines, Contains(StartsWith("   39  completed")));
}

TEST(TimeLeft, WaitsForThreeTrials) {
  const double now = *ParseTime("2026-11-21T10:01:30.000000Z");
  EXPECT_EQ(TimeLeft(Model({MakeTrial(0, "stopped"), MakeTrial(1, "stopped")}), now), "");
  EXPECT_EQ(
      TimeLeft(Model({MakeTrial(0, "stopped"), MakeTrial(1, "stopped"), MakeTrial(2, "completed")}),
               now),
      "~4m30s");
}

TEST(Output, RedrawsInPlaceAndPrintsAbove) {
  std::ostringstream text;
  TerminalSize size{.columns = 20, .rows = 10};
  Output output(text, {.live = true, .size = [&] { return size; }});
  output.Draw({"one", "two"});
  output.Print("note");
  EXPECT_EQ(text.str(), "one\ntwo\n\r\x1b[2A\x1b[Jnote\none\ntwo\n");
}

TEST(Output, ErasesRowsThatANarrowerTerminalWrapped) {
  std::ostringstream text;
  TerminalSize size{.columns = 20, .rows = 10};
  Output output(text, {.live = true, .size = [&] { return size; }});
  output.Draw({"a line of twenty co."});
  size.columns = 8;
  output.Draw({"x"});
  EXPECT_THAT(text.str(), HasSubstr("\x1b[3A\x1b[Jx\n"));
}

TEST(OutcomeJson, HasAStableFormat) {
  const Json outcome = OutcomeJson(MakeSweep("s1", "completed"), 12.5);
  EXPECT_EQ(outcome.dump(),
            R"({"sweep":"s1","state":"completed","best":{"trial":3,"config":{"lr":0.1,"width":32},)"
            R"("metrics":{"accuracy":0.871,"loss":0.36},)"
            R"("checkpoint":"/data/sweeps/s1/trials/3/checkpoints/step-9-attempt-1"},)"
            R"("trials":{"pending":0,"running":1,"paused":0,"completed":2,"stopped":5,)"
            R"("failed":0,"killed":0},"wall_seconds":12.5})");
}

TEST(OutcomeJson, HasNullAsBestWithoutAReport) {
  rest::Sweep sweep = MakeSweep("s1", "failed");
  sweep.best.reset();
  EXPECT_TRUE(OutcomeJson(sweep, 1)["best"].is_null());
}

TEST(OutcomeLines, HaveTheBestTrialAndWhyOthersStopped) {
  const std::vector<rest::Trial> trials = {MakeTrial(3, "completed"), MakeTrial(17, "stopped")};
  const auto lines =
      OutcomeLines(MakeSweep("s1", "completed"), trials, 133, Style(false), /*width=*/0);
  EXPECT_THAT(lines, AllOf(Contains(HasSubstr("trial 3: accuracy 0.871")),
                           Contains(HasSubstr("rank 9 of 11 at rung 3"))));
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  ExpectGolden("cli/outcome", text);
}

TEST(OutcomeLines, NameTheCheckpointsStepIfItDiffersFromTheBest) {
  rest::Sweep sweep = MakeSweep("s1", "completed");
  sweep.best->checkpoint = "/data/step-8";
  const auto lines = [&] { return OutcomeLines(sweep, {}, 133, Style(false), /*width=*/0); };
  EXPECT_THAT(lines(), Contains("  checkpoint    /data/step-8"));
  sweep.best->checkpoint_step = 8;
  EXPECT_THAT(lines(), Contains(AllOf(HasSubstr("/data/step-8"), HasSubstr("step 8"))));
}

TEST(OutcomeLines, ShortenLongLists) {
  std::vector<rest::Trial> trials;
  for (int i = 0; i < 100; ++i) trials.push_back(MakeTrial(i, "stopped"));
  const auto lines = OutcomeLines(MakeSweep("s1", "completed"), trials, 1, Style(false), 0);
  EXPECT_LT(lines.size(), 30u);
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("92"), HasSubstr("attune trial list s1"))));
}

TEST(ExitCodeOfSweep, Is5ForFailedAndKilledSweeps) {
  EXPECT_EQ(ExitCodeOfSweep(MakeSweep("s1", "completed")), ExitCode::kSuccess);
  EXPECT_EQ(ExitCodeOfSweep(MakeSweep("s1", "stopped")), ExitCode::kSuccess);
  EXPECT_EQ(ExitCodeOfSweep(MakeSweep("s1", "failed")), ExitCode::kSweepFailed);
  EXPECT_EQ(ExitCodeOfSweep(MakeSweep("s1", "killed")), ExitCode::kSweepFailed);
}

}  // namespace
}  // namespace attune::cli
