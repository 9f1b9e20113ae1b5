#include "object_storage/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include "system/sockets.h"

namespace attune::object_storage {
namespace {

using ::testing::EndsWith;

Process StartShell(const std::string& line) {
  return std::move(Process::Start("/bin/sh", {"-c", line}, {"PATH=/usr/bin:/bin"}).value());
}

std::string Read(Process& process) { return process.ReadAll(1 << 20, {}).value(); }

TEST(Process, GivesOutputLogAndExitCode) {
  Process process = StartShell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(Read(process), "out\n");
  const ProcessEnd end = process.Wait({}).value();
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.log, "err\n");
}

TEST(Process, GivesTheSignalThatEndedIt) {
  Process process = StartShell("kill -9 $$");
  EXPECT_EQ(Read(process), "");
  EXPECT_EQ(process.Wait({}).value().exit_code, 128 + 9);
}

TEST(Process, KeepsTheEndOfALongLogAndOutputDoesNotBlockIt) {
  Process process = StartShell(
      "i=0; while [ $i -lt 3000 ]; do echo line number $i; echo line number $i >&2; i=$((i+1)); "
      "done; echo last >&2");
  EXPECT_EQ(Read(process).substr(0, 14), "line number 0\n");
  const ProcessEnd end = process.Wait({}).value();
  EXPECT_EQ(end.log.size(), Process::kLogBytesMax);
  EXPECT_THAT(end.log, EndsWith("line number 2999\nlast\n"));
}

TEST(Process, StopsWhenItIsAsked) {
  Process process = StartShell("trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  std::array<char, 100> ready;
  ASSERT_EQ(process.ReadSome(ready.data(), ready.size(), {}).value(), 6u);
  std::stop_source stop;
  stop.request_stop();
  const Result<std::string> output = process.ReadAll(1000, stop.get_token());
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().code, ErrorCode::kUnavailable);
}

TEST(Process, RefusesMoreOutputThanTheLimit) {
  EXPECT_EQ(StartShell("printf 1234").ReadAll(4, {}).value(), "1234");
  EXPECT_EQ(StartShell("printf 12345").ReadAll(4, {}).error().code, ErrorCode::kInvalid);
}

TEST(Process, APassedDescriptorIsInherited) {
  auto [out, in] = std::move(MakePipe().value());
  ASSERT_EQ(write(in.get(), "names\n", 6), 6);
  in.reset();
  Process process = std::move(
      Process::Start("/bin/sh", {"-c", "cat <&3"}, {"PATH=/usr/bin:/bin"}, out.get()).value());
  EXPECT_EQ(Read(process), "names\n");
}

}  // namespace
}  // namespace attune::object_storage
