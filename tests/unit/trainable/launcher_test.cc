// The launcher protocol of docs/reference/worker-channel.md.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "system/spawn.h"
#include "system/unique_fd.h"
#include "tests/unit/trainable/process.h"

namespace attune::inline sdk::trainable::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class Launcher : public ::testing::Test {
 protected:
  struct Packet {
    json message;
    UniqueFd descriptor;
  };

  void SetUp() override {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    socket_.reset(fds[0]);
    UniqueFd theirs(fds[1]);
    log_ = OpenLog();
    pid_ = Spawn({},
                 {{"ATTUNE_LAUNCHER_FD", std::to_string(theirs.get())},
                  {"GANG_PROGRAM_REMOVED", "1"},
                  {"GANG_PROGRAM_TALKS", "1"}},
                 theirs.get(), log_.get());
    theirs.reset();
    const json ready = Receive().message;
    ASSERT_EQ(ready["type"], "ready");
    ASSERT_EQ(ready["protocol"], 1);
    ASSERT_EQ(ready["pid"], pid_);
  }

  void TearDown() override {
    socket_.reset();
    if (pid_ == 0) return;
    EXPECT_EQ(Wait(pid_), 0);
  }

  Packet Receive() {
    pollfd polled{socket_.get(), POLLIN, 0};
    if (poll(&polled, 1, std::chrono::milliseconds(kPatience).count()) != 1) return {};
    std::vector<char> bytes(64 << 10);
    iovec part{bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    const ssize_t got = recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
    Packet packet;
    if (got <= 0) return packet;
    packet.message = json::parse(bytes.data(), bytes.data() + got);
    if (const cmsghdr* c = CMSG_FIRSTHDR(&header)) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c), sizeof(fd));
      packet.descriptor.reset(fd);
    }
    return packet;
  }

  // Requests a rank and returns the executor's end of its channel.
  UniqueFd Fork(int request, pid_t process_group = 0, json env = json::object()) {
    auto [ours, theirs] = ChannelPair();
    const std::string bytes =
        json{{"type", "fork"},        {"request", request}, {"argv", {"program", "--flag"}},
             {"env", std::move(env)}, {"cwd", "/tmp"},      {"process_group", process_group}}
            .dump();
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(2 * sizeof(int));
    const int fds[] = {theirs.get(), log_.get()};
    std::memcpy(CMSG_DATA(c), fds, sizeof(fds));
    EXPECT_GT(sendmsg(socket_.get(), &header, 0), 0);
    return std::move(ours);
  }

  static json Start(const std::string& mode) {
    return {{"type", "start"}, {"protocol", 1}, {"rank", 0},
            {"world_size", 1}, {"cpus", 1},     {"config", {{"mode", mode}}},
            {"max_step", 1},   {"milestone", 0}};
  }

  static json ReadUntil(const UniqueFd& channel, const std::string& type) {
    channel::LineReader lines;
    while (ReadFrom(channel.get(), lines)) {
      while (const auto line = lines.Next()) {
        json message = json::parse(*line);
        if (message["type"] == type) return message;
      }
    }
    return nullptr;
  }

  std::string Log() {
    std::string text(lseek(log_.get(), 0, SEEK_END), '\0');
    return pread(log_.get(), text.data(), text.size(), 0) < 0 ? "" : text;
  }

  UniqueFd socket_;
  UniqueFd log_;
  pid_t pid_ = 0;
};

bool EndsInTime(const UniqueFd& pidfd) {
  pollfd polled{pidfd.get(), POLLIN, 0};
  return poll(&polled, 1, std::chrono::milliseconds(kPatience).count()) == 1;
}

TEST_F(Launcher, EndsItsRanksEvenOutsideTheirGroup) {
  // No process has this id, so this process group does not exist.
  constexpr pid_t kNoGroup = 1 << 22;
  const UniqueFd channel = Fork(1, kNoGroup);
  const Packet forked = Receive();
  ASSERT_EQ(forked.message["type"], "forked") << forked.message;
  ASSERT_NE(getpgid(forked.message["pid"]), kNoGroup);
  socket_.reset();
  EXPECT_TRUE(EndsInTime(forked.descriptor));
  EXPECT_EQ(Wait(std::exchange(pid_, 0)), 0);
}

TEST_F(Launcher, ForksARankThatTrainsAndReportsItsEnd) {
  const UniqueFd channel = Fork(5);
  const Packet forked = Receive();
  ASSERT_EQ(forked.message["type"], "forked") << forked.message;
  EXPECT_EQ(forked.message["request"], 5);
  ASSERT_TRUE(forked.descriptor.valid());
  const pid_t rank = forked.message["pid"];
  EXPECT_EQ(getpgid(rank), rank);

  WriteLine(channel.get(), Start("count"));
  EXPECT_EQ(ReadUntil(channel, "report")["metrics"]["args"], 1);
  WriteLine(channel.get(), {{"type", "verdict"}, {"step", 1}, {"action", "stop"}});
  EXPECT_FALSE(ReadUntil(channel, "done").is_null());
  EXPECT_TRUE(EndsInTime(forked.descriptor));
  EXPECT_EQ(Receive().message, (json{{"type", "exited"}, {"pid", rank}, {"exit_code", 0}}));
  EXPECT_THAT(Log(), HasSubstr("left: rank 0, step 1"));
}

TEST_F(Launcher, ServesGangsInSequenceAndAddsRanksToTheirGroup) {
  const UniqueFd first = Fork(1);
  const pid_t leader = Receive().message["pid"];
  const UniqueFd second = Fork(2, leader);
  const pid_t member = Receive().message["pid"];
  EXPECT_EQ(getpgid(member), leader);
}

TEST_F(Launcher, ReportsTheSignalThatEndedARank) {
  const UniqueFd channel = Fork(1);
  const pid_t rank = Receive().message["pid"];
  kill(rank, SIGKILL);
  EXPECT_EQ(Receive().message, (json{{"type", "exited"}, {"pid", rank}, {"signal", SIGKILL}}));
}

TEST_F(Launcher, ChangesFolderAndEnvironmentOfARank) {
  const UniqueFd channel =
      Fork(1, 0, {{"GANG_PROGRAM_MARK", "7"}, {"GANG_PROGRAM_REMOVED", nullptr}});
  WriteLine(channel.get(), Start("count"));
  ASSERT_FALSE(ReadUntil(channel, "report").is_null());
  EXPECT_THAT(Log(), HasSubstr("in /tmp, mark 7\n"));
}

TEST_F(Launcher, TheInitialisationHookRunsInEachRank) {
  for (int request = 1; request <= 2; ++request) {
    const UniqueFd channel = Fork(request);
    const Packet forked = Receive();
    json start = Start("hook");
    start["seed"] = request;
    WriteLine(channel.get(), start);
    ASSERT_FALSE(ReadUntil(channel, "report").is_null());
    EXPECT_THAT(Log(), HasSubstr("on cpu, seed " + std::to_string(request)));
  }
}

TEST_F(Launcher, PutsARankIntoItsCgroup) {
  std::string folder = ::testing::TempDir() + "cgroup-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string threads = folder + "/cgroup.threads";  // stands for the kernel's file
  std::ofstream(threads).flush();
  const UniqueFd channel = Fork(1, 0, {{"ATTUNE_CGROUP", folder}});
  WriteLine(channel.get(), Start("count"));
  ASSERT_FALSE(ReadUntil(channel, "report").is_null());
  std::string written;
  std::ifstream(threads) >> written;
  EXPECT_EQ(written, "0") << "the calling thread";
  EXPECT_THAT(Log(), HasSubstr("cgroup: unset"));
  std::filesystem::remove_all(folder);
}

TEST_F(Launcher, TextPrintedBeforeMainAppearsOnce) {
  for (int request = 1; request <= 2; ++request) {
    const UniqueFd channel = Fork(request);
    const Packet forked = Receive();
    WriteLine(channel.get(), Start("setup_fails"));
    ASSERT_TRUE(EndsInTime(forked.descriptor));
    Receive();
  }
  const std::string log = Log();
  const std::size_t first = log.find("before Main");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(log.find("before Main", first + 1), std::string::npos) << log;
}

TEST_F(Launcher, AnswersAMalformedRequestWithAnError) {
  const std::string bytes = R"({"type": "fork", "request": 3, "argv": "no list"})";
  ASSERT_GT(send(socket_.get(), bytes.data(), bytes.size(), 0), 0);
  const json answer = Receive().message;
  EXPECT_EQ(answer["request"], 3);
  EXPECT_THAT(answer["error"], HasSubstr("malformed `fork`"));
}

TEST_F(Launcher, KillsItsRanksWhenTheExecutorIsGone) {
  const UniqueFd channel = Fork(1);
  const Packet forked = Receive();
  socket_.reset();
  EXPECT_TRUE(EndsInTime(forked.descriptor));
}

TEST_F(Launcher, ItsRanksEndWhenItIsKilled) {
  const UniqueFd channel = Fork(1);
  const Packet forked = Receive();
  WriteLine(channel.get(), Start("hangs"));
  kill(pid_, SIGKILL);
  EXPECT_TRUE(EndsInTime(forked.descriptor));
  EXPECT_EQ(Wait(pid_), 128 + SIGKILL);
  pid_ = 0;
}

}  // namespace
}  // namespace attune::inline sdk::trainable::testing
