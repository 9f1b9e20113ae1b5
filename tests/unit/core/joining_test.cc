#include "core/log/joining.h"

#include <gtest/gtest.h>

#include <string>

namespace attune {
namespace {

JoinExecutor ValidJoin() { return {.name = "box", .instance = "a", .resources = {.cpus = 2}}; }

template <class Change>
bool IsAccepted(Change change) {
  JoinExecutor join = ValidJoin();
  change(join);
  return CheckJoin(join).ok();
}

TEST(Joining, TheNameOfAnExecutorMustBeAValidFileName) {
  for (const char* name : {"box", "n3.example", "a b", "größe"})
    EXPECT_TRUE(IsAccepted([&](JoinExecutor& join) { join.name = name; })) << name;
  for (const char* name : {"", ".box", "a/b", "a\nb", "\x7f"})
    EXPECT_FALSE(IsAccepted([&](JoinExecutor& join) { join.name = name; })) << name;
  EXPECT_TRUE(IsAccepted([](auto& join) { join.name.assign(kExecutorNameBytesMax, 'x'); }));
  EXPECT_FALSE(IsAccepted([](auto& join) { join.name.assign(kExecutorNameBytesMax + 1, 'x'); }));
}

TEST(Joining, ResourcesAreWithinBounds) {
  EXPECT_TRUE(IsAccepted([](auto& join) { join.resources.cpus = kExecutorCpusMax; }));
  EXPECT_FALSE(IsAccepted([](auto& join) { join.resources.cpus = kExecutorCpusMax + 1; }));
  EXPECT_FALSE(IsAccepted([](auto& join) { join.resources.cpus = -1; }));
  EXPECT_TRUE(IsAccepted([](auto& join) { join.resources.gpus = kExecutorGpusMax; }));
  EXPECT_FALSE(IsAccepted([](auto& join) { join.resources.gpus = kExecutorGpusMax + 1; }));
  EXPECT_TRUE(IsAccepted([](auto& join) { join.resources.memory_bytes = kExecutorMemoryMax; }));
  EXPECT_FALSE(
      IsAccepted([](auto& join) { join.resources.memory_bytes = kExecutorMemoryMax + 1; }));
  EXPECT_FALSE(IsAccepted([](auto& join) { join.resources.memory_bytes = -1; }));
}

TEST(Joining, TextsHaveAMaximumLength) {
  EXPECT_FALSE(IsAccepted([](auto& join) { join.instance.clear(); }));
  EXPECT_TRUE(IsAccepted([](auto& join) { join.address.assign(kExecutorTextBytesMax, 'x'); }));
  EXPECT_FALSE(IsAccepted([](auto& join) { join.address.assign(kExecutorTextBytesMax + 1, 'x'); }));
  EXPECT_FALSE(IsAccepted([](auto& join) { join.folder.assign(kExecutorTextBytesMax + 1, 'x'); }));
  EXPECT_FALSE(IsAccepted([](auto& join) { join.labels = {{"zone", "a b"}}; }));
}

}  // namespace
}  // namespace attune
