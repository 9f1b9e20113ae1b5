#include "executor/logs/log_reports.h"

#include <sys/stat.h>

#include <limits>
#include <string>

#include "tests/unit/executor/harness.h"

namespace attune::gang {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr const char* kPattern = R"(epoch (?P<step>\d+).*loss=(?P<loss>\S+))";

class LogReportsTest : public GangFixture {
 protected:
  GangSpec Printing(const std::string& script, const std::string& pattern = kPattern) {
    GangSpec spec = Script(script);
    spec.program.report_pattern = pattern;
    return spec;
  }

  Report Reported(const GangSpec& spec, int count) {
    return facts_.Wait<Report>(spec.attempt, count).value_or(Report{});
  }
};

TEST_F(LogReportsTest, ReadsMatchingLinesAsReports) {
  const GangSpec spec =
      Printing("echo hello; echo epoch 1 took 3 s, loss=0.5; echo loss=9; echo epoch 4 loss=1e-3");
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(facts_.Count<Report>(spec.attempt), 2);
  EXPECT_EQ(Reported(spec, 1).step, 1);
  EXPECT_THAT(Reported(spec, 1).metrics, ElementsAre(Pair("loss", 0.5)));
  EXPECT_EQ(Reported(spec, 2).step, 4);
  EXPECT_THAT(Reported(spec, 2).metrics, ElementsAre(Pair("loss", 0.001)));
}

TEST_F(LogReportsTest, ReadsReportsWhileTheProgramRuns) {
  const GangSpec spec = Printing("echo epoch 1 loss=0.5; sleep 1000");
  supervisor_->Run(spec);
  EXPECT_EQ(Reported(spec, 1).step, 1);
  supervisor_->Cancel(spec.attempt, CancelReason::kUnwanted);
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kCancelled);
}

TEST_F(LogReportsTest, CountsMatchingLinesWithoutAStep) {
  const GangSpec spec = Printing(R"(printf 'a=1 b=2\ra=3\nnothing\na=nan b=-inf')",
                                 R"(a=(?P<a>\S+)( b=(?P<b>\S+))?)");
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(Reported(spec, 1).step, 1);
  EXPECT_THAT(Reported(spec, 1).metrics, UnorderedElementsAre(Pair("a", 1), Pair("b", 2)));
  EXPECT_EQ(Reported(spec, 2).step, 2);
  EXPECT_THAT(Reported(spec, 2).metrics, ElementsAre(Pair("a", 3)));
  EXPECT_EQ(Reported(spec, 3).step, 3) << "a line without its end counts when the rank has ended";
  EXPECT_EQ(facts_.Count<Report>(spec.attempt), 3);
}

TEST_F(LogReportsTest, UsesAMetricAsTheStepWithTimeAttr) {
  GangSpec spec = Printing("for n in 0.5 10.5 10.9 12; do echo n=$n a=1; done; echo n=11 a=1",
                           R"(n=(?P<n>\S+) a=(?P<a>\S+))");
  spec.time_attr = "n";
  const auto ended = Run(spec);
  EXPECT_EQ(facts_.Count<Report>(spec.attempt), 2);
  EXPECT_EQ(Reported(spec, 1).step, 10);
  EXPECT_THAT(Reported(spec, 1).metrics, UnorderedElementsAre(Pair("n", 10.5), Pair("a", 1)));
  EXPECT_EQ(Reported(spec, 2).step, 12);
  ASSERT_TRUE(ended.failure);
  EXPECT_THAT(ended.failure->message,
              AllOf(HasSubstr("'n=11 a=1'"), HasSubstr("is 11.0 after 12")));
}

TEST_F(LogReportsTest, ReadsNothingPastAMilestoneBeforeItsVerdict) {
  GangSpec spec = Printing("for i in 1 2 3 4; do echo epoch $i loss=0; done");
  spec.milestone = 2;
  supervisor_->Run(spec);
  EXPECT_FALSE(*Reported(spec, 1).waits);
  EXPECT_TRUE(*Reported(spec, 2).waits);
  EXPECT_EQ(facts_.Count<Report>(spec.attempt), 2);
  supervisor_->SetVerdict(spec.attempt, {.step = 2, .action = Action::kContinue, .milestone = 4});
  EXPECT_FALSE(*Reported(spec, 3).waits);
  EXPECT_TRUE(*Reported(spec, 4).waits);
  EXPECT_EQ(facts_.Count<Ended>(spec.attempt), 0) << "the last report has no verdict yet";
  supervisor_->SetVerdict(spec.attempt, {.step = 4, .action = Action::kContinue});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
}

TEST_F(LogReportsTest, AStopVerdictEndsTheGang) {
  GangSpec spec = Printing("echo epoch 1 loss=0; sleep 1000");
  spec.milestone = 1;
  supervisor_->Run(spec);
  EXPECT_TRUE(*Reported(spec, 1).waits);
  supervisor_->SetVerdict(spec.attempt, {.step = 1, .action = Action::kStop});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
}

TEST_F(LogReportsTest, AYieldMakesTheNextReportWait) {
  const GangSpec spec = Printing("read line < go; echo epoch 1 loss=0; sleep 1000");
  ASSERT_EQ(mkfifo((dir_.path() / "go").c_str(), 0600), 0);
  supervisor_->Run(spec);
  supervisor_->Yield(spec.attempt);
  Run(Script("true"));  // calls of the supervisor are handled in order
  std::ofstream(dir_.path() / "go") << "on\n";
  EXPECT_TRUE(*Reported(spec, 1).waits);
  supervisor_->SetVerdict(spec.attempt, {.step = 1, .action = Action::kPause});
  EXPECT_EQ(WaitForEnded(spec).outcome, Outcome::kFinished);
}

TEST_F(LogReportsTest, QuotesALineWithoutANumber) {
  const Failure failure = RunToFailure(Printing("echo epoch 1 loss=0.5,; sleep 1000"));
  EXPECT_EQ(failure.kind, FailureKind::kProtocol);
  EXPECT_EQ(failure.rank, 0);
  EXPECT_THAT(failure.message,
              AllOf(HasSubstr("'epoch 1 loss=0.5,'"), HasSubstr("'0.5,' as loss")));
  EXPECT_THAT(failure.log_tail, HasSubstr("epoch 1"));
}

TEST_F(LogReportsTest, AProgramMayCountFromZero) {
  const GangSpec spec = Printing("for i in 0 1 5; do echo epoch $i loss=$i; done");
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(Reported(spec, 1).step, 1);
  EXPECT_EQ(Reported(spec, 2).step, 2);
  EXPECT_EQ(Reported(spec, 3).step, 6);
  EXPECT_THAT(RunToFailure(Printing("echo epoch -1 loss=1; sleep 1000",
                                    R"(epoch (?P<step>\S+) loss=(?P<loss>\S+))"))
                  .message,
              HasSubstr("'-1' as step"));
}

TEST_F(LogReportsTest, QuotesTwoLinesOfOneStep) {
  EXPECT_THAT(
      RunToFailure(Printing("echo epoch 2 loss=1; echo epoch 2 val_loss=3; sleep 1000")).message,
      AllOf(HasSubstr("'epoch 2 loss=1' and then 'epoch 2 val_loss=3'"),
            HasSubstr("reports.pattern"), HasSubstr("step 2")));
  EXPECT_THAT(
      RunToFailure(Printing("echo epoch 0 loss=1; echo epoch 0 val_loss=3; sleep 1000")).message,
      AllOf(HasSubstr("reports.pattern"), HasSubstr("step 0")));
}

TEST_F(LogReportsTest, StepsMustIncrease) {
  EXPECT_THAT(
      RunToFailure(Printing("echo epoch 2 loss=1; echo epoch 1 loss=1; sleep 1000")).message,
      AllOf(HasSubstr(": step 1 "), HasSubstr("step 2;")));
}

TEST_F(LogReportsTest, IgnoresColours) {
  const GangSpec spec =
      Printing(R"(printf '\033[1mepoch \033[0;32m1\033[0m loss=\033[32m0.5\033[0m\n')");
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(Reported(spec, 1).step, 1);
  EXPECT_THAT(Reported(spec, 1).metrics, ElementsAre(Pair("loss", 0.5)));
}

TEST_F(LogReportsTest, NumbersBeyondDoublesAreInfiniteOrZero) {
  const GangSpec spec = Printing("echo 1e400 -1e400 1e-400", R"((?P<a>\S+) (?P<b>\S+) (?P<c>\S+))");
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(Reported(spec, 1).metrics,
              UnorderedElementsAre(Pair("a", infinity), Pair("b", -infinity), Pair("c", 0)));
}

TEST_F(LogReportsTest, AProgramWithoutReportsFails) {
  const Failure failure = RunToFailure(Printing("echo trained"));
  EXPECT_EQ(failure.rank, 0);
  EXPECT_THAT(failure.message, HasSubstr("reports.pattern"));
  EXPECT_THAT(failure.log_tail, HasSubstr("trained"));
}

TEST_F(LogReportsTest, AFailureOfTheProgramComesFirst) {
  const Failure failure = RunToFailure(Printing("echo epoch 1 loss=1; exit 3"));
  EXPECT_EQ(failure.kind, FailureKind::kExit);
  EXPECT_EQ(failure.exit_code, 3);
}

TEST_F(LogReportsTest, SkipsTooLongLines) {
  const std::string size = std::to_string(kLogLineBytesMax);
  const GangSpec spec =
      Printing("head -c " + size +
               " /dev/zero; echo epoch 1 loss=1; head -c 1000000 /dev/zero; echo; "
               "echo epoch 2 loss=2");
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(facts_.Count<Report>(spec.attempt), 1);
  EXPECT_EQ(Reported(spec, 1).step, 2);
}

TEST_F(LogReportsTest, RefusesReportsOverTheChannel) {
  GangSpec spec = PlainWorker({"report:1", "hang"});
  spec.program.report_pattern = kPattern;
  EXPECT_THAT(RunToFailure(spec).message, HasSubstr("reports.pattern"));
}

TEST_F(LogReportsTest, IgnoresTheOutputOfOtherRanks) {
  GangSpec spec = Script(R"(test $RANK = 0 && echo epoch 1 loss=1 || echo epoch 7 loss=7)", 2);
  spec.program.report_pattern = kPattern;
  EXPECT_EQ(Run(spec).outcome, Outcome::kFinished);
  EXPECT_EQ(facts_.Count<Report>(spec.attempt), 1);
  EXPECT_EQ(Reported(spec, 1).step, 1);
}

}  // namespace
}  // namespace attune::gang
