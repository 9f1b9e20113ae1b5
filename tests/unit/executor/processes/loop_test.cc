#include "executor/processes/loop.h"

#include <gmock/gmock.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <string>
#include <thread>

#include "system/unique_fd.h"

namespace attune::gang {
namespace {

using std::chrono::milliseconds;

TEST(Loop, TimersFireInTheOrderOfTheirTimes) {
  Loop loop;
  std::string order;
  const auto second = loop.CallAfter(milliseconds(2), [&] { order += "b"; });
  const auto first = loop.CallAfter(milliseconds(1), [&] { order += "a"; });
  const auto last = loop.CallAfter(milliseconds(3), [&] { loop.Quit(); });
  loop.Run();
  EXPECT_EQ(order, "ab");
}

TEST(Loop, ARemovedTimerDoesNotFire) {
  Loop loop;
  auto dropped = loop.CallAfter(milliseconds(1), [] { FAIL(); });
  const auto last = loop.CallAfter(milliseconds(2), [&] { loop.Quit(); });
  dropped.Reset();
  loop.Run();
}

TEST(Loop, AWatchMayEndItselfAndOtherReadyWatches) {
  Loop loop;
  const UniqueFd a(eventfd(1, EFD_CLOEXEC));
  const UniqueFd b(eventfd(1, EFD_CLOEXEC));
  int calls = 0;
  Loop::Subscription watch_a;
  Loop::Subscription watch_b;
  const auto ready = [&](uint32_t) {
    ++calls;
    watch_a.Reset();
    watch_b.Reset();
    loop.Quit();
  };
  watch_a = loop.Watch(a.get(), EPOLLIN, ready);
  watch_b = loop.Watch(b.get(), EPOLLIN, ready);
  loop.Run();
  EXPECT_EQ(calls, 1);
}

TEST(Loop, RunsPostedWorkInOrder) {
  Loop loop;
  constexpr int kCount = 1000;
  int next = 0;
  std::thread poster([&] {
    for (int i = 0; i < kCount; ++i) {
      loop.Post([&, i] {
        EXPECT_EQ(i, next++);
        if (i == kCount - 1) loop.Quit();
      });
    }
  });
  loop.Run();
  poster.join();
  EXPECT_EQ(next, kCount);
}

}  // namespace
}  // namespace attune::gang
