#include "system/processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace attune {
namespace {

TEST(Processes, DescendantsComeAfterTheirParents) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const pid_t grandchild = fork();
    if (grandchild > 0 && write(ends[1], &grandchild, sizeof grandchild) < 0) _exit(1);
    for (;;) pause();
  }
  pid_t grandchild = 0;
  ASSERT_EQ(read(ends[0], &grandchild, sizeof grandchild), ssize_t{sizeof grandchild});

  const std::vector<Descendant> all = DescendantsOf(getpid());
  const auto found = std::ranges::find(all, child, &Descendant::pid);
  ASSERT_NE(found, all.end());
  const auto below = std::find_if(found, all.end(),
                                  [&](const Descendant& each) { return each.pid == grandchild; });
  ASSERT_NE(below, all.end());
  EXPECT_EQ(below->state.parent, child);
  EXPECT_EQ(std::ranges::find(all, getpid(), &Descendant::pid), all.end());

  kill(grandchild, SIGKILL);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace attune
