#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "attune/error.h"
#include "attune/file_lock.h"
#include "system/sockets.h"
#include "system/unique_fd.h"
#include "tests/support/scratch_folder.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk::trainable::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr auto kPatience = 60s;

void SendText(const UniqueFd& socket, const std::string& text) {
  EXPECT_EQ(send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL), std::ssize(text));
}

// A process that uses the lock and then waits to be killed.
class Holder {
 public:
  explicit Holder(const std::function<void()>& hold) {
    auto [ours, theirs] = std::move(SocketPair(SOCK_STREAM).value());
    pid_ = fork();
    if (pid_ == 0) {
      hold();
      SendText(theirs, ".");
      while (true) pause();
    }
    theirs.reset();
    char ready;
    EXPECT_EQ(read(ours.get(), &ready, 1), 1) << "it has failed";
  }
  ~Holder() { Kill(); }

  void Kill() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

std::string ErrorOf(const std::filesystem::path& path, std::chrono::milliseconds timeout) {
  try {
    const FileLock lock(path, timeout);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

class FileLockTest : public ::testing::Test {
 protected:
  const attune::testing::ScratchFolder folder_;
  const std::filesystem::path path_ = folder_ / "data.lock";
};

TEST_F(FileLockTest, IsReleasedWithItsObject) {
  { const FileLock lock(path_, 0ms); }
  EXPECT_EQ(ErrorOf(path_, 0ms), "");
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(FileLockTest, TimeoutNamesFileTimeAndHolder) {
  std::optional<FileLock> lock;
  const Holder holder([&] { lock.emplace(path_, 0ms); });
  EXPECT_THAT(ErrorOf(path_, 300ms),
              AllOf(HasSubstr(path_.string() + ": "), HasSubstr(" 0.3 s;"),
                    HasSubstr("process " + std::to_string(holder.pid()) + " (")));
}

TEST_F(FileLockTest, ATimeoutOfZeroTriesOnce) {
  const FileLock lock(path_);
  int waited = 0;
  EXPECT_THROW(FileLock(path_, 0ms, [&] { ++waited; }), Error);
  EXPECT_EQ(waited, 0);
}

TEST_F(FileLockTest, SecondLockOfTheSameProcessWaitsForTheFirst) {
  const FileLock lock(path_);
  EXPECT_THAT(ErrorOf(path_, 1ms), HasSubstr("this process"));
}

TEST_F(FileLockTest, IsReleasedWhenItsHolderIsKilled) {
  std::optional<FileLock> lock;
  Holder holder([&] { lock.emplace(path_, 0ms); });
  // A waiting process gets the lock.
  std::promise<void> waiting;
  std::thread waits([&, told = false]() mutable {
    const FileLock got(path_, kPatience, [&] {
      if (!std::exchange(told, true)) waiting.set_value();
    });
  });
  waiting.get_future().wait();
  holder.Kill();
  waits.join();
}

TEST_F(FileLockTest, AForkedChildDoesNotKeepIt) {
  std::optional<FileLock> lock;
  pid_t child = 0;
  auto [ours, theirs] = std::move(SocketPair(SOCK_STREAM).value());
  Holder holder([&] {
    lock.emplace(path_, 0ms);
    child = fork();
    if (child == 0) {
      lock.reset();  // the child has no lock to release
      const std::string error = ErrorOf(path_, 0ms);
      SendText(theirs, error.empty() ? "free" : "held");
      if (error.empty()) _exit(1);
      while (true) pause();
    }
    char said[4];
    if (read(ours.get(), said, 4) != 4 || std::string(said, 4) != "held") _exit(1);
    const std::string pid = std::to_string(child) + "\n";
    SendText(theirs, pid);
  });
  theirs.reset();
  char pid[32] = {};
  ASSERT_GT(read(ours.get(), pid, sizeof(pid) - 1), 0);
  holder.Kill();
  EXPECT_EQ(ErrorOf(path_, 0ms), "");
  EXPECT_EQ(kill(std::atoi(pid), SIGKILL), 0) << "it has lived until here";
}

TEST_F(FileLockTest, AnExecutedProgramDoesNotKeepIt) {
  std::optional<FileLock> lock;
  auto [ours, theirs] = std::move(SocketPair(SOCK_STREAM).value());
  const pid_t holder = fork();
  if (holder == 0) {
    lock.emplace(path_, 0ms);
    dup2(theirs.get(), STDOUT_FILENO);
    execlp("sh", "sh", "-c", "echo; exec sleep 60", nullptr);
    _exit(127);
  }
  char newline = 0;
  ASSERT_EQ(read(ours.get(), &newline, 1), 1);
  ASSERT_EQ(newline, '\n');
  EXPECT_EQ(ErrorOf(path_, 0ms), "");
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
}

TEST_F(FileLockTest, HasOneHolderAtATime) {
  int holders = 0;
  int most_holders = 0;
  int entered = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 10; ++turn) {
        const FileLock lock(path_, kPatience);
        most_holders = std::max(most_holders, ++holders);
        ++entered;
        std::this_thread::yield();
        --holders;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most_holders, 1);
  EXPECT_EQ(entered, 40);
}

TEST_F(FileLockTest, NamesAMissingFolder) {
  EXPECT_THAT(ErrorOf(folder_ / "none/data.lock", 0ms),
              HasSubstr(std::string("none/data.lock: ") + std::strerror(ENOENT)));
}

}  // namespace
}  // namespace attune::inline sdk::trainable::testing
