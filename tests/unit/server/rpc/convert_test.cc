#include "server/rpc/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/message_limits.h"
#include "core/log/sweep_keys.h"
#include "tests/support/mentions.h"

// Tests of messages beyond the limits that correct executors keep.
namespace attune::server {
namespace {

using ::testing::HasSubstr;

v1::Fact MakeFact() {
  v1::Fact fact;
  fact.mutable_attempt()->set_sweep(1);
  fact.mutable_attempt()->set_attempt(2);
  fact.mutable_attempt()->set_epoch(5);
  return fact;
}

v1::Fact MakeReport(int metrics = 1) {
  v1::Fact fact = MakeFact();
  fact.mutable_report()->set_step(1);
  for (int i = 0; i < metrics; ++i)
    fact.mutable_report()->add_metrics()->set_name("m" + std::to_string(i));
  return fact;
}

v1::Fact MakeLog() {
  v1::Fact fact = MakeFact();
  fact.mutable_logged()->set_number(1);
  fact.mutable_logged()->add_metrics()->set_name("loss");
  return fact;
}

v1::Fact MakeCheckpoint() {
  v1::Fact fact = MakeFact();
  fact.mutable_checkpoint()->set_step(3);
  fact.mutable_checkpoint()->set_path("/data/step-3-attempt-2");
  fact.mutable_checkpoint()->set_digest("sha256:" + std::string(64, '0'));
  return fact;
}

v1::Fact MakeRendezvous() {
  v1::Fact fact = MakeFact();
  fact.mutable_rendezvous()->set_address("10.0.0.3");
  fact.mutable_rendezvous()->set_master_port(4000);
  return fact;
}

RecordFact ToRecord(v1::Fact fact) { return std::get<RecordFact>(*FromProto(std::move(fact))); }

// The message of the failure that the fact causes; "" if the fact is valid.
std::string Problem(v1::Fact fact) {
  const RecordFact record = ToRecord(std::move(fact));
  EXPECT_EQ(record.epoch, Epoch(5));
  const auto* ended = std::get_if<AttemptEnded>(&record.fact);
  if (ended == nullptr) return "";
  EXPECT_EQ(ended->attempt.number, 2u);
  EXPECT_EQ(ended->outcome, Outcome::kFailed);
  EXPECT_EQ(ended->failure.kind, FailureKind::kProtocol);
  return ended->failure.message;
}

template <class Change>
std::string ProblemAfter(v1::Fact fact, Change change) {
  change(fact);
  return Problem(std::move(fact));
}

TEST(Facts, WithinTheLimitsAreAccepted) {
  EXPECT_EQ(Problem(MakeReport()), "");
  EXPECT_EQ(Problem(MakeReport(kMetricsMax)), "");
  EXPECT_EQ(Problem(MakeLog()), "");
  EXPECT_EQ(Problem(MakeCheckpoint()), "");
  EXPECT_EQ(Problem(MakeRendezvous()), "");
}

TEST(Facts, AReportOfTooManyMetricsEndsItsAttempt) {
  EXPECT_THAT(Problem(MakeReport(kMetricsMax + 1)),
              testing::Mentions("report", "1001 metrics", "1000"));
  v1::Fact log = MakeLog();
  for (int i = 0; i < kMetricsMax; ++i)
    log.mutable_logged()->add_metrics()->set_name("m" + std::to_string(i));
  EXPECT_THAT(Problem(log), testing::Mentions("log", "1001 metrics"));
}

TEST(Facts, MetricsMustHaveValidNames) {
  for (const std::string& name :
       {std::string(), std::string(kMetricNameBytesMax + 1, 'a'), std::string("x\n\x1b[31m")}) {
    const auto rename = [&](v1::Fact& fact) {
      if (fact.has_report()) fact.mutable_report()->mutable_metrics(0)->set_name(name);
      if (fact.has_logged()) fact.mutable_logged()->mutable_metrics(0)->set_name(name);
    };
    EXPECT_THAT(ProblemAfter(MakeReport(), rename), HasSubstr("256 bytes")) << name;
    EXPECT_THAT(ProblemAfter(MakeLog(), rename), HasSubstr("256 bytes")) << name;
  }
}

TEST(Facts, StepsAndTimesHaveBounds) {
  for (const int64_t step : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min(),
                             kIntegerMax + 1, std::numeric_limits<int64_t>::max()}) {
    EXPECT_THAT(
        ProblemAfter(MakeReport(), [&](v1::Fact& f) { f.mutable_report()->set_step(step); }),
        HasSubstr("step " + std::to_string(step)));
    EXPECT_THAT(ProblemAfter(MakeCheckpoint(),
                             [&](v1::Fact& f) { f.mutable_checkpoint()->set_step(step); }),
                HasSubstr("step " + std::to_string(step)));
  }
  for (const double value : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(
        ProblemAfter(MakeReport(), [&](v1::Fact& f) { f.mutable_report()->set_seconds(value); }),
        HasSubstr("time"));
    EXPECT_THAT(ProblemAfter(MakeLog(), [&](v1::Fact& f) { f.mutable_logged()->set_step(value); }),
                HasSubstr("step"));
  }
}

TEST(Facts, ACheckpointNeedsItsFolderAndADigest) {
  for (const std::string& path :
       {std::string("../../etc/passwd"), std::string("/data/.."), std::string("/data/step-3"),
        std::string("/data/step-4-attempt-2"), std::string("/da\nta/step-3-attempt-2"),
        "/" + std::string(kPlaceBytesMax, 'a') + "/step-3-attempt-2"}) {
    EXPECT_THAT(ProblemAfter(MakeCheckpoint(),
                             [&](v1::Fact& f) { f.mutable_checkpoint()->set_path(path); }),
                HasSubstr("step-3-attempt-2"))
        << path;
  }
  EXPECT_THAT(ProblemAfter(MakeCheckpoint(),
                           [](v1::Fact& f) { f.mutable_checkpoint()->set_digest("nonsense"); }),
              HasSubstr("digest"));
  EXPECT_THAT(
      ProblemAfter(MakeCheckpoint(),
                   [](v1::Fact& f) { f.mutable_checkpoint()->set_bytes(uint64_t{1} << 63); }),
      HasSubstr("bytes"));
}

TEST(Facts, ARendezvousNeedsAnAddress) {
  const auto problem = [](auto change) {
    return ProblemAfter(MakeRendezvous(), [&](v1::Fact& f) { change(*f.mutable_rendezvous()); });
  };
  EXPECT_NE(problem([](v1::Rendezvous& r) { r.set_address(std::string(kPlaceBytesMax + 1, 'a')); }),
            "");
  EXPECT_NE(problem([](v1::Rendezvous& r) { r.set_host("a\nb"); }), "");
  EXPECT_NE(problem([](v1::Rendezvous& r) { r.set_port(70'000); }), "");
  EXPECT_NE(problem([](v1::Rendezvous& r) { r.set_master_port(~0u); }), "");
}

TEST(Facts, LongTextsOfAFailureAreCut) {
  v1::Fact fact = MakeFact();
  fact.mutable_ended()->set_outcome(v1::Ended::FAILED);
  v1::Failure& failure = *fact.mutable_ended()->mutable_failure();
  failure.set_message(std::string(14'000'000, 'M'));
  failure.set_log_tail(std::string(1'000'000, 'L') + "the last line\n");
  failure.set_pattern(std::string(1'000'000, 'P'));
  failure.set_line(std::string(1'000'000, 'l'));
  const Failure cut = std::get<AttemptEnded>(ToRecord(std::move(fact)).fact).failure;
  EXPECT_EQ(cut.message.size(), kErrorTextBytesMax);
  EXPECT_THAT(cut.message, ::testing::EndsWith("M… (14,000,000 bytes, cut)"));
  EXPECT_EQ(cut.log_tail.size(), kLogTailBytesMax);
  EXPECT_THAT(cut.log_tail, ::testing::EndsWith("Lthe last line\n"));
  EXPECT_EQ(cut.pattern.size(), kMaxPatternBytes);
  EXPECT_EQ(cut.line.size(), kMatchedLineBytesMax);
}

TEST(Facts, AFinishedAttemptKeepsTheExplanationOfMissingReports) {
  v1::Fact fact = MakeFact();
  fact.mutable_ended()->set_outcome(v1::Ended::FINISHED);
  fact.mutable_ended()->set_silence(std::string(14'000'000, 'M'));
  const auto ended = std::get<AttemptEnded>(ToRecord(std::move(fact)).fact);
  EXPECT_EQ(ended.outcome, Outcome::kFinished);
  EXPECT_EQ(ended.failure.message.size(), kErrorTextBytesMax);
}

TEST(Facts, TextsOfAFailureAreMasked) {
  v1::Facts facts;
  v1::Failure& failure = *facts.add_facts()->mutable_ended()->mutable_failure();
  failure.set_message("rank 0: secret");
  failure.set_log_tail("a secret\n");
  failure.set_line("the secret");
  facts.add_facts()->mutable_started();
  MaskFailures(facts, [](std::string& text) { text.replace(text.find("secret"), 6, "******"); });
  EXPECT_EQ(facts.facts(0).ended().failure().message(), "rank 0: ******");
  EXPECT_EQ(facts.facts(0).ended().failure().log_tail(), "a ******\n");
  EXPECT_EQ(facts.facts(0).ended().failure().line(), "the ******");
  EXPECT_FALSE(facts.facts(1).has_ended());
}

}  // namespace
}  // namespace attune::server
