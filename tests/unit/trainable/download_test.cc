#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "attune/download.h"
#include "attune/error.h"
#include "channel/line_reader.h"
#include "system/processes.h"
#include "system/sha256.h"
#include "system/sockets.h"
#include "system/unique_fd.h"
#include "tests/support/scratch_folder.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk::trainable::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using std::chrono_literals::operator""ms;

constexpr std::size_t kBytes = 1 << 20;

std::string Content() {
  std::string content(kBytes, '\0');
  std::uint32_t state = 1;
  for (char& c : content) c = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return content;
}

void WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Runs http_server.py, which serves Content().
class Server {
 public:
  explicit Server(const std::filesystem::path& file) {
    auto [ours, theirs] = std::move(SocketPair(SOCK_STREAM).value());
    pid_ = fork();
    if (pid_ == 0) {
      DieWithParent(getppid());
      dup2(theirs.get(), STDIN_FILENO);
      dup2(theirs.get(), STDOUT_FILENO);
      execl(ATTUNE_PYTHON, ATTUNE_PYTHON, ATTUNE_HTTP_SERVER, file.c_str(), nullptr);
      _exit(127);
    }
    stream_ = std::move(ours);
    port_ = NextLine();
  }
  ~Server() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  std::string Url(const std::string& path) const { return "http://127.0.0.1:" + port_ + path; }

  // Waits for the next request and returns "PATH RANGE".
  std::string NextRequest() { return NextLine(); }

  void OpenGate() { send(stream_.get(), "\n", 1, MSG_NOSIGNAL); }

  // Whether the test has read all requests.
  bool HasReadAllRequests() {
    char byte;
    return !lines_.Next() && recv(stream_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
  }

 private:
  std::string NextLine() {
    while (true) {
      if (const auto line = lines_.Next()) return std::string(*line);
      pollfd readable{stream_.get(), POLLIN, 0};
      poll(&readable, 1, -1);
      if (!channel::ReceiveSome(stream_.get(), lines_)) return "the server is gone";
    }
  }

  pid_t pid_;
  UniqueFd stream_;
  channel::LineReader lines_;
  std::string port_;
};

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
  DownloadOverHttp() {
    WriteFile(source_, content_);
    server_.emplace(source_);
  }
  void LeavePartial(const std::string& text) {
    std::filesystem::create_directories(path_.parent_path());
    WriteFile(partial_, text);
  }
  std::optional<Server> server_;
};

TEST_F(DownloadOverHttp, ChecksTheFileAndDoesNotRequestItAgain) {
  Download(server_->Url("/file"), hash_, path_);
  EXPECT_TRUE(IsComplete());
  EXPECT_EQ(server_->NextRequest(), "/file -");
  Download(server_->Url("/file"), hash_, path_);
  EXPECT_TRUE(server_->HasReadAllRequests());
}

TEST_F(DownloadOverHttp, FollowsRedirects) {
  Download(server_->Url("/moved"), hash_, path_);
  EXPECT_TRUE(IsComplete());
}

TEST_F(DownloadOverHttp, ContinuesWhereTheConnectionWasCut) {
  // The server sends half of the remaining bytes each time. This takes more attempts than `tries`,
  // which counts only attempts without data.
  Download(server_->Url("/cut"), hash_, path_, kImpatient);
  EXPECT_TRUE(IsComplete());
  EXPECT_EQ(server_->NextRequest(), "/cut -");
  EXPECT_EQ(server_->NextRequest(), "/cut bytes=524288-");
  EXPECT_EQ(server_->NextRequest(), "/cut bytes=786432-");
  EXPECT_EQ(server_->NextRequest(), "/cut bytes=917504-");
  EXPECT_EQ(server_->NextRequest(), "/cut bytes=983040-");
}

TEST_F(DownloadOverHttp, GivesUpAStalledConnection) {
  const std::string error =
      ErrorOf(server_->Url("/stalls"), hash_, {.stall_timeout = 100ms, .tries = 1});
  EXPECT_THAT(error, HasSubstr("100 ms (tries: 1)"));
  EXPECT_EQ(std::filesystem::file_size(partial_), kBytes / 2);
}

TEST_F(DownloadOverHttp, ATimeoutReportsTheBytesReceived) {
  const std::string error = ErrorOf(server_->Url("/stalls"), hash_, {.timeout = 50ms});
  EXPECT_THAT(error, AllOf(HasSubstr(" 0 s; "), HasSubstr(" bytes")));
}

TEST_F(DownloadOverHttp, StartsOverIfTheServerHasNoRanges) {
  LeavePartial(content_.substr(0, 1000));
  Download(server_->Url("/plain"), hash_, path_);
  EXPECT_TRUE(IsComplete());
  EXPECT_EQ(server_->NextRequest(), "/plain bytes=1000-");
  EXPECT_TRUE(server_->HasReadAllRequests());
}

TEST_F(DownloadOverHttp, DiscardsThePartialFileOfAnotherDownload) {
  LeavePartial("the beginning of something else");
  Download(server_->Url("/file"), hash_, path_);
  EXPECT_TRUE(IsComplete());
  EXPECT_EQ(server_->NextRequest(), "/file bytes=31-");
  EXPECT_EQ(server_->NextRequest(), "/file -");
}

TEST_F(DownloadOverHttp, UsesACompletePartialFile) {
  LeavePartial(content_);
  Download(server_->Url("/file"), hash_, path_);
  EXPECT_TRUE(IsComplete());
}

TEST_F(DownloadOverHttp, ContinuesAfterAKilledDownload) {
  const pid_t killed = Start(server_->Url("/gate"));
  EXPECT_EQ(server_->NextRequest(), "/gate -");
  // The server sends only half of the file.
  while (!std::filesystem::exists(partial_) || std::filesystem::file_size(partial_) < kBytes / 2) {
    std::this_thread::yield();
  }
  kill(killed, SIGKILL);
  Wait(killed);
  EXPECT_FALSE(std::filesystem::exists(path_));
  Download(server_->Url("/file"), hash_, path_);
  EXPECT_EQ(server_->NextRequest(), "/file bytes=" + std::to_string(kBytes / 2) + "-");
  EXPECT_TRUE(IsComplete());
}

TEST_F(DownloadOverHttp, OneOfTwoProcessesDownloadsAndTheOtherWaits) {
  const pid_t first = Start(server_->Url("/gate"));
  EXPECT_EQ(server_->NextRequest(), "/gate -");
  const UniqueFd events(inotify_init1(IN_CLOEXEC));
  inotify_add_watch(events.get(), (path_.string() + ".lock").c_str(), IN_OPEN);
  const pid_t second = Start(server_->Url("/gate"));
  inotify_event opened{};
  ASSERT_GT(read(events.get(), &opened, sizeof(opened)), 0);
  server_->OpenGate();
  EXPECT_EQ(Wait(first), 0);
  EXPECT_EQ(Wait(second), 0);
  EXPECT_TRUE(server_->HasReadAllRequests()) << "it was asked for twice";
  EXPECT_TRUE(IsComplete());
}

TEST_F(DownloadOverHttp, RetriesABusyServer) {
  Download(server_->Url("/recovers"), hash_, path_, kImpatient);
  EXPECT_TRUE(IsComplete());
}

TEST_F(DownloadOverHttp, GivesUpOnABusyServerAfterSomeTries) {
  EXPECT_THAT(ErrorOf(server_->Url("/busy"), hash_), HasSubstr("HTTP status 503 (tries: 3)"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(server_->NextRequest(), "/busy -");
  EXPECT_TRUE(server_->HasReadAllRequests());
}

TEST_F(DownloadOverHttp, AMissingFileIsAnErrorAtOnce) {
  EXPECT_THAT(ErrorOf(server_->Url("/missing"), hash_),
              AllOf(HasSubstr("/missing: HTTP status 404"), HasSubstr("correct the URL")));
  EXPECT_EQ(server_->NextRequest(), "/missing -");
  EXPECT_TRUE(server_->HasReadAllRequests());
}

TEST_F(DownloadOverHttp, AWrongHashNamesBothAndLeavesNothing) {
  const std::string wanted(64, 'a');
  EXPECT_THAT(ErrorOf(server_->Url("/file"), wanted),
              AllOf(HasSubstr(wanted), HasSubstr(hash_), HasSubstr("1048576 bytes")));
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE(std::filesystem::exists(partial_));
}

TEST_F(DownloadOverHttp, ErrorsDoNotShowSecretsOfAUrl) {
  std::string url = server_->Url("/missing?token=secret");
  url.insert(7, "user:password@");
  EXPECT_THAT(ErrorOf(url, hash_), AllOf(HasSubstr("http://127.0.0.1:"), Not(HasSubstr("secret")),
                                         Not(HasSubstr("password"))));
}

TEST_F(DownloadOverHttp, AFullDiskIsNamedAndFreedAgain) {
  const std::filesystem::path disk = folder_ / "disk";
  std::filesystem::create_directories(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  }
  try {
    Download(server_->Url("/file"), hash_, disk / "data");
    ADD_FAILURE() << "it fits";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(std::string("data.partial: ") + std::strerror(ENOSPC) +
                                        ", after 65536 bytes"));
  }
  EXPECT_FALSE(std::filesystem::exists(disk / "data.partial"));
  umount2(disk.c_str(), MNT_DETACH);
}

TEST_F(DownloadTest, AnUnreachableServerIsNamedWithARemedy) {
  EXPECT_THAT(ErrorOf("http://127.0.0.1:1/data", hash_),
              AllOf(HasSubstr("http://127.0.0.1:1/data: "), HasSubstr("connect"),
                    HasSubstr("(tries: 3)"), HasSubstr("file at " + path_.string())));
}

TEST_F(DownloadTest, AnUnknownHostIsNamed) {
  EXPECT_THAT(ErrorOf("http://nowhere.invalid/data", hash_), HasSubstr("host: nowhere.invalid"));
}

TEST_F(DownloadTest, LeavesNoThreadSoThatMainMayFork) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  const auto before = threads();
  ErrorOf("http://nowhere.invalid/data", hash_);  // a thread of libcurl resolves the host
  for (int i = 0; i < 1000 && threads() != before; ++i)
    std::this_thread::yield();  // joined, but not yet removed by the kernel
  EXPECT_EQ(threads(), before);
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

TEST_F(DownloadTest, AMissingFileOfAFileUrlIsAnError) {
  EXPECT_THAT(ErrorOf("file:///no/such/file", hash_),
              HasSubstr("file:///no/such/file: Couldn't open"));
}

TEST_F(DownloadTest, RefusesOtherProtocols) {
  EXPECT_THAT(ErrorOf("ftp://127.0.0.1/data", hash_), HasSubstr("\"ftp\" not supported"));
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
