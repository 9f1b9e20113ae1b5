#include "simulator/recorded_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/result.h"
#include "simulator/csv.h"

namespace attune::simulate {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Result<RecordedCurves> Read(const std::string& csv) {
  return ReadCurves(csv, "curves.csv", "loss");
}

double ValueAt(const Curves& curves, uint32_t trial, int64_t step) {
  return curves.ValueAt(TrialNumber(trial), {}, Step(step));
}

double SecondsOf(const Curves& curves, uint32_t trial, int64_t step) {
  return curves.SecondsOf(TrialNumber(trial), Step(step)).value().value;
}

std::string FaultOf(const std::string& csv) {
  const auto curves = Read(csv);
  return curves.ok() ? "none" : curves.error().message;
}

TEST(Csv, QuotedCellsMayContainCommasQuotesAndLines) {
  CsvReader reader("a,b\r\n\"1,\"\"2\"\"\",\"x\ny\"\n\n,\n");
  std::vector<std::string> cells;
  ASSERT_TRUE(reader.Next(cells));
  EXPECT_THAT(cells, ElementsAre("a", "b"));
  ASSERT_TRUE(reader.Next(cells));
  EXPECT_THAT(cells, ElementsAre("1,\"2\"", "x\ny"));
  EXPECT_EQ(reader.line(), 2);
  ASSERT_TRUE(reader.Next(cells));
  EXPECT_THAT(cells, ElementsAre("", ""));
  EXPECT_EQ(reader.line(), 5);
  EXPECT_FALSE(reader.Next(cells));
}

TEST(RecordedCurves, ReadsTheOutputOfTheExport) {
  const auto curves = Read(
      "sweep,trial,attempt,step,time,seconds,metrics.accuracy,metrics.loss\n"
      "1,0,1,1,2026-11-21T10:00:00.000000Z,2.0,0.1,0.9\n"
      "1,1,1,1,2026-11-21T10:00:00.000000Z,3.0,0.1,nan\n"
      "1,0,1,2,2026-11-21T10:00:00.000000Z,2.5,0.1,0.7\n");
  ASSERT_TRUE(curves.ok()) << curves.error().message;
  EXPECT_EQ(ValueAt(*curves, 0, 1), 0.9);
  EXPECT_EQ(ValueAt(*curves, 0, 2), 0.7);
  EXPECT_TRUE(std::isnan(ValueAt(*curves, 1, 1)));
  EXPECT_EQ(SecondsOf(*curves, 0, 1), 2.0);
  EXPECT_EQ(SecondsOf(*curves, 0, 2), 0.5);
  EXPECT_EQ(curves->LastStep(TrialNumber(0)), Step(2));
}

TEST(RecordedCurves, ReuseTheCurvesForMoreTrialsThanCurves) {
  const auto curves = Read("trial,step,metrics.loss\n7,1,0.7\n9,1,0.9\n").value();
  EXPECT_EQ(ValueAt(curves, 0, 1), 0.7);
  EXPECT_EQ(ValueAt(curves, 1, 1), 0.9);
  EXPECT_EQ(ValueAt(curves, 2, 1), 0.7);
}

TEST(RecordedCurves, KeepTheLastValueBetweenAndAfterRecords) {
  const auto curves = Read("trial,step,metrics.loss\n0,10,0.9\n0,20,0.5\n").value();
  EXPECT_EQ(ValueAt(curves, 0, 1), 0.9);
  EXPECT_EQ(ValueAt(curves, 0, 19), 0.9);
  EXPECT_EQ(ValueAt(curves, 0, 20), 0.5);
  EXPECT_EQ(ValueAt(curves, 0, 99), 0.5);
}

TEST(RecordedCurves, SpreadTheTimeBetweenTwoRecordsOverTheSteps) {
  const auto curves =
      Read("trial,attempt,step,seconds,metrics.loss\n0,1,10,20,0.9\n0,1,20,70,0.5\n").value();
  EXPECT_EQ(SecondsOf(curves, 0, 3), 2);
  EXPECT_EQ(SecondsOf(curves, 0, 11), 5);
  EXPECT_EQ(SecondsOf(curves, 0, 99), 5);
}

TEST(RecordedCurves, CountTheTimeOfEachAttemptFromItsStart) {
  const auto curves = Read(
                          "trial,attempt,step,seconds,metrics.loss\n"
                          "0,1,1,100,0.9\n0,2,2,4,0.8\n0,2,3,7,0.7\n")
                          .value();
  EXPECT_EQ(SecondsOf(curves, 0, 1), 100);
  EXPECT_EQ(SecondsOf(curves, 0, 2), 4);
  EXPECT_EQ(SecondsOf(curves, 0, 3), 3);
}

TEST(RecordedCurves, HaveNoTimesWithoutSeconds) {
  const auto curves = Read("trial,step,metrics.loss\n0,1,0.9\n").value();
  EXPECT_EQ(curves.SecondsOf(TrialNumber(0), Step(1)), std::nullopt);
}

TEST(RecordedCurves, IgnoreReportsWithoutTheMetric) {
  const auto curves = Read("trial,step,metrics.loss,metrics.lr\n0,1,0.9,\n0,2,,0.1\n").value();
  EXPECT_EQ(curves.LastStep(TrialNumber(0)), Step(1));
}

TEST(RecordedCurves, ErrorsNameFileAndLine) {
  const std::string header = "sweep,trial,attempt,step,seconds,metrics.loss\n1,0,1,2,3,0.5\n";
  EXPECT_THAT(FaultOf(header + "1,x,1,2,3,0.5\n"), StartsWith("curves.csv:3: trial `x` "));
  EXPECT_THAT(FaultOf(header + "1,0,2,0,3,0.5\n"), StartsWith("curves.csv:3: step `0` "));
  EXPECT_THAT(FaultOf(header + "1,0,2,3,3,low\n"), StartsWith("curves.csv:3: metrics.loss `low` "));
  EXPECT_THAT(FaultOf(header + "1,0,2,3,-1,0.5\n"), StartsWith("curves.csv:3: seconds `-1` "));
  EXPECT_THAT(FaultOf(header + "1,0,1,3,2,0.5\n"), StartsWith("curves.csv:3: seconds `2` "));
  EXPECT_THAT(FaultOf(header + "1,0,1,2,4,0.5\n"), StartsWith("curves.csv:3: step 2 "));
  EXPECT_THAT(FaultOf(header + "1,0\n"), AllOf(StartsWith("curves.csv:3: "), HasSubstr("2 cells")));
}

TEST(RecordedCurves, RefuseAFileWithoutTheMetric) {
  EXPECT_THAT(FaultOf("trial,step,metrics.accuracy\n0,1,0.5\n"),
              AllOf(StartsWith("curves.csv:1: "), HasSubstr("`metrics.loss`")));
  EXPECT_THAT(FaultOf(""), HasSubstr("`trial`"));
}

TEST(RecordedCurves, RefuseAFileWithoutRows) {
  EXPECT_THAT(FaultOf("trial,step,metrics.loss\n"),
              AllOf(HasSubstr("no row"), HasSubstr("`metrics.loss`")));
}

TEST(RecordedCurves, RefuseAFileOfTwoSweeps) {
  EXPECT_THAT(FaultOf("sweep,trial,step,metrics.loss\n1,0,1,0.9\n2,0,1,0.9\n"),
              AllOf(StartsWith("curves.csv:3: "), HasSubstr("1 and 2")));
}

}  // namespace
}  // namespace attune::simulate
