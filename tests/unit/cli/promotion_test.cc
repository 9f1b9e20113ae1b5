// Tests of `attune trial` for trials that were paused, promoted or cloned.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/unit/cli/command_line.h"
#include "tests/unit/cli/fake_server.h"

namespace attune::cli {
namespace {

using attune::testing::ExpectGolden;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPaused = "paused at step 3: accuracy 0.7 is rank 1 of 1 at rung 3";

// Trial s1/4, paused by the scheduler at step 3.
class PausedTrial : public ::testing::Test {
 protected:
  PausedTrial() : trial_(MakeTrial(4, "paused")) {
    server_.WriteTo(folder_.path());
    trial_.reason = kPaused;
    server_.Answer(
        "/sweeps/s1/trials/4/explanation",
        rest::ToJson(rest::Explanation{
            .origin = "random",
            .decision =
                rest::Decision{.verdict = "pause", .reason = kPaused, .rule = "asha", .rung = 3},
            .rung_trials = {{.number = 4, .value = 0.7, .verdict = "pause"}}}));
  }

  std::string Trial(const std::string& command) {
    server_.Answer("/sweeps/s1/trials/4", rest::ToJson(trial_));
    const Ran ran = RunAttune({"trial", command, "s1/4", "--data-dir", folder_.path().string()});
    EXPECT_EQ(ran.code, ExitCode::kSuccess) << ran.err;
    return ran.out;
  }

  FakeServer server_;
  ScratchFolder folder_;
  rest::TrialDetail trial_;
};

TEST_F(PausedTrial, IsExplainedByItsDecision) {
  const std::string shown = Trial("explain");
  EXPECT_THAT(shown, AllOf(HasSubstr(kPaused), Not(HasSubstr("\nnow "))));
  ExpectGolden("cli/paused_trial", shown);
}

TEST_F(PausedTrial, ShowsTheWaitingReason) {
  trial_.waiting_reason = "the scheduler has not promoted it";
  EXPECT_THAT(Trial("explain"), HasSubstr("; " + trial_.waiting_reason + "\n"));
}

// Once, no reason was shown for such a trial.
TEST_F(PausedTrial, ShowsThatItWasNotPromoted) {
  trial_.state = "stopped";
  trial_.reason = "paused at step 3, and not promoted: no more come";
  EXPECT_THAT(Trial("explain"), HasSubstr(" stopped: " + trial_.reason + "\n"));
}

TEST_F(PausedTrial, ShowsThatItRunsAgainAfterAPromotion) {
  trial_.state = "running";
  trial_.reason = "";
  trial_.attempt_count = 2;
  EXPECT_THAT(Trial("explain"), HasSubstr("attempt 2\n"));
}

TEST_F(PausedTrial, ShowsEveryPromotion) {
  const auto promoted = [](int step, int rung, int rank, int peers, const char* why) {
    return rest::Decision{.attempt = 1,
                          .step = step,
                          .verdict = "promote",
                          .reason = why,
                          .rule = "asha",
                          .rung = rung,
                          .rank = rank,
                          .peers = peers};
  };
  trial_.decisions = {{.attempt = 1, .step = 1, .verdict = "pause", .rule = "asha"},
                      promoted(1, 0, 0, 0, "paused before rung 1"),
                      promoted(3, 3, 2, 7, "promoted at rung 3: rank 2 of 7")};
  const std::string shown = Trial("explain");
  EXPECT_THAT(shown, AllOf(HasSubstr(trial_.decisions[1].reason + "\n"),
                           HasSubstr("2 of 7  " + trial_.decisions[2].reason + "\n")));
  ExpectGolden("cli/promotions", shown);
}

TEST_F(PausedTrial, IsExplainedIfTheTrialIsNotAvailable) {
  const Ran ran = RunAttune({"trial", "explain", "s1/4", "--data-dir", folder_.path().string()});
  EXPECT_EQ(ran.code, ExitCode::kSuccess);
  EXPECT_THAT(ran.out, HasSubstr(kPaused));
  EXPECT_THAT(ran.out, Not(HasSubstr("now")));
}

TEST_F(PausedTrial, ShowsHowEachAttemptStarted) {
  const auto attempt = [](int number, const std::string& outcome) {
    rest::Attempt made{.number = number,
                       .state = outcome.empty() ? "running" : "ended",
                       .outcome = outcome,
                       .executor = "box",
                       .ranks = {{.rank = 0}}};
    if (number > 1) made.resumed_from = 3;
    return made;
  };
  const auto decision = [](int of, const char* verdict, const char* rule) {
    return rest::Decision{.attempt = of, .step = 3, .verdict = verdict, .rule = rule};
  };
  trial_.attempts = {attempt(1, "paused"), attempt(2, "paused"), attempt(3, "paused"),
                     attempt(4, "paused"), attempt(5, "failed"), attempt(6, "")};
  trial_.decisions = {decision(1, "continue", "pbt"), decision(1, "pause", "pbt"),
                      decision(1, "promote", "pbt"),  decision(2, "exploit", "pbt"),
                      decision(3, "pause", "asha"),   decision(4, "resize", "resize")};
  EXPECT_THAT(Trial("get"),
              AllOf(HasSubstr("attempts\nNO  AS        STATE"), HasSubstr("\n 1            ended "),
                    HasSubstr("\n 2  promoted  ended "), HasSubstr("\n 3  clone     ended "),
                    HasSubstr("\n 4  resumed   ended "), HasSubstr("\n 5  resized   ended "),
                    HasSubstr("\n 6  again     running ")));
}

}  // namespace
}  // namespace attune::cli
