#include "tests/unit/trainable/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <sstream>

#include "system/processes.h"
#include "system/sockets.h"
#include "system/spawn.h"
#include "system/unique_fd.h"

namespace attune::inline sdk::trainable::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

bool Readable(int fd, Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
  pollfd polled{fd, POLLIN, 0};
  return poll(&polled, 1, static_cast<int>(std::max<std::int64_t>(0, left.count()))) == 1;
}

int Code(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

}  // namespace

std::pair<UniqueFd, UniqueFd> ChannelPair() { return std::move(SocketPair(SOCK_STREAM).value()); }

bool ReadFrom(int fd, channel::LineReader& lines) {
  std::array<char, 1 << 14> bytes;
  const ssize_t count = read(fd, bytes.data(), bytes.size());
  if (count > 0) lines.Append({bytes.data(), static_cast<std::size_t>(count)});
  return count > 0;
}

void WriteLine(int fd, const nlohmann::json& message) {
  std::string line = message.dump() + "\n";
  SendSome(fd, line);
  EXPECT_EQ(line, "") << "the socket is full";
}

UniqueFd OpenLog() {
  UniqueFd log(memfd_create("log", MFD_CLOEXEC));
  fcntl(log.get(), F_SETFL,
        O_APPEND);  // the kernel does not lock the shared offset of a file in memory
  return log;
}

pid_t Spawn(const std::vector<std::string>& args, const Environment& environment, int inherited,
            int output, const std::function<void()>& in_child) {
  std::vector<const char*> argv = {ATTUNE_GANG_PROGRAM};
  for (const std::string& arg : args) argv.push_back(arg.c_str());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  DieWithParent(parent);
  if (inherited >= 0) fcntl(inherited, F_SETFD, 0);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  if (in_child) in_child();
  execv(argv[0], const_cast<char**>(argv.data()));
  _exit(127);
}

int Wait(pid_t pid) {
  const UniqueFd pidfd = OpenPidfd(pid);
  if (!Readable(pidfd.get(), Clock::now() + kPatience)) {
    ADD_FAILURE() << "process " << pid << " does not end";
    kill(pid, SIGKILL);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return Code(status);
}

Ended RunByHand(const std::vector<std::string>& args, const Environment& environment,
                const std::function<void(pid_t, const std::string&)>& while_running,
                const std::function<void()>& in_child) {
  int fds[2];
  EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
  const UniqueFd output(fds[0]);
  UniqueFd theirs(fds[1]);
  const auto began = Clock::now();
  const pid_t pid = Spawn(args, environment, -1, theirs.get(), in_child);
  theirs.reset();

  Ended ended;
  channel::LineReader lines;
  while (Readable(output.get(), began + kPatience) && ReadFrom(output.get(), lines)) {
    while (const auto line = lines.Next()) {
      ended.output += std::string(*line) + "\n";
      if (while_running) while_running(pid, std::string(*line));
    }
  }
  ended.exit_code = Wait(pid);
  ended.took = std::chrono::duration_cast<milliseconds>(Clock::now() - began);
  return ended;
}

FakeGang::FakeGang(int world_size, nlohmann::json start, const Environment& environment)
    : log_(OpenLog()) {
  ranks_.resize(world_size);
  for (int rank = 0; rank < world_size; ++rank) {
    auto [ours, theirs] = ChannelPair();
    Environment own = environment;
    own["ATTUNE_CHANNEL_FD"] = std::to_string(theirs.get());
    ranks_[rank].pid = Spawn({"first", "second"}, own, theirs.get(), log_.get());
    ranks_[rank].channel = std::move(ours);
    nlohmann::json message = {{"type", "start"},
                              {"protocol", 1},
                              {"sweep", "s1"},
                              {"trial", 17},
                              {"attempt", 2},
                              {"rank", rank},
                              {"world_size", world_size},
                              {"local_rank", rank},
                              {"local_world_size", world_size},
                              {"device", "cpu"},
                              {"cpus", 1},
                              {"seed", 7234917231},
                              {"config", nlohmann::json::object()},
                              {"milestone", 0},
                              {"max_step", 0},
                              {"checkpoint_every", 0},
                              {"checkpoint_dir", ""}};
    if (!start.is_null()) message.update(start);
    Send(rank, message);
  }
}

FakeGang::~FakeGang() {
  for (const Rank& rank : ranks_) {
    if (rank.pid != 0) kill(rank.pid, SIGKILL);
    if (rank.pid != 0) waitpid(rank.pid, nullptr, 0);
  }
}

void FakeGang::RelayRendezvous() {
  const nlohmann::json rendezvous = Await(0, "rendezvous");
  ASSERT_EQ(rendezvous.value("host", ""), "127.0.0.1") << Output();
  for (std::size_t rank = 1; rank < ranks_.size(); ++rank) {
    Send(static_cast<int>(rank), rendezvous);
  }
}

nlohmann::json FakeGang::Await(int rank, const std::string& type) {
  Rank& from = ranks_[rank];
  const auto deadline = Clock::now() + kPatience;
  while (true) {
    while (const auto line = from.lines.Next()) {
      from.received.push_back(nlohmann::json::parse(*line));
      if (from.received.back()["type"] == type) return from.received.back();
    }
    if (!Readable(from.channel.get(), deadline)) {
      ADD_FAILURE() << "rank " << rank << " does not say " << type << "\n" << Output();
      return nullptr;
    }
    if (!ReadFrom(from.channel.get(), from.lines)) return nullptr;
  }
}

nlohmann::json FakeGang::AwaitWaiting() {
  while (true) {
    const nlohmann::json report = Await(0, "report");
    if (report.is_null() || report["waits"] == true) return report;
  }
}

void FakeGang::Send(int rank, const nlohmann::json& message) {
  WriteLine(ranks_[rank].channel.get(), message);
}

void FakeGang::Verdict(std::int64_t step, const std::string& action, std::int64_t milestone) {
  Send(0, {{"type", "verdict"}, {"step", step}, {"action", action}, {"milestone", milestone}});
}

void FakeGang::Vanish() {
  for (Rank& rank : ranks_) rank.channel.reset();
}

int FakeGang::Wait(int rank) {
  const int code = testing::Wait(ranks_[rank].pid);
  ranks_[rank].pid = 0;
  return code;
}

std::string FakeGang::Output() {
  std::string output(lseek(log_.get(), 0, SEEK_END), '\0');
  if (pread(log_.get(), output.data(), output.size(), 0) < 0) return "(the log is unreadable)";
  return output;
}

std::vector<std::string> Types(const std::vector<nlohmann::json>& messages) {
  std::vector<std::string> types;
  for (const auto& message : messages) {
    if (message["type"] != "heartbeat") types.push_back(message["type"]);
  }
  return types;
}

}  // namespace attune::inline sdk::trainable::testing
