#include "server/store/event_codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/result.h"
#include "core/log/fields.h"
#include "server/store/json.h"
#include "server/store/json_archive.h"
#include "tests/support/every_fact.h"
#include "tests/support/sample_log.h"

namespace attune::server {
namespace {

Result<Fact> DecodeAgain(const EncodedFact& encoded) {
  return Decode({.kind = encoded.kind,
                 .version = encoded.version,
                 .sweep = encoded.sweep,
                 .trial = encoded.trial,
                 .payload = encoded.payload});
}

TEST(EventCodec, RoundTripsEveryFact) {
  std::vector<Fact> facts = testing::EveryFact();
  const SampleLog log;
  for (const Event& event : log.events()) facts.push_back(event.fact);
  for (const Fact& fact : facts) {
    const EncodedFact encoded = Encode(fact);
    const auto decoded = DecodeAgain(encoded);
    ASSERT_TRUE(decoded.ok()) << encoded.kind << ": " << decoded.error().message;
    EXPECT_EQ(testing::Bytes(*decoded), testing::Bytes(fact)) << encoded.payload;
    EXPECT_EQ(encoded.sweep, SweepOf(fact));
  }
}

// The test above compares only the members that Fields writes.
TEST(EventCodec, AnExecutorJoinedKeepsWhichDeletedSweepsItHas) {
  const auto decoded = DecodeAgain(Encode(ExecutorJoined{.name = "a", .deleted = {SweepId(3)}}));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(std::get<ExecutorJoined>(*decoded).deleted, std::vector{SweepId(3)});
}

TEST(EventCodec, AnEmptyKeyIsNotWritten) {
  const TrialId trial(SweepId(1), TrialNumber(0));
  EXPECT_EQ(Encode(TrialCreated{trial, {}, "random"}).payload,
            R"({"config":{},"origin":"random","proposal":null})");
  EXPECT_EQ(Encode(TrialCreated{trial, {}, "random", "k"}).payload,
            R"({"config":{},"origin":"random","idempotency_key":"k","proposal":null})");
}

TEST(EventCodec, ATrialWithoutARationaleHasNone) {
  const StoredFact stored{.kind = "trial_created",
                          .sweep = SweepId(1),
                          .trial = TrialNumber(2),
                          .payload = R"({"config":{},"origin":"random","proposal":2})"};
  const auto decoded = Decode(stored);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(std::get<TrialCreated>(*decoded).rationale, std::nullopt);
}

TEST(EventCodec, WritesOnlyPresentMembersOfARationale) {
  const TrialCreated drawn{.trial = TrialId(SweepId(1), TrialNumber(0)),
                           .origin = "random",
                           .rationale = Rationale{.rule = "random", .text = "drawn at random"}};
  EXPECT_EQ(Encode(drawn).payload, R"({"config":{},"origin":"random","proposal":null,)"
                                   R"("rationale":{"rule":"random","text":"drawn at random"}})");
}

TEST(EventCodec, AMissingFieldHasItsDefault) {
  const auto decoded = Decode({.kind = "attempt_ended",
                               .sweep = SweepId(1),
                               .trial = TrialNumber(2),
                               .payload = R"({"attempt":1,"outcome":"failed"})"});
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(std::get<AttemptEnded>(*decoded).failure.rank, -1);
}

TEST(EventCodec, NamesCheckpointsOfOtherTrialsInFull) {
  const CheckpointId id{TrialId(SweepId(1), TrialNumber(7)), 2, Step(9)};
  Json json = Json::object();
  JsonWriter writer(json);
  writer("donor", id);
  EXPECT_EQ(Dump(json), R"({"donor":{"sweep":1,"trial":7,"attempt":2,"step":9}})");
  const RowColumns row{.sweep = SweepId(3), .trial = TrialNumber(4)};
  CheckpointId again;
  JsonReader reader(json, row);
  reader("donor", again);
  EXPECT_EQ(again, id);
}

TEST(EventCodec, DoublesKeepEveryBit) {
  for (const double value :
       {0.1, 1.0 / 3.0, 1e300, 5e-324, -0.0, 0.30000000000000004, 123456789.123456789,
        std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    const TrialReported fact{
        .attempt = {TrialId(SweepId(1), TrialNumber(2)), 3},
        .report = {.step = Step(4), .metrics = {{"loss", value}}, .seconds = Seconds(value)}};
    const auto decoded = DecodeAgain(Encode(fact));
    ASSERT_TRUE(decoded.ok());
    const Report& report = std::get<TrialReported>(*decoded).report;
    EXPECT_EQ(std::bit_cast<uint64_t>(report.metrics.at("loss")), std::bit_cast<uint64_t>(value));
    EXPECT_EQ(std::bit_cast<uint64_t>(report.seconds.value), std::bit_cast<uint64_t>(value));
  }
}

TEST(EventCodec, NanStaysNan) {
  const TrialReported fact{
      .report = {.step = Step(1), .metrics = {{"loss", std::nan("")}}, .seconds = Seconds(1)}};
  const auto decoded = DecodeAgain(Encode(fact));
  ASSERT_TRUE(decoded.ok());
  EXPECT_TRUE(std::isnan(std::get<TrialReported>(*decoded).report.metrics.at("loss")));
}

TEST(EventCodec, ConfigurationsKeepOrderAndTypes) {
  const Config config{{"z", 1.0}, {"a", int64_t{1}}, {"m", true}, {"b", std::string("1")}};
  const auto decoded =
      DecodeAgain(Encode(TrialCreated{TrialId(SweepId(1), TrialNumber(0)), config, "random"}));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::get<TrialCreated>(*decoded).config, config);
}

TEST(EventCodec, RoundTripsSpecs) {
  const auto decoded = DecodeAgain(Encode(SweepCreated{.sweep = SweepId(1), .spec = SampleSpec()}));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(std::get<SweepCreated>(*decoded).spec, SampleSpec());
}

TEST(EventCodec, ReportsAreSmall) {
  const TrialReported fact{.attempt = {TrialId(SweepId(1), TrialNumber(2)), 1},
                           .report = {.step = Step(100), .metrics = {{"loss", 0.125}}}};
  EXPECT_EQ(Encode(fact).payload, R"([1,100,0.0,{"loss":0.125}])");
}

TEST(EventCodec, FieldsOfTheFutureAreIgnored) {
  const auto decoded =
      Decode({.kind = "trial_requeued",
              .version = 1,
              .sweep = SweepId(1),
              .trial = TrialNumber(2),
              .payload = R"({"reason": "again", "not_before_us": 0, "colour": {"is": "new"}})"});
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::get<TrialRequeued>(*decoded).reason, "again");
}

struct Damage {
  std::string_view kind;
  int64_t version;
  std::string_view payload;
  std::string_view says;
};

TEST(EventCodec, UnreadableEventsAreCorruptAndNamed) {
  const std::vector<Damage> damages = {
      {"trial_danced", 1, "{}", "the kind"},
      {"trial_requeued", 2, R"({"reason": "x"})", "version 2 is newer"},
      {"trial_requeued", 1, "{}", "reason"},
      {"trial_requeued", 1, R"({"reason": 3})", "trial_requeued"},
      {"trial_requeued", 1, R"({"reason": )", "trial_requeued"},
      {"trial_ended", 1, R"({"state": "asleep", "reason": ""})", "'asleep'"},
      {"trial_reported", 1, R"({"attempt":1,"step":1,"seconds":0,"metrics":{"a":"x"}})", "a"},
      {"attempt_started", 1, R"({"attempt":1e99,"pids":[]})", "1e+99"},
      {"attempt_started", 1, R"({"attempt":1,"pids":[18446744073709551615]})",
       "18446744073709551615"},
      {"sweep_created", 1, R"({"spec":{},"source":"","idempotency_key":""})", "sweep_created"},
  };
  for (const Damage& damage : damages) {
    const auto decoded = Decode({.kind = damage.kind,
                                 .version = damage.version,
                                 .sweep = SweepId(1),
                                 .trial = TrialNumber(2),
                                 .payload = damage.payload});
    ASSERT_FALSE(decoded.ok()) << damage.payload;
    EXPECT_EQ(decoded.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(decoded.error().message.find(damage.says), std::string::npos)
        << decoded.error().message;
  }
}

TEST(EventCodec, ARowWithoutItsTrialIsCorrupt) {
  const auto decoded =
      Decode({.kind = "trial_requeued", .sweep = SweepId(1), .payload = R"({"reason": "x"})"});
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace attune::server
