#include "system/mailbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Clock = Mailbox<int>::Clock;

TEST(Mailbox, GivesLettersInTheirOrderAndOnce) {
  Mailbox<int> mailbox;
  mailbox.Post(1);
  mailbox.Post(2);
  EXPECT_THAT(mailbox.TakeUntil(Clock::now()), ElementsAre(1, 2));
  EXPECT_THAT(mailbox.TakeUntil(Clock::now()), IsEmpty());
}

TEST(Mailbox, WaitsForALetterOfAnotherThread) {
  Mailbox<int> mailbox;
  std::thread writer([&] { mailbox.Post(1); });
  EXPECT_THAT(mailbox.TakeUntil(Clock::time_point::max()), ElementsAre(1));
  writer.join();
}

TEST(Mailbox, EndsOneWaitWithoutALetterWhenWoken) {
  Mailbox<int> mailbox;
  mailbox.Wake();
  EXPECT_THAT(mailbox.TakeUntil(Clock::time_point::max()), IsEmpty());
}

}  // namespace
}  // namespace attune
