#include "server/store/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stop_token>

#include "base/result.h"
#include "server/store/sqlite_store.h"
#include "server/store/tables/tables.h"
#include "tests/support/sample_log.h"
#include "tests/unit/server/store/reader_fixture.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using ReaderCurvesTest = ReaderTest;

TEST_F(ReaderCurvesTest, CurvesTellWhereTheyContinueADonor) {
  const CheckpointId donor{{SweepId(1), TrialNumber(0)}, 1, Step(3)};
  const TrialId trial(SweepId(1), TrialNumber(1));
  const KeptCheckpoint kept{.attempt = 1, .ref = {Step(3), "/data/step-3", "sha256:03"}};
  Add(TrialReported{{trial, 1}, {.step = Step(4), .metrics = {{"step", 4.0}}}});
  Add(TrialDecided{.attempt = {trial, 1},
                   .step = Step(4),
                   .verdict = Verdict::Exploit(donor, SampleConfig(0.3), {.rule = "pbt"}),
                   .cloned = kept});
  // The trial waited for its whole population. It gets its donor once all trials have reported.
  Add(TrialPromoted{.trial = trial,
                    .config = SampleConfig(0.4),
                    .donor = CheckpointId{{SweepId(1), TrialNumber(2)}, 1, Step(3)},
                    .cloned = kept});
  std::string clones;
  const auto curves = reader_->MetricCurves(SweepId(1), "step");
  for (const Curve& curve : curves->trials) {
    for (const Clone& clone : curve.clones)
      clones += std::to_string(curve.trial.value) + " of " + std::to_string(clone.donor.value) +
                " at " + std::to_string(clone.step.value) + "; ";
  }
  EXPECT_EQ(clones, "1 of 0 at 3; 1 of 2 at 3; ");
}

TEST_F(ReaderCurvesTest, CurvesContainLoggedMetrics) {
  const TrialId trial(SweepId(1), TrialNumber(3));  // it has reported steps 1 and 2
  const auto log = [&](uint32_t attempt, int64_t number, double step, Metrics metrics) {
    Add(MetricsLogged{{trial, attempt}, number, step, std::move(metrics)});
  };
  log(1, 1, 0.5, {{"batch_loss", 5}, {"loss", 5}});
  log(1, 2, 1.5, {{"batch_loss", 4}, {"loss", 4}});
  log(1, 3, 2.5, {{"batch_loss", 3}});
  log(1, 4, 2.75, {{"other", 1}});
  EXPECT_THAT(reader_->Sweep(SweepId(1))->logged, ElementsAre("batch_loss", "loss", "other"));

  auto curves = reader_->MetricCurves(SweepId(1), "batch_loss");
  ASSERT_EQ(curves->trials.size(), 1u);
  EXPECT_EQ(curves->trials[0].trial, TrialNumber(3));
  EXPECT_THAT(curves->trials[0].steps, IsEmpty());
  EXPECT_THAT(curves->trials[0].logged_steps, ElementsAre(0.5, 1.5, 2.5));
  curves = reader_->MetricCurves(SweepId(1), "loss");
  EXPECT_EQ(curves->trials.size(), 4u);
  EXPECT_THAT(curves->trials[3].steps, ElementsAre(1, 2));
  EXPECT_THAT(curves->trials[3].logged_steps, ElementsAre(0.5, 1.5));

  // The next attempt resumes from step 1 and logs from there.
  log(2, 1, 1.25, {{"batch_loss", 2}});
  curves = reader_->MetricCurves(SweepId(1), "batch_loss");
  EXPECT_THAT(curves->trials[0].logged_steps, ElementsAre(0.5, 1.25));
  EXPECT_THAT(curves->trials[0].logged_values, ElementsAre(5, 2));

  const auto first = reader_->Logged(trial, EventSeq(0), 2);
  ASSERT_EQ(first->size(), 2u);
  EXPECT_EQ(first->at(1).step, 1.5);
  const auto rest = reader_->Logged(trial, first->at(1).seq, 9);
  ASSERT_EQ(rest->size(), 3u);
  EXPECT_EQ(rest->at(2).attempt, 2u);
  EXPECT_THAT(reader_->Logged(Trial(0), EventSeq(0), 9).value(), IsEmpty());
  EXPECT_THAT(reader_->Detail(trial)->history, SizeIs(2)) << "logged metrics are not reports";
}

TEST_F(ReaderCurvesTest, TheNewestAttemptThatCoversAStepCounts) {
  const TrialId trial(SweepId(1), TrialNumber(3));  // its attempt 1 has reported steps 1 and 2
  const auto report = [&](uint32_t attempt, int64_t step, double value) {
    Add(TrialReported{{trial, attempt}, {.step = Step(step), .metrics = {{"loss", value}}}});
  };
  const auto curve = [&] { return reader_->MetricCurves(SweepId(1), "loss")->trials.back(); };
  report(1, 4, 40);
  report(1, 5, 50);
  EXPECT_THAT(curve().steps, ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(curve().segments, ElementsAre(CurveSegment{1, Step(1)}));

  // The next attempt begins from the start and reports only even steps.
  report(2, 2, 0.2);
  EXPECT_THAT(curve().steps, ElementsAre(2, 4, 5));
  EXPECT_THAT(curve().segments, ElementsAre(CurveSegment{2, Step(2)}, CurveSegment{1, Step(4)}));
  report(2, 4, 0.4);
  EXPECT_THAT(curve().steps, ElementsAre(2, 4, 5));
  EXPECT_THAT(curve().values, ElementsAre(0.2, 0.4, 50));
  report(2, 6, 0.6);
  EXPECT_THAT(curve().steps, ElementsAre(2, 4, 6));
  EXPECT_THAT(curve().segments, ElementsAre(CurveSegment{2, Step(2)}));
}

TEST_F(ReaderCurvesTest, CurvesComeInPagesOfWholeTrials) {
  Add(MetricsLogged{{TrialId(SweepId(1), TrialNumber(3)), 1}, 1, 0.5, {{"loss", 5}}});
  const auto all = reader_->MetricCurves(SweepId(1), "loss");
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->trials.size(), 4u);
  EXPECT_EQ(all->next, std::nullopt);

  const size_t points = all->trials[0].steps.size() + all->trials[1].steps.size();
  const auto first = reader_->MetricCurves(SweepId(1), "loss", TrialNumber(0), {.points = points});
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(first->trials, SizeIs(2));
  EXPECT_EQ(first->next, TrialNumber(2));
  const auto second = reader_->MetricCurves(SweepId(1), "loss", *first->next);
  EXPECT_THAT(second->trials, SizeIs(2));
  EXPECT_EQ(second->trials[1].steps, all->trials[3].steps);
  EXPECT_EQ(second->trials[1].logged_steps, all->trials[3].logged_steps);
  EXPECT_EQ(second->next, std::nullopt);
}

TEST_F(ReaderCurvesTest, ATrialThatExceedsAPageOfCurvesIsRefused) {
  const auto curves = reader_->MetricCurves(SweepId(1), "loss", TrialNumber(0), {.points = 0});
  EXPECT_EQ(curves.error().code, ErrorCode::kInvalid);
}

TEST_F(ReaderCurvesTest, CurvesStopWhenTheClientLeaves) {
  std::stop_source stop{};
  stop.request_stop();
  const auto curves =
      reader_->MetricCurves(SweepId(1), "loss", TrialNumber(0), {.stop = stop.get_token()});
  EXPECT_EQ(curves.error().code, ErrorCode::kUnavailable);
}

TEST_F(ReaderCurvesTest, TheNumberOfLoggedMetricsIsLimited) {
  const TrialId trial(SweepId(1), TrialNumber(3));
  Metrics metrics;
  for (size_t i = 0; i <= kLoggedMetricsMax; ++i) metrics[std::to_string(10'000 + i)] = 1;
  Add(MetricsLogged{{trial, 1}, 1, 0.5, metrics});
  ASSERT_TRUE(store_->Rebuild().ok());
  Add(MetricsLogged{{trial, 1}, 2, 0.75, {{"one more", 1}, {"10000", 2}}});
  EXPECT_THAT(reader_->Sweep(SweepId(1))->logged, SizeIs(kLoggedMetricsMax));
  EXPECT_THAT(reader_->MetricCurves(SweepId(1), "10000")->trials[0].logged_values,
              ElementsAre(1, 2));
  EXPECT_THAT(reader_->MetricCurves(SweepId(1), "one more")->trials, IsEmpty());
  EXPECT_THAT(reader_->Logged(trial, EventSeq(0), 9).value(), SizeIs(2))
      << "the log keeps all of them";
}

TEST_F(ReaderCurvesTest, AMetricNamedLikeAFieldIsNotMistakenForIt) {
  Add(TrialReported{{Trial(3), 1},
                    {.step = Step(5), .metrics = {{"metrics", 1.0}, {"step", 99.0}}}});
  const auto curves = reader_->MetricCurves(SweepId(1), "step");
  ASSERT_TRUE(curves.ok());
  ASSERT_EQ(curves->trials.size(), 1u);
  EXPECT_THAT(curves->trials[0].steps, ElementsAre(5));
  EXPECT_THAT(curves->trials[0].values, ElementsAre(99.0));
  EXPECT_TRUE(reader_->MetricCurves(SweepId(1), "seconds")->trials.empty());
}

}  // namespace
}  // namespace attune::server
