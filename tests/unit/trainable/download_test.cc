#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "attune/download.h"
#include "attune/error.h"
#include "system/sha256.h"
#include "system/unique_fd.h"
#include "tests/support/http_server.h"
#include "tests/support/scratch_folder.h"

namespace attune::inline sdk::trainable::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using std::chrono_literals::operator""ms;

constexpr std::size_t kBytes = 1 << 20;

std::string Content() {
  std::string content(kBytes, '\0');
  std::uint32_t state = 1;
  for (char& c : content) c = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return content;
}

// Returns the path.
std::filesystem::path WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class DownloadTest : public ::testing::Test {
 protected:
  static constexpr DownloadOptions kImpatient{.tries = 3, .backoff = 1ms};

  std::string ErrorOf(const std::string& url, const std::string& hash,
                      const DownloadOptions& options = kImpatient) {
    try {
      Download(url, hash, path_, options);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

  // Forks a process that downloads the file. Its exit code is 0 on success.
  pid_t Start(const std::string& url) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    _exit(ErrorOf(url, hash_).empty() ? 0 : 1);
  }

  static int Wait(pid_t pid) {
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
  }

  bool IsComplete() const {
    return ReadFile(path_) == content_ && !std::filesystem::exists(partial_);
  }

  const attune::testing::ScratchFolder folder_;
  const std::string content_ = Content();
  const std::string hash_ = Sha256::HexOf(content_);
  const std::filesystem::path source_ = folder_ / "source";
  const std::filesystem::path path_ = folder_ / "data/train.bin";
  const std::filesystem::path partial_ = path_.string() + ".partial";
};

class DownloadOverHttp : public DownloadTest {
 protected:
  attune::testing::HttpServer server_{WriteFile(source_, content_)};
};

TEST_F(DownloadOverHttp, ChecksTheFileAndDoesNotRequestItAgain) {
  Download(server_.Url("/file"), hash_, path_);
  EXPECT_TRUE(IsComplete());
  EXPECT_EQ(server_.NextRequest(), "/file -");
  Download(server_.Url("/file"), hash_, path_);
  EXPECT_TRUE(server_.HasReadAllRequests());
}

TEST_F(DownloadOverHttp, ATimeoutReportsTheBytesReceived) {
  const std::string error = ErrorOf(server_.Url("/stalls"), hash_, {.timeout = 50ms});
  EXPECT_THAT(error, AllOf(HasSubstr(" 0 s; "), HasSubstr(" bytes")));
}

TEST_F(DownloadOverHttp, ContinuesAfterAKilledDownload) {
  const pid_t killed = Start(server_.Url("/gate"));
  EXPECT_EQ(server_.NextRequest(), "/gate -");
  // The server sends only half of the file.
  while (!std::filesystem::exists(partial_) || std::filesystem::file_size(partial_) < kBytes / 2) {
    std::this_thread::yield();
  }
  kill(killed, SIGKILL);
  Wait(killed);
  EXPECT_FALSE(std::filesystem::exists(path_));
  Download(server_.Url("/file"), hash_, path_);
  EXPECT_EQ(server_.NextRequest(), "/file bytes=" + std::to_string(kBytes / 2) + "-");
  EXPECT_TRUE(IsComplete());
}

TEST_F(DownloadOverHttp, OneOfTwoProcessesDownloadsAndTheOtherWaits) {
  const pid_t first = Start(server_.Url("/gate"));
  EXPECT_EQ(server_.NextRequest(), "/gate -");
  const UniqueFd events(inotify_init1(IN_CLOEXEC));
  inotify_add_watch(events.get(), (path_.string() + ".lock").c_str(), IN_OPEN);
  const pid_t second = Start(server_.Url("/gate"));
  inotify_event opened{};
  ASSERT_GT(read(events.get(), &opened, sizeof(opened)), 0);
  server_.OpenGate();
  EXPECT_EQ(Wait(first), 0);
  EXPECT_EQ(Wait(second), 0);
  EXPECT_TRUE(server_.HasReadAllRequests()) << "it was asked for twice";
  EXPECT_TRUE(IsComplete());
}

TEST_F(DownloadTest, AnUnreachableServerIsNamedWithARemedy) {
  EXPECT_THAT(ErrorOf("http://127.0.0.1:1/data", hash_),
              AllOf(HasSubstr("http://127.0.0.1:1/data: "), HasSubstr("connect"),
                    HasSubstr("(tries: 3)"), HasSubstr("file at " + path_.string())));
}

TEST_F(DownloadTest, KeepsADifferentFileAtThePath) {
  std::filesystem::create_directories(path_.parent_path());
  WriteFile(path_, "my notes");
  EXPECT_THAT(ErrorOf("http://127.0.0.1:1/data", hash_),
              AllOf(HasSubstr(path_.string() + " is there"), HasSubstr(Sha256::HexOf("my notes")),
                    HasSubstr(hash_), HasSubstr("delete it")));
  EXPECT_EQ(ReadFile(path_), "my notes");
}

TEST_F(DownloadTest, AcceptsFileUrls) {
  WriteFile(source_, content_);
  Download("file://" + source_.string(), hash_, path_);
  EXPECT_TRUE(IsComplete());
  EXPECT_THAT(ErrorOf("file:///no/such/file", std::string(64, 'a')), HasSubstr("is there"));
}

TEST_F(DownloadTest, RefusesOtherKindsOfHashes) {
  EXPECT_THAT(ErrorOf("http://127.0.0.1:1/data", "d41d8cd98f00b204e9800998ecf8427e"),
              HasSubstr("64 hex digits"));
}

TEST_F(DownloadTest, AcceptsAHashInCapitals) {
  WriteFile(source_, content_);
  std::string hash = hash_;
  for (char& c : hash) c = static_cast<char>(std::toupper(c));
  Download("file://" + source_.string(), hash, path_);
  EXPECT_TRUE(IsComplete());
}

}  // namespace
}  // namespace attune::inline sdk::trainable::testing
