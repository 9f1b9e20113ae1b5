#include "executor/record/child_programs.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <sstream>
#include <string>

#include "system/processes.h"
#include "system/sockets.h"
#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

using gang::kDeadline;
using testing::Optional;

SpawnRequest Shell(const std::string& script) {
  return {
      .program = "/bin/sh", .argv = {"sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}};
}

// Whether a process still exists that is no zombie.
bool Runs(pid_t pid) {
  const std::string stat = gang::ReadFile("/proc/" + std::to_string(pid) + "/stat");
  return !stat.empty() && stat.find(") Z ") == std::string::npos;
}

TEST(ChildPrograms, ReturnWhatTheProgramWritesToStdout) {
  ChildPrograms children;
  EXPECT_THAT(children.Output(Shell("echo a; echo b >&2"), kDeadline),
              Optional(std::string("a\n")));
}

TEST(ChildPrograms, HaveNoOutputOfAProgramThatFailsOrIsMissing) {
  ChildPrograms children;
  EXPECT_EQ(children.Output(Shell("echo a; exit 3"), kDeadline), std::nullopt);
  EXPECT_EQ(children.Output({.program = "/no/such/program", .argv = {"program"}}, kDeadline),
            std::nullopt);
}

TEST(ChildPrograms, KeepTheStartOfALongOutput) {
  ChildPrograms children;
  const auto output = children.Output(Shell("head -c 5000000 /dev/zero"), kDeadline);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->size(), ChildPrograms::kOutputBytesMax);
}

TEST(ChildPrograms, DoNotWaitForProcessesThatTheProgramLeaves) {
  ChildPrograms children;
  const auto output = children.Output(Shell("sleep 1000 & echo $!"), kDeadline);
  ASSERT_TRUE(output);
  kill(std::stoi(*output), SIGKILL);
}

TEST(ChildPrograms, KillAProgramAndItsChildrenAtTheTimeout) {
  const gang::TempDir folder;
  const std::string pids = folder.path() / "pids";
  ChildPrograms children;
  const SpawnRequest hangs = Shell("sleep 1000 & echo $! $$ > " + pids + "; wait");
  EXPECT_EQ(children.Output(hangs, std::chrono::milliseconds(500)), std::nullopt);
  std::istringstream text(gang::ReadFile(pids));
  pid_t child = 0;
  pid_t shell = 0;
  ASSERT_TRUE(text >> child >> shell);
  EXPECT_FALSE(Runs(shell));
  const UniqueFd pidfd = OpenPidfd(child);
  EXPECT_TRUE(!pidfd || gang::WaitForEnd(pidfd.get()));
}

TEST(ChildPrograms, EndKillsTheRunningProgramAndRefusesFurtherOnes) {
  ChildPrograms children;
  auto [reader, writer] = std::move(MakePipe()).value();
  SpawnRequest hangs = Shell("echo started >&3; exec sleep 1000");
  hangs.inherited_fd = writer.get();
  auto output =
      std::async(std::launch::async, [&] { return children.Output(hangs, std::chrono::hours(1)); });
  char byte = 0;
  ASSERT_EQ(read(reader.get(), &byte, 1), 1);
  children.End();
  EXPECT_EQ(output.get(), std::nullopt);
  EXPECT_EQ(children.Output(Shell("echo a"), kDeadline), std::nullopt);
}

}  // namespace
}  // namespace attune::agent
