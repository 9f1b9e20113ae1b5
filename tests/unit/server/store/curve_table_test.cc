#include "server/store/thinned/curve_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/store/thinned/curve_file.h"
#include "tests/unit/server/store/reader_fixture.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr LogIdentity kIdentity{77};
constexpr uint64_t kAllEvents = 1'000'000;

class CurveTableTest : public ReaderTest {
 protected:
  CurveTableTest() { Add(LogIdentified{.identity = kIdentity, .last_epoch = Epoch(9)}); }

  EventSeq Last() { return reader_->LastSeq().value(); }

  std::unique_ptr<CurveTable> OpenTable(LogIdentity identity = kIdentity) {
    return CurveTable::Open(database_, identity, Last()).value();
  }

  // Brings the file up to date, like a server that is started and stopped.
  void Follow() {
    const auto table = OpenTable();
    EXPECT_EQ(table->Read(Last(), kAllEvents).value(), false);
    EXPECT_TRUE(table->Write(true).ok());
  }

  void Report(uint32_t trial, uint32_t attempt, int64_t step, double value) {
    Add(TrialReported{{Trial(trial), attempt}, {.step = Step(step), .metrics = {{"loss", value}}}});
  }
  void Log(uint32_t trial, int64_t number, double step, double value) {
    Add(MetricsLogged{{Trial(trial), 1}, number, step, {{"loss", value}}});
  }
  void Assign(uint32_t trial, uint32_t attempt, int64_t resumed_from) {
    Add(AttemptAssigned{.attempt = {Trial(trial), attempt},
                        .epoch = Epoch(9 + attempt),
                        .resume = CheckpointRef{Step(resumed_from), "/data/step", "sha256:0"}});
  }

  Result<ThinnedPage> Read(const CurveSelection& selection = {},
                           const std::string& metric = "accuracy") {
    return reader_->ThinnedCurves(SweepId(1), metric, selection);
  }

  static std::vector<TrialNumber> Trials(const std::vector<uint32_t>& numbers) {
    std::vector<TrialNumber> trials;
    for (const uint32_t number : numbers) trials.emplace_back(number);
    return trials;
  }
  static std::vector<uint32_t> NumbersOf(const ThinnedPage& page) {
    std::vector<uint32_t> numbers;
    for (const ThinnedTrial& trial : page.trials) numbers.push_back(trial.trial.value);
    return numbers;
  }
  static std::vector<double> StepsOf(const ThinnedTrial& trial) {
    std::vector<double> steps;
    for (const CurvePoint& point : trial.points) steps.push_back(point.step);
    return steps;
  }

  const std::string database_ = folder_ / "attune.db";
  const std::string file_ = folder_ / "curves.db";
};

TEST_F(CurveTableTest, ShortCurvesAreThoseOfTheLog) {
  Follow();
  const auto page = Read();
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_EQ(page->seq, Last());
  EXPECT_EQ(page->next, std::nullopt);
  const auto exact = reader_->MetricCurves(SweepId(1), "accuracy");
  ASSERT_EQ(page->trials.size(), exact->trials.size());
  for (size_t i = 0; i < exact->trials.size(); ++i) {
    const Curve& curve = exact->trials[i];
    const ThinnedTrial& thinned = page->trials[i];
    EXPECT_EQ(thinned.trial, curve.trial);
    ASSERT_EQ(thinned.points.size(), curve.steps.size());
    for (size_t k = 0; k < curve.steps.size(); ++k) {
      EXPECT_EQ(thinned.points[k].step, static_cast<double>(curve.steps[k]));
      const auto value = static_cast<float>(curve.values[k]);
      EXPECT_TRUE(thinned.points[k].value == value || std::isnan(value));
    }
    ASSERT_EQ(thinned.segments.size(), curve.segments.size());
    for (size_t k = 0; k < curve.segments.size(); ++k)
      EXPECT_EQ(thinned.segments[k].attempt, curve.segments[k].attempt);
  }
}

TEST_F(CurveTableTest, LongSweepsAreComparedByThinnedCurves) {
  for (int64_t step = 10; step <= 2'000; ++step) {
    Report(2, 1, step, 1 + 1 / static_cast<double>(step));
    Report(3, 1, step, std::abs(static_cast<double>(step - 700)));
  }
  Log(3, 1, 1'500, -4);
  const Objective loss{"loss", Mode::kMin};
  const auto compare = [&](int64_t exact_steps_max) {
    return reader_->CompareTrials(
        SweepId(1), loss, {.rungs = {}, .last = Step(2'000), .exact_steps_max = exact_steps_max});
  };
  const auto early = compare(0);
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().code, ErrorCode::kUnavailable) << "the file does not exist";

  Follow();
  const auto exact = compare(kAllEvents);
  const auto thinned = compare(0);
  ASSERT_TRUE(exact.ok() && thinned.ok());
  EXPECT_EQ(thinned->step, exact->step);
  ASSERT_EQ(thinned->results.size(), exact->results.size());
  size_t values = 0;
  for (size_t i = 0; i < exact->results.size(); ++i) {
    EXPECT_EQ(thinned->results[i].trial, exact->results[i].trial);
    ASSERT_EQ(thinned->results[i].metrics.size(), exact->results[i].metrics.size());
    for (const auto& [name, value] : exact->results[i].metrics) {
      EXPECT_NEAR(thinned->results[i].metrics.at(name), value, 0.01);
      ++values;
    }
  }
  EXPECT_GE(values, 2u);
}

TEST_F(CurveTableTest, OnlyTheOwnerCanReadTheFile) {
  Follow();
  for (const std::string suffix : {"", "-wal", "-shm"}) {
    struct stat found {};
    if (::stat((file_ + suffix).c_str(), &found) == 0) {
      EXPECT_EQ(found.st_mode & 0777, 0600u) << suffix;
    }
  }
}

TEST_F(CurveTableTest, AReadWithoutAWriteIsRepeatedAfterACrash) {
  Follow();
  Report(3, 1, 3, 0.5);
  {
    const auto table = OpenTable();
    EXPECT_EQ(table->Read(Last(), kAllEvents).value(), false);
  }  // killed before the write
  EXPECT_THAT(StepsOf(Read({}, "loss")->trials[3]), ElementsAre(1, 2));
  Follow();
  EXPECT_THAT(StepsOf(Read({}, "loss")->trials[3]), ElementsAre(1, 2, 3));
}

TEST_F(CurveTableTest, ItContinuesAtAnyEvent) {
  for (int64_t step = 3; step < 700; ++step) {
    Report(3, 1, step, static_cast<double>(step * 7'919 % 1'009));
    if (step % 3 == 0)
      Log(3, step, static_cast<double>(step) + 0.5, static_cast<double>(step % 11));
  }
  Assign(3, 2, 400);
  for (int64_t step = 401; step < 900; ++step) Report(3, 2, step, static_cast<double>(step % 13));
  Follow();
  const auto once = Read({}, "loss");
  RemoveCurveFile(file_);
  for (bool more = true; more;) {
    const auto table = OpenTable();
    more = table->Read(Last(), 37).value();
    EXPECT_TRUE(table->Write(!more).ok());
  }
  const auto slices = Read({}, "loss");
  ASSERT_EQ(NumbersOf(*slices), NumbersOf(*once));
  EXPECT_EQ(slices->trials[3].points, once->trials[3].points);
  EXPECT_EQ(slices->trials[3].segments, once->trials[3].segments);
  EXPECT_THAT(once->trials[3].segments, ElementsAre(ThinnedSegment{1, 1}, ThinnedSegment{2, 401}));
  EXPECT_TRUE(once->trials[3].mixed);
  EXPECT_LE(once->trials[3].points.size(), kThinnedPointsMax);
}

TEST_F(CurveTableTest, ForgottenTrialsAreReadAgain) {
  const auto table = OpenTable();
  Assign(3, 2, 1);
  ASSERT_TRUE(table->Read(Last(), kAllEvents).ok());
  ASSERT_TRUE(table->Write(true).ok());
  EXPECT_GT(table->bytes(), 0u);
  table->Forget(0);
  EXPECT_EQ(table->bytes(), 0u);
  Report(3, 2, 2, 0.125);
  ASSERT_TRUE(table->Read(Last(), kAllEvents).ok());
  ASSERT_TRUE(table->Write(true).ok());
  const auto page = Read({}, "loss");
  EXPECT_THAT(StepsOf(page->trials[3]), ElementsAre(1, 2));
  EXPECT_THAT(page->trials[3].segments, ElementsAre(ThinnedSegment{1, 1}, ThinnedSegment{2, 2}));
}

TEST_F(CurveTableTest, AnEventNumberTellsHowFarItIs) {
  Follow();
  const EventSeq followed = Last();
  Report(3, 1, 3, 0.5);
  EXPECT_EQ(Read()->seq, followed);
}

TEST_F(CurveTableTest, UntilItIsBuiltRequestsGetTheProgress) {
  EXPECT_EQ(Read().error().code, ErrorCode::kUnavailable);
  const auto table = OpenTable();
  EXPECT_EQ(table->Read(Last(), 5).value(), true);
  ASSERT_TRUE(table->Write(false).ok());
  const auto page = Read();
  EXPECT_EQ(page.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(page.error().message, HasSubstr("5 of " + std::to_string(Last().value)));
  EXPECT_EQ(table->Read(Last(), kAllEvents).value(), false);
  ASSERT_TRUE(table->Write(true).ok());
  EXPECT_TRUE(Read().ok());
}

TEST_F(CurveTableTest, AFileOfAnotherLogIsMadeAgain) {
  Follow();
  EXPECT_EQ(OpenTable()->seq(), Last());
  EXPECT_EQ(OpenTable(LogIdentity(78))->seq(), EventSeq(0));
  Follow();
  const EventSeq before(Last().value - 1);
  EXPECT_EQ(CurveTable::Open(database_, kIdentity, before).value()->seq(), EventSeq(0));
}

TEST_F(CurveTableTest, ADamagedFileIsMadeAgain) {
  Follow();
  for (const std::string suffix : {"-wal", "-shm"}) std::filesystem::remove(file_ + suffix);
  std::ofstream(file_, std::ios::trunc) << std::string(10'000, 'x');
  EXPECT_EQ(Read().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(OpenTable()->seq(), EventSeq(0));
  Follow();
  EXPECT_TRUE(Read().ok());
}

TEST_F(CurveTableTest, ADamagedCurveIsFoundByAReader) {
  Follow();
  {
    auto file = OpenCurveFile(file_, sqlite::Connection::Mode::kReadWriteCreate).value();
    ASSERT_TRUE(file->Execute("UPDATE curves SET points = x'00' WHERE trial = 1").ok());
  }
  const auto table = OpenTable();
  EXPECT_TRUE(table->IsInPlace());
  EXPECT_EQ(Read().error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(table->IsInPlace()) << "the reader should have deleted the file";
  Follow();
  EXPECT_TRUE(Read().ok());
}

TEST_F(CurveTableTest, AFileOfAnotherFormatIsMadeAgain) {
  Follow();
  {
    auto file = OpenCurveFile(file_, sqlite::Connection::Mode::kReadWriteCreate).value();
    ASSERT_TRUE(file->Execute("PRAGMA user_version = 999").ok());
  }
  EXPECT_EQ(OpenTable()->seq(), EventSeq(0));
}

TEST_F(CurveTableTest, DeletedSweepsLeaveIt) {
  Follow();
  Report(3, 1, 3, 0.5);
  Add(SweepEnded{SweepId(1), SweepState::kStopped, ""});
  Add(SweepDeleted{SweepId(1), SharedState{}});
  Follow();
  const auto file = OpenCurveFile(file_, sqlite::Connection::Mode::kReadOnly).value();
  EXPECT_EQ(file->Number("SELECT count(*) FROM curves").value(), 0);
  EXPECT_EQ(file->Number("SELECT count(*) FROM attempts").value(), 0);
  EXPECT_EQ(Read().error().code, ErrorCode::kNotFound);
}

TEST_F(CurveTableTest, BestTrialsAreSelectedByTheModeOfTheObjective) {
  Follow();
  EXPECT_THAT(NumbersOf(*Read({.best = 2})), ElementsAre(0, 2));
  EXPECT_THAT(NumbersOf(*Read({.best = 9})), ElementsAre(0, 1, 2)) << "trial 3 has no best value";
}

TEST_F(CurveTableTest, TrialsAreSelectedByNumber) {
  Follow();
  EXPECT_THAT(NumbersOf(*Read({.trials = Trials({1, 3, 99})})), ElementsAre(1, 3));
  EXPECT_THAT(NumbersOf(*Read({.trials = Trials({})})), IsEmpty());
}

TEST_F(CurveTableTest, PagesContainWholeTrials) {
  Follow();
  const auto first = reader_->ThinnedCurves(SweepId(1), "accuracy", {}, {.points = 4});
  EXPECT_THAT(NumbersOf(*first), ElementsAre(0, 1));
  EXPECT_EQ(first->next, TrialNumber(2));
  EXPECT_THAT(NumbersOf(*Read({.first = *first->next})), ElementsAre(2, 3));
}

TEST_F(CurveTableTest, FewerPointsAreThinnedFurther) {
  for (int64_t step = 3; step < 400; ++step) Report(3, 1, step, step == 333 ? 9 : 1);
  Follow();
  const auto page = Read({.points = 16, .trials = Trials({3})}, "loss");
  EXPECT_LE(page->trials[0].points.size(), 16u);
  EXPECT_THAT(StepsOf(page->trials[0]), ::testing::IsSupersetOf({1.0, 333.0, 399.0}));
}

TEST_F(CurveTableTest, ARangeOfStepsComesFromTheLog) {
  for (int64_t step = 3; step < 2'000; ++step) Report(3, 1, step, 1);
  Log(3, 1, 1'000.5, 7);
  const CurveSelection::Range range{.first_step = 1'000, .last_step = 1'003};
  const auto page = Read({.points = 2'000, .trials = Trials({0, 3}), .range = range}, "loss");
  ASSERT_TRUE(page.ok()) << page.error().message;
  ASSERT_THAT(page->trials, SizeIs(1)) << "trial 0 has no point in the range";
  EXPECT_EQ(page->seq, Last());
  EXPECT_TRUE(page->trials[0].mixed);
  EXPECT_THAT(StepsOf(page->trials[0]), ElementsAre(1'000, 1'000.5, 1'001, 1'002, 1'003));
}

TEST_F(CurveTableTest, ClonesUpToItsLastEventAreIncluded) {
  Follow();
  Add(TrialPromoted{.trial = Trial(1),
                    .config = SampleConfig(0.4),
                    .donor = CheckpointId{Trial(2), 1, Step(3)},
                    .cloned = KeptCheckpoint{.attempt = 1, .ref = {Step(3), "/data", "sha256:3"}}});
  EXPECT_THAT(Read()->trials[1].clones, IsEmpty());
  Follow();
  const auto page = Read();
  ASSERT_THAT(page->trials[1].clones, SizeIs(1));
  EXPECT_EQ(page->trials[1].clones[0].donor, TrialNumber(2));
}

TEST_F(CurveTableTest, ReadingStopsWhenTheClientLeaves) {
  Follow();
  std::stop_source stop{};
  stop.request_stop();
  const auto page = reader_->ThinnedCurves(SweepId(1), "accuracy", {}, {.stop = stop.get_token()});
  EXPECT_EQ(page.error().code, ErrorCode::kUnavailable);
}

TEST_F(CurveTableTest, TheDatabaseIsNotLocked) {
  const auto table = OpenTable();
  Report(3, 1, 3, 0.5);
  ASSERT_TRUE(table->Read(Last(), kAllEvents).ok());
  Report(3, 1, 4, 0.5);  // between the read and the write
  ASSERT_TRUE(table->Write(false).ok());
  EXPECT_LT(table->seq(), Last());
}

}  // namespace
}  // namespace attune::server
