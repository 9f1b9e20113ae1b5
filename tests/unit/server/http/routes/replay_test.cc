#include "server/http/routes/sweeps/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/algorithms.h"
#include "server/http/routes/trials/schedule.h"
#include "server/store/json.h"
#include "server/store/sqlite_store.h"
#include "simulator/simulation.h"
#include "sweepfile/sweepfile.h"
#include "tests/support/mentions.h"
#include "tests/support/scratch_folder.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

// A store with one sweep that ran under asha (η 3, rungs 1, 3, 9, 27) on 16 slots.
class ReplayTest : public ::testing::Test {
 protected:
  void Record(int trials) {
    const SweepSpec spec{
        .name = "recorded",
        .program = {.command = {"train"}, .working_directory = "/"},
        .objectives = {Minimise("loss")},
        .space = SearchSpace({{.name = "lr", .domain = FloatDomain{.min = 0, .max = 1}}}),
        .searcher = {.name = "random"},
        .scheduler = {.name = "asha",
                      .options = {{"min", int64_t{1}},
                                  {"mode", std::string("stop")},
                                  {"reduction_factor", int64_t{3}},
                                  {"brackets", int64_t{1}}}},
        .max_step = Step(27),
        .gang = {.per_worker = {.cpus = 1, .gpus = 1}},
        .stop = {.max_trials = trials}};
    const auto curves = simulate::MakeCurves("mixed", spec.objective(), spec.space, Step(27), 7);
    std::vector<Event> events;
    const auto ran =
        simulate::Simulate(spec, cli::AllAlgorithms(), **curves, {.slots = 16, .step = Seconds(60)},
                           [&](const Event& event) { events.push_back(event); });
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    recorded_ = *ran;
    ASSERT_TRUE(store_->Append(events).ok());
  }

  Response Ask(const std::string& body, const std::string& slots = "") {
    Request request{.method = "POST", .body = body};
    if (!slots.empty()) request.query.emplace("slots", slots);
    return Replays(*reader_, cli::AllAlgorithms())
        .ReplaySweep(request, {.trial = {SweepId(1), TrialNumber(0)}});
  }

  Json Replay(const std::string& body, const std::string& slots = "") {
    const Response response = Ask(body, slots);
    EXPECT_EQ(response.status, 200) << response.body;
    return Json::parse(response.body);
  }

  attune::testing::ScratchFolder folder_;
  std::unique_ptr<SqliteStore> store_ = SqliteStore::Open(folder_ / "attune.db").value();
  std::unique_ptr<Reader> reader_ = Reader::Open(folder_ / "attune.db").value();
  simulate::Summary recorded_;
};

TEST_F(ReplayTest, AReplayWithoutChangesEqualsTheRecording) {
  Record(60);
  const Json replay = Replay("");
  EXPECT_EQ(replay.at("slots"), 16);
  EXPECT_EQ(replay.at("unknown"), 0);
  EXPECT_EQ(replay.at("worst_case"), replay.at("best_case"));
  for (const char* key : {"slot_hours", "cpu_hours", "gpu_hours", "wall_seconds", "steps", "best"})
    EXPECT_EQ(replay.at("recorded").at(key), replay.at("worst_case").at(key)) << key;
  EXPECT_DOUBLE_EQ(replay.at("recorded").at("gpu_hours").get<double>(),
                   recorded_.slot_seconds / 3600);
  EXPECT_DOUBLE_EQ(replay.at("recorded").at("cpu_hours").get<double>(),
                   recorded_.slot_seconds / 3600);
  EXPECT_EQ(replay.at("worst_case").at("regret"), 0);
  EXPECT_EQ(replay.at("worst_case").at("keeps_best_trial"), true);
  EXPECT_EQ(replay.at("trials").size(), 60);
}

TEST_F(ReplayTest, ChangesUseTheKeysOfTheSweepFile) {
  Record(60);
  const Json replay = Replay("{scheduler: {reduction_factor: 9}, stop: {max_trials: 30}}", "4");
  EXPECT_EQ(replay.at("slots"), 4);
  EXPECT_EQ(replay.at("scheduler").at("reduction_factor"), 9);
  EXPECT_EQ(replay.at("recorded_scheduler").at("reduction_factor"), 3);
  EXPECT_EQ(replay.at("worst_case").at("trials").at("pending"), 30);
  EXPECT_GT(replay.at("worst_case").at("wall_seconds"), replay.at("recorded").at("wall_seconds"));
  EXPECT_EQ(replay.at("trials").at(59).at("best_case").at("state"), "pending");
}

TEST_F(ReplayTest, TrialsBeyondTheirRecordingAreUnknown) {
  Record(60);
  const Json replay = Replay("{scheduler: {name: fifo}}");
  EXPECT_EQ(replay.at("unknown"), recorded_.Count(TrialState::kStopped));
  EXPECT_EQ(replay.at("worst_case").at("steps"), 60 * 27);
  EXPECT_EQ(replay.at("worst_case").at("keeps_best_trial"), true);
}

TEST_F(ReplayTest, FaultsNameTheirPlaces) {
  Record(6);
  const Response unknown = Ask("scheduler: {name: ashaa}");
  EXPECT_EQ(unknown.status, 422);
  EXPECT_THAT(unknown.body, HasSubstr("asha?"));
  EXPECT_THAT(unknown.body, HasSubstr("\"pointer\":\"/scheduler/name\""));
  EXPECT_THAT(Ask("priority: 3").body, testing::Mentions("`scheduler`", "`stop`"));
  EXPECT_EQ(Ask("", "0").status, 400);
  const Response pbt = Ask("scheduler: {name: pbt, perturbation_interval: 1}");
  EXPECT_EQ(pbt.status, 422);
  EXPECT_THAT(pbt.body, HasSubstr("scheduler.name: pbt"));
}

TEST_F(ReplayTest, TheScheduleOfATrialWithoutClonesIsAValidSweepFile) {
  Record(6);
  const TrialId trial(SweepId(1), TrialNumber(2));
  const Response response = Schedules(*reader_).Get({}, {.trial = trial});
  ASSERT_EQ(response.status, 200) << response.body;
  const std::string file = Json::parse(response.body).at("file");
  const auto parsed = sweepfile::ParseSweep(file, {.algorithms = &cli::AllAlgorithms()});
  ASSERT_TRUE(parsed.spec) << file;
  EXPECT_EQ(parsed.spec->scheduler.name, "fifo");
  EXPECT_EQ(parsed.spec->max_step, reader_->Trial(trial)->step);
  EXPECT_EQ(parsed.spec->initial_points[0], reader_->Trial(trial)->config);
}

TEST_F(ReplayTest, AMissingSweepIsNotFound) { EXPECT_EQ(Ask("").status, 404); }

TEST_F(ReplayTest, ASweepFileIsSimulated) {
  const std::string file =
      "command: [/bin/train]\nworking_directory: /\nmetric: {name: loss, mode: min}\n"
      "parameters: {lr: {min: 0.1, max: 1}}\nscheduler: {name: fifo, max: 10}\n"
      "stop: {max_trials: 6}\n";
  Replays replays(*reader_, cli::AllAlgorithms());
  const auto simulate = [&](const std::string& body, const std::string& slots,
                            const std::string& seconds) {
    Request request{.method = "POST", .body = body};
    request.query.emplace("slots", slots);
    request.query.emplace("step_seconds", seconds);
    return replays.SimulateSweep(request, {});
  };
  const Response response = simulate(file, "2", "30");
  ASSERT_EQ(response.status, 200) << response.body;
  const Json outcome = Json::parse(response.body);
  EXPECT_EQ(outcome.at("slots"), 2);
  EXPECT_EQ(outcome.at("steps"), 60);
  EXPECT_EQ(outcome.at("trials").at("completed"), 6);
  // Two trials at a time, each with 10 steps of 30 s.
  EXPECT_NEAR(outcome.at("wall_seconds").get<double>(), 900, 1);
  EXPECT_EQ(simulate(file, "0", "30").status, 400);
  EXPECT_EQ(simulate(file, "2", "nan").status, 400);
  EXPECT_EQ(simulate("metric: 3", "2", "1").status, 422);
}

}  // namespace
}  // namespace attune::server
