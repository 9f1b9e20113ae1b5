#include "server/store/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "base/result.h"
#include "server/store/format_time.h"
#include "server/store/sqlite_store.h"
#include "server/store/tables/activity.h"
#include "server/store/tables/tables.h"
#include "tests/support/sample_log.h"
#include "tests/unit/server/store/reader_fixture.h"

namespace attune::server {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ReaderTest, StatesFollowTheFacts) {
  EXPECT_EQ(reader_->Trial(Trial(0))->state, "completed");
  EXPECT_EQ(reader_->Trial(Trial(1))->state, "stopped");
  EXPECT_EQ(reader_->Trial(Trial(2))->state, "paused");
  EXPECT_EQ(reader_->Trial(Trial(2))->reason, "paused at rung 1");
  EXPECT_EQ(reader_->Trial(Trial(3))->state, "pending");
  EXPECT_EQ(reader_->Trial(Trial(3))->reason, "executor box was lost: its lease ended");
}

TEST_F(ReaderTest, AResumedTrialLosesTheReasonItWaitedFor) {
  Add(AttemptAssigned{.attempt = {Trial(3), 2}, .epoch = Epoch(6), .milestone = Step(3)});
  EXPECT_EQ(reader_->Trial(Trial(3))->state, "running");
  EXPECT_EQ(reader_->Trial(Trial(3))->reason, "");
}

TEST_F(ReaderTest, OnlyFiniteValuesAreBest) {
  EXPECT_EQ(reader_->Trial(Trial(3))->best, std::nullopt);
  EXPECT_EQ(reader_->Trial(Trial(2))->best, 0.6);
}

TEST_F(ReaderTest, QueriesOfAHeldSnapshotSeeNoLaterEvents) {
  const EventSeq before = reader_->LastSeq().value();
  const Status held = reader_->HoldSnapshot([&] {
    EXPECT_EQ(reader_->LastSeq().value(), before);
    Add(AttemptAssigned{.attempt = {Trial(3), 2}, .epoch = Epoch(6), .milestone = Step(3)});
    EXPECT_EQ(reader_->LastSeq().value(), before);
    EXPECT_EQ(reader_->Trial(Trial(3))->state, "pending");
    std::thread([&] { EXPECT_EQ(reader_->Trial(Trial(3))->state, "running"); }).join();
  });
  EXPECT_TRUE(held.ok());
  EXPECT_EQ(reader_->Trial(Trial(3))->state, "running");
}

TEST_F(ReaderTest, ADecisionIsExplainedByEarlierOnesAtItsRung) {
  const auto decide = [&](uint32_t trial, double value, VerdictKind kind) {
    Add(TrialDecided{
        .attempt = {Trial(trial), 1},
        .step = Step(2),
        .verdict = {.kind = kind, .reason = {.rule = "asha", .rung = Step(2), .value = value}}});
  };
  decide(0, 0.7, VerdictKind::kStop);
  decide(3, std::numeric_limits<double>::quiet_NaN(), VerdictKind::kStop);
  decide(1, 0.9, VerdictKind::kContinue);
  decide(0, 0.95, VerdictKind::kContinue);  // judged again; its first value counts
  decide(2, 0.8, VerdictKind::kPause);
  decide(1, 0.1, VerdictKind::kStop);  // later
  const auto explanation = reader_->Explain(Trial(2), std::nullopt);
  ASSERT_TRUE(explanation.ok() && *explanation);
  EXPECT_EQ((*explanation)->decision.verdict, "pause");
  std::vector<uint32_t> order;
  for (const RungRow& row : (*explanation)->rung) order.push_back(row.trial.value);
  EXPECT_THAT(order, ElementsAre(1, 2, 0, 3));
  EXPECT_EQ((*explanation)->rung[2].value, 0.7);
  EXPECT_EQ((*explanation)->rung[3].value, std::nullopt);
  EXPECT_FALSE(reader_->Explain(Trial(2), Step(9)).value().has_value());
}

TEST_F(ReaderTest, TheBestOfAMinimisingSweepIsTheLowest) {
  SweepSpec spec = SampleSpec();
  spec.objectives = {Minimise("loss")};
  Add(SweepCreated{.sweep = SweepId(2), .spec = spec});
  for (uint32_t number = 0; number < 3; ++number) {
    const TrialId trial(SweepId(2), TrialNumber(number));
    Add(TrialCreated{trial, SampleConfig(0.1), "random"});
    Add(AttemptAssigned{.attempt = {trial, 1}, .epoch = Epoch(10 + number)});
    for (int64_t step = 1; step <= 3; ++step) {
      const double loss = std::abs(static_cast<double>(number) - 1.0) + 2.0 - (step == 2 ? 1 : 0);
      Add(TrialReported{{trial, 1}, {.step = Step(step), .metrics = {{"loss", loss}}}});
    }
  }
  const auto sweep = reader_->Sweep(SweepId(2));
  ASSERT_TRUE(sweep.ok() && sweep->Best() != nullptr);
  EXPECT_EQ(sweep->Best()->trial, TrialNumber(1));
  EXPECT_EQ(sweep->Best()->values.front(), 1.0);
  EXPECT_EQ(sweep->Best()->step, Step(2));
}

TEST_F(ReaderTest, AConfigurationFromASchedulerHasItsReason) {
  const TrialId donor(SweepId(1), TrialNumber(0));
  const TrialId trial(SweepId(1), TrialNumber(1));
  EXPECT_EQ(reader_->Trial(trial)->rationale->text, "drawn at random");
  const CheckpointId from{donor, 1, Step(3)};
  Add(TrialDecided{
      .attempt = {trial, 1},
      .step = Step(3),
      .verdict = Verdict::Exploit(from, SampleConfig(0.3), {.rule = "pbt", .text = "a clone"}),
      .cloned = KeptCheckpoint{.attempt = 1, .ref = {Step(3), "/data/step-3", "sha256:03"}}});
  EXPECT_EQ(reader_->Trial(trial)->config, SampleConfig(0.3));
  EXPECT_EQ(reader_->Trial(trial)->rationale,
            (Rationale{.rule = "pbt", .from = {TrialNumber(0)}, .text = "a clone"}));
  Add(TrialPromoted{.trial = trial,
                    .reason = {.rule = "pbt", .peers = 8, .text = "lr times 1.2"},
                    .config = SampleConfig(0.36)});
  EXPECT_EQ(reader_->Trial(trial)->rationale, (Rationale{.rule = "pbt", .text = "lr times 1.2"}));
}

TEST_F(ReaderTest, ARunningTrialKeepsTheReasonOfItsPromotion) {
  const TrialId trial(SweepId(1), TrialNumber(1));
  const DecisionRow last = reader_->Detail(trial)->decisions.back();
  Add(TrialPromoted{.trial = trial,
                    .reason = {.rule = "asha",
                               .rung = Step(3),
                               .value = 0.875,
                               .cutoff = 0.75,
                               .rank = 1,
                               .peers = 3,
                               .text = "promoted at rung 3"}});
  Add(AttemptAssigned{.attempt = {trial, 2}, .epoch = Epoch(20)});
  EXPECT_EQ(reader_->Trial(trial)->reason, "");
  const DecisionRow promotion = reader_->Detail(trial)->decisions.back();
  EXPECT_EQ(promotion.verdict, "promote");
  EXPECT_EQ(promotion.attempt, last.attempt);
  EXPECT_EQ(promotion.step, reader_->Trial(trial)->step);
  EXPECT_EQ(promotion.rule, "asha");
  EXPECT_EQ(promotion.rung, Step(3));
  EXPECT_EQ(promotion.value, 0.875);
  EXPECT_EQ(promotion.cutoff, 0.75);
  EXPECT_EQ(promotion.rank, 1);
  EXPECT_EQ(promotion.peers, 3);
  EXPECT_EQ(promotion.policy, last.policy);
  const auto explanation = reader_->Explain(trial, std::nullopt);
  ASSERT_TRUE(explanation.ok() && *explanation);
  EXPECT_EQ((*explanation)->decision.reason, "promoted at rung 3");
  EXPECT_FALSE((*explanation)->rung.empty());
  const auto of_report = reader_->Explain(trial, last.step);
  ASSERT_TRUE(of_report.ok() && *of_report);
  EXPECT_EQ((*of_report)->decision.verdict, last.verdict) << "the step is that of the report";
}

TEST_F(ReaderTest, AFilteredReadOfEventsIsBounded) {
  const TrialId trial(SweepId(1), TrialNumber(3));
  for (int64_t i = 1; i <= int64_t{kEventsPerScan}; ++i)
    Add(MetricsLogged{{trial, 1}, i, static_cast<double>(i), {}});
  const auto page = reader_->EventsAfter(EventSeq(1), SweepId(7), 256);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->seen, EventSeq(1 + kEventsPerScan));
  EXPECT_TRUE(page->more);
  const auto rest = reader_->EventsAfter(page->seen, SweepId(7), 256);
  EXPECT_EQ(rest->seen, reader_->LastSeq().value());
  EXPECT_FALSE(rest->more);
}

TEST_F(ReaderTest, ResultsComeFromEndedTrials) {
  SweepSpec spec = SampleSpec();
  spec.objectives = {Maximise("accuracy"), Minimise("latency")};
  Add(SweepCreated{.sweep = SweepId(2), .spec = spec});
  const auto run = [&](uint32_t number, Metrics metrics, std::optional<TrialState> end) {
    const TrialId trial(SweepId(2), TrialNumber(number));
    Add(TrialCreated{trial, SampleConfig(0.01 * (number + 1)), "random"});
    Add(AttemptAssigned{.attempt = {trial, 1}, .epoch = Epoch(20 + number)});
    Add(TrialReported{{trial, 1}, {.step = Step(1), .metrics = std::move(metrics)}});
    if (!end) return;
    Add(AttemptEnded{.attempt = {trial, 1}, .outcome = Outcome::kFinished});
    Add(TrialEnded{trial, *end, ""});
  };
  run(0, {{"accuracy", 0.5}, {"latency", 20}, {"$val.loss [1]", 3}}, TrialState::kCompleted);
  run(1, {{"accuracy", 0.9}, {"latency", 10}}, std::nullopt);
  run(2, {{"accuracy", 0.6}, {"latency", 30}}, TrialState::kStopped);
  run(3, {{"accuracy", std::nan("")}, {"latency", 1}}, TrialState::kFailed);
  run(4, {{"accuracy", 0.8}, {"latency", 5}}, TrialState::kKilled);

  const auto results = reader_->Results(SweepId(2));
  ASSERT_TRUE(results.ok()) << results.error().message;
  ASSERT_EQ(results->size(), 3u);
  EXPECT_EQ((*results)[0].metrics,
            (Metrics{{"accuracy", 0.5}, {"latency", 20}, {"$val.loss [1]", 3}}));
  EXPECT_EQ((*results)[1].metrics, (Metrics{{"accuracy", 0.6}, {"latency", 30}}));
  EXPECT_EQ((*results)[1].config, SampleConfig(0.03));
  EXPECT_FALSE((*results)[1].complete);
  EXPECT_TRUE((*results)[2].metrics.empty()) << "its report does not count";
  EXPECT_TRUE((*results)[2].failed);
}

TEST_F(ReaderTest, TheFrontIsFeasibleAndNotDominated) {
  SweepSpec spec = SampleSpec();
  spec.objectives = {Maximise("accuracy"), Minimise("latency")};
  spec.constraints = {{.metric = "memory", .max = 8}};
  Add(SweepCreated{.sweep = SweepId(2), .spec = spec, .owner = "ada"});
  const TrialId trial(SweepId(2), TrialNumber(0));
  Add(TrialCreated{trial, SampleConfig(0.1), "random"});
  Add(AttemptAssigned{.attempt = {trial, 1}, .epoch = Epoch(10)});
  int64_t step = 0;
  const auto report = [&](double accuracy, double latency, double memory) {
    Add(TrialReported{
        {trial, 1},
        {.step = Step(++step),
         .metrics = {{"accuracy", accuracy}, {"latency", latency}, {"memory", memory}}}});
  };
  report(0.5, 20, 4);
  report(0.7, 30, 4);
  report(0.9, 10, 9);  // infeasible: too large
  report(0.6, 20, 8);  // dominates the first one
  report(std::nan(""), 1, 1);
  const auto sweep = reader_->Sweep(SweepId(2));
  ASSERT_TRUE(sweep.ok()) << sweep.error().message;
  ASSERT_EQ(sweep->front.size(), 2u);
  EXPECT_EQ(sweep->front[0].step, Step(2));
  EXPECT_EQ(sweep->front[1].values, (std::vector<double>{0.6, 20}));
  EXPECT_EQ(sweep->front[1].metrics.at("memory"), 8);
  EXPECT_EQ(sweep->Best()->step, Step(2));
  EXPECT_EQ(reader_->Trial(trial)->best, 0.7);
  EXPECT_EQ(sweep->owner, "ada");
}

TEST_F(ReaderTest, AnEditChangesTheSpecAndNamesItsActor) {
  SweepSpec spec = SampleSpec();
  spec.priority = 7;
  spec.stop.max_trials = 41;
  Event event = log_.Next(SweepEdited{SweepId(1), spec, {"priority 7", "stop.max_trials 41"}});
  event.actor = "ada";
  ASSERT_TRUE(store_->Append({&event, 1}).ok());
  const auto sweep = reader_->Sweep(SweepId(1));
  EXPECT_EQ(sweep->spec, spec);
  EXPECT_EQ(sweep->edit->actor, "ada");
  EXPECT_EQ(sweep->edit->changes.size(), 2u);
}

TEST_F(ReaderTest, NotesAndTagsAreThoseOfTheLastAnnotation) {
  EXPECT_THAT(reader_->Sweep(SweepId(1))->tags, ElementsAre("baseline")) << "of its file";
  Add(SweepAnnotated{SweepId(1), {.note = "first\nsecond", .tags = {{"a \"b\"", "c"}}}});
  Add(SweepAnnotated{SweepId(1), {.note = "third"}});
  Add(TrialAnnotated{Trial(2), {.note = "of a trial", .tags = {{"best"}}}});
  Add(TrialAnnotated{Trial(2), {.note = ""}});
  EXPECT_EQ(reader_->Sweep(SweepId(1))->note, "third");
  EXPECT_THAT(reader_->Sweep(SweepId(1))->tags, ElementsAre("a \"b\"", "c"));
  EXPECT_EQ(reader_->Trial(Trial(2))->note, "");
  EXPECT_THAT(reader_->Trial(Trial(2))->tags, ElementsAre("best"));
  EXPECT_THAT(reader_->Trial(Trial(1))->tags, IsEmpty());
  const auto before = reader_->Sweep(SweepId(1))->tags;
  ASSERT_TRUE(store_->Rebuild().ok());
  EXPECT_EQ(reader_->Sweep(SweepId(1))->tags, before);
}

TEST_F(ReaderTest, AnEditReplacesTagsOnlyIfItChangesThoseOfTheFile) {
  Add(SweepAnnotated{SweepId(1), {.tags = {{"best"}}}});
  SweepSpec spec = SampleSpec();
  spec.priority = 7;
  Add(SweepEdited{SweepId(1), spec, {"priority 7"}});
  EXPECT_THAT(reader_->Sweep(SweepId(1))->tags, ElementsAre("best"));
  spec.tags = {"nightly"};
  Add(SweepEdited{SweepId(1), spec, {"tags nightly"}});
  EXPECT_THAT(reader_->Sweep(SweepId(1))->tags, ElementsAre("nightly"));
}

TEST_F(ReaderTest, ActivityHasOldAndNewNotesAndTags) {
  const auto add_as_ada = [&](Fact fact) {
    Event event = log_.Next(std::move(fact));
    event.actor = "ada";
    ASSERT_TRUE(store_->Append({&event, 1}).ok());
  };
  add_as_ada(SweepAnnotated{SweepId(1), {.note = "slow", .tags = {{"best", "lr"}}}});
  add_as_ada(TrialAnnotated{Trial(2), {.note = std::string(kActivityNoteBytes + 1, 'x')}});
  add_as_ada(SweepAnnotated{SweepId(1), {.note = "", .tags = std::vector<std::string>()}});
  const auto actions = reader_->Activity(SweepId(1), std::nullopt, 3);
  ASSERT_EQ(actions->size(), 3u);
  EXPECT_EQ(actions->at(0).detail, R"(tags none (was best, lr); note none (was "slow"))");
  EXPECT_EQ(actions->at(1).trial, TrialNumber(2));
  EXPECT_LT(actions->at(1).detail.size(), kActivityNoteBytes + 50) << "a long note is cut";
  EXPECT_EQ(actions->at(2).name, "annotate");
  EXPECT_EQ(actions->at(2).detail, R"(tags best, lr (was baseline); note "slow" (was none))");
}

TEST_F(ReaderTest, AVerdictNamesItsPolicy) {
  const auto explain = [&] { return std::move(reader_->Explain(Trial(2), std::nullopt)->value()); };
  const Explanation before = explain();
  EXPECT_THAT(before.policy, HasSubstr(R"("reduction_factor":3)"));
  EXPECT_FALSE(before.policy_changed);

  SweepSpec spec = SampleSpec();
  spec.stop.max_trials = 41;
  Add(SweepEdited{SweepId(1), spec, {"stop.max_trials 41"}});
  EXPECT_FALSE(explain().policy_changed) << "the policy has not changed";

  spec.scheduler.options["reduction_factor"] = int64_t{4};
  Add(SweepEdited{SweepId(1), spec, {"scheduler.reduction_factor 4"}});
  EXPECT_TRUE(explain().policy_changed);
  EXPECT_EQ(explain().policy, before.policy) << "earlier decisions keep their policy";
  Add(TrialDecided{.attempt = {Trial(2), 1},
                   .step = Step(9),
                   .verdict = Verdict::Continue({.rule = "asha", .rung = Step(9)})});
  EXPECT_THAT(explain().policy, HasSubstr(R"("reduction_factor":4)"));
  EXPECT_GT(explain().decision.policy, before.decision.policy);
  EXPECT_FALSE(explain().policy_changed);
}

TEST_F(ReaderTest, EventsNameTheirActors) {
  Event event = log_.Next(SearchExhausted{SweepId(1)});
  event.actor = "box";
  ASSERT_TRUE(store_->Append({&event, 1}).ok());
  const auto page = reader_->EventsAfter(EventSeq(event.seq.value - 2), std::nullopt, 10);
  ASSERT_EQ(page->events.size(), 2u);
  EXPECT_EQ(page->events[0].actor, kService);
  EXPECT_EQ(page->events[1].actor, "box");
}

TEST_F(ReaderTest, TheBestStepsCheckpointIsPreferred) {
  Add(CheckpointSaved{{Trial(0), 2}, {Step(9), "/step-9", "sha256:09"}, 1});
  Add(CheckpointSaved{{Trial(0), 2}, {Step(10), "/step-10", "sha256:10"}, 1});
  EXPECT_EQ(reader_->Sweep(SweepId(1))->Best()->checkpoint, "/step-9");
  EXPECT_EQ(reader_->Sweep(SweepId(1))->Best()->checkpoint_step, 9);
  EXPECT_EQ(reader_->Trial(Trial(0))->checkpoint, "/step-10");
}

TEST_F(ReaderTest, TheReportingAttemptsCheckpointIsPreferred) {
  Add(CheckpointSaved{{Trial(0), 2}, {Step(9), "/step-9-attempt-2", "sha256:09"}, 1});
  Add(CheckpointSaved{{Trial(0), 3}, {Step(9), "/step-9-attempt-3", "sha256:19"}, 1});
  EXPECT_EQ(reader_->Sweep(SweepId(1))->Best()->checkpoint, "/step-9-attempt-2");
}

TEST_F(ReaderTest, TheNewestCheckpointComesWithItsStep) {
  Add(CheckpointSaved{{Trial(0), 2}, {Step(8), "/step-8", "sha256:08"}, 1});
  EXPECT_EQ(reader_->Sweep(SweepId(1))->Best()->step, Step(9));
  EXPECT_EQ(reader_->Sweep(SweepId(1))->Best()->checkpoint, "/step-8");
  EXPECT_EQ(reader_->Sweep(SweepId(1))->Best()->checkpoint_step, 8);
}

TEST_F(ReaderTest, KeptCheckpointsComeInPagesOfTrials) {
  Add(CheckpointSaved{{Trial(2), 1}, {Step(3), "/2-3", "sha256:23"}, 7});
  Add(CheckpointSaved{{Trial(0), 2}, {Step(9), "/step-9", "sha256:09"}, 1});
  Add(CheckpointSaved{{Trial(0), 2}, {Step(10), "/step-10", "sha256:10"}, 1});
  Add(CheckpointDropped{{Trial(0), 2, Step(10)}, "enough"});

  const auto two = reader_->Checkpoints(SweepId(1), TrialNumber(0), 2);
  ASSERT_TRUE(two.ok()) << two.error().message;
  ASSERT_EQ(two->checkpoints.size(), 2u);
  EXPECT_TRUE(two->more);
  EXPECT_EQ(two->checkpoints[0].checkpoint.step, Step(3));
  EXPECT_EQ(two->checkpoints[0].best, std::nullopt);
  EXPECT_EQ(two->checkpoints[1].checkpoint.path, "/step-9");
  EXPECT_EQ(two->checkpoints[1].best, 0.871);
  EXPECT_EQ(two->checkpoints[1].executor, "box");

  const auto rest = reader_->Checkpoints(SweepId(1), TrialNumber(2), 2);
  ASSERT_EQ(rest->checkpoints.size(), 1u);
  EXPECT_EQ(rest->checkpoints[0].trial, TrialNumber(2));
  EXPECT_EQ(rest->checkpoints[0].checkpoint.bytes, 7);
  EXPECT_FALSE(rest->more);
}

TEST_F(ReaderTest, RoundTripsASpec) { EXPECT_EQ(reader_->Sweep(SweepId(1))->spec, SampleSpec()); }

TEST_F(ReaderTest, EventsComeInPagesWithTheirPosition) {
  const auto first = reader_->EventsAfter(EventSeq(0), std::nullopt, 10);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->events.size(), 10u);
  EXPECT_EQ(first->seen, EventSeq(10));
  const auto rest = reader_->EventsAfter(first->seen, std::nullopt, 1'000);
  EXPECT_EQ(rest->events.size(), log_.events().size() - 10);
  EXPECT_EQ(rest->seen, log_.events().back().seq);
  const auto other = reader_->EventsAfter(EventSeq(0), SweepId(7), 1'000);
  EXPECT_EQ(other->events.size(), 2u);  // both are of the executor
  EXPECT_EQ(other->seen, log_.events().back().seq);
}

TEST_F(ReaderTest, MissingThingsAreNotFound) {
  EXPECT_EQ(reader_->Sweep(SweepId(9)).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(reader_->FileOf(SweepId(9)).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(reader_->Trial(Trial(9)).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(reader_->Detail(Trial(9)).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(reader_->Attempt({Trial(0), 9}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(reader_->MetricCurves(SweepId(9), "loss").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(reader_->Checkpoints(SweepId(9), TrialNumber(0), 1).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Reader::Open(folder_ / "other.db").ok(), false);
}

TEST_F(ReaderTest, MoreThreadsThanConnectionsAllGetTheirAnswer) {
  std::vector<std::thread> threads;
  std::vector<int> found(3 * kReadConnections);
  for (int& count : found)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) count += reader_->Sweep(SweepId(1)).ok() ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(found, Each(20));
}

// The queries that docs/reference/database.md shows.
TEST_F(ReaderTest, QueriesOfTheDocumentationReturnRows) {
  std::ifstream file(ATTUNE_SOURCE_DIR "/docs/reference/database.md");
  ASSERT_TRUE(file.is_open());
  std::stringstream text;
  text << file.rdbuf();
  const std::string document = text.str();
  auto connection =
      sqlite::Connection::Open(folder_ / "attune.db", sqlite::Connection::Mode::kReadOnly, 0)
          .value();
  int queries = 0;
  const std::string begin = "```sql\n";
  for (size_t at = 0; (at = document.find(begin, at)) != std::string::npos; ++queries) {
    at += begin.size();
    const std::string sql = document.substr(at, document.find("```", at) - at);
    sqlite::Rows rows = connection->Query(sql);
    EXPECT_TRUE(rows.Next()) << sql;
    EXPECT_TRUE(rows.status().ok()) << sql;
  }
  EXPECT_EQ(queries, 6);
}

TEST(FormatTime, IsRfc3339WithMicroseconds) {
  EXPECT_EQ(FormatTime(Time{kSampleStart}), "2026-11-21T10:00:00.000000Z");
  EXPECT_EQ(FormatTime(Time{0}), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(FormatTime(Time{951'782'400'000'001}), "2000-02-29T00:00:00.000001Z");
  EXPECT_EQ(FormatTime(Time{-1}), "1969-12-31T23:59:59.999999Z");
}

}  // namespace
}  // namespace attune::server
