#include "executor/agent/outbox.h"

#include <gmock/gmock.h>

namespace attune::agent {
namespace {

v1::Fact Report(int64_t step, size_t name_bytes = 4) {
  v1::Fact fact;
  fact.mutable_report()->set_step(step);
  fact.mutable_report()->add_metrics()->set_name(std::string(name_bytes, 'm'));
  return fact;
}

TEST(Outbox, NumbersFactsFromOneAndSendsEachOnce) {
  Outbox outbox;
  outbox.Add(Report(10));
  outbox.Add(Report(20));
  const v1::Facts batch = outbox.TakeBatch();
  ASSERT_EQ(batch.facts_size(), 2);
  EXPECT_EQ(batch.facts(0).seq(), 1u);
  EXPECT_EQ(batch.facts(1).seq(), 2u);
  EXPECT_FALSE(outbox.may_send());
}

TEST(Outbox, RewindSendsAgainWhatIsNotAcknowledged) {
  Outbox outbox;
  for (int i = 0; i < 3; ++i) outbox.Add(Report(i));
  outbox.TakeBatch();
  outbox.Acknowledge(1);
  EXPECT_FALSE(outbox.may_send());
  outbox.Rewind();
  const v1::Facts batch = outbox.TakeBatch();
  ASSERT_EQ(batch.facts_size(), 2);
  EXPECT_EQ(batch.facts(0).seq(), 2u);
}

TEST(Outbox, AcknowledgementBeforeResendingSkipsTheFact) {
  Outbox outbox;
  outbox.Add(Report(0));
  outbox.TakeBatch();
  outbox.Rewind();
  outbox.Acknowledge(1);
  EXPECT_TRUE(outbox.empty());
  EXPECT_FALSE(outbox.may_send());
}

TEST(Outbox, MessageHoldsNoMoreThanItsLimits) {
  Outbox outbox;
  for (int i = 0; i <= kFactsPerMessage; ++i) outbox.Add(Report(i));
  EXPECT_EQ(outbox.TakeBatch().facts_size(), kFactsPerMessage);
  EXPECT_EQ(outbox.TakeBatch().facts_size(), 1);

  outbox.Add(Report(1, kFactBytesPerMessage * 2));  // larger than the limit, but must be sent
  outbox.Add(Report(2));
  EXPECT_EQ(outbox.TakeBatch().facts_size(), 1);
  EXPECT_EQ(outbox.TakeBatch().facts_size(), 1);
}

TEST(Outbox, LimitsUnacknowledgedFacts) {
  constexpr size_t kBytes = 64 << 10;
  Outbox outbox;
  for (int i = 0; i < 100; ++i) outbox.Add(Report(i, kBytes));
  size_t sent = 0;
  while (outbox.may_send()) sent += static_cast<size_t>(outbox.TakeBatch().facts_size());
  EXPECT_GE(sent * kBytes, kUnacknowledgedBytesMax - kBytes);
  EXPECT_LE(sent * kBytes, kUnacknowledgedBytesMax + kFactBytesPerMessage);
  outbox.Acknowledge(sent);
  EXPECT_TRUE(outbox.may_send());
}

TEST(Outbox, IsFullFromItsLimitUntilHalfIsLeft) {
  constexpr size_t kBytes = 1 << 20;
  constexpr int kFacts = kOutboxBytesMax / kBytes;
  Outbox outbox;
  for (int i = 0; i < kFacts - 1; ++i) outbox.Add(Report(i, kBytes));
  EXPECT_FALSE(outbox.is_full());
  outbox.Add(Report(kFacts, kBytes));
  EXPECT_TRUE(outbox.is_full());
  outbox.Acknowledge(kFacts / 2 - 1);
  EXPECT_TRUE(outbox.is_full());
  outbox.Acknowledge(kFacts / 2 + 1);
  EXPECT_FALSE(outbox.is_full());
}

TEST(Outbox, ReturnsTheAttemptsWhoseEndWasAcknowledged) {
  Outbox outbox;
  v1::Fact ended;
  ended.mutable_attempt()->set_trial(7);
  ended.mutable_ended()->set_outcome(v1::Ended::FINISHED);
  outbox.Add(Report(1));
  outbox.Add(ended);
  EXPECT_TRUE(outbox.Acknowledge(1).empty());
  const auto attempts = outbox.Acknowledge(2);
  ASSERT_EQ(attempts.size(), 1u);
  EXPECT_EQ(attempts[0].trial, 7u);
}

}  // namespace
}  // namespace attune::agent
