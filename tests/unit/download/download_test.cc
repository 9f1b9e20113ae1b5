#include "download/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "system/sha256.h"
#include "tests/support/http_server.h"
#include "tests/support/scratch_folder.h"

namespace attune::download {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using std::chrono_literals::operator""ms;

constexpr size_t kBytes = 1 << 20;

std::string Content() {
  std::string content(kBytes, '\0');
  uint32_t state = 1;
  for (char& c : content) c = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return content;
}

// Returns the path.
fs::path WriteFile(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string ReadFile(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class DownloadTest : public ::testing::Test {
 protected:
  Result<Downloaded> Download(const std::string& url) {
    return DownloadFile({url, hash_, path_}, options_, callbacks_);
  }
  Error ErrorOf(const std::string& url) {
    const Result<Downloaded> done = Download(url);
    return done.ok() ? Error{ErrorCode::kInternal, "it was downloaded"} : done.error();
  }
  bool IsComplete() const { return ReadFile(path_) == content_ && !fs::exists(partial_); }

  const attune::testing::ScratchFolder folder_;
  const std::string content_ = Content();
  std::string hash_ = Sha256::HexOf(content_);
  const fs::path source_ = folder_ / "source";
  const fs::path path_ = folder_ / "train.bin";
  const fs::path partial_ = PartialPath(path_);
  Options options_{.tries = 3, .backoff = 1ms};
  Callbacks callbacks_;
};

class DownloadOverHttp : public DownloadTest {
 protected:
  // Starts a process that downloads the file, and returns when half of it has arrived.
  pid_t StartHalf() {
    const pid_t pid = fork();
    if (pid == 0) _exit(Download(server_.Url("/gate")).ok() ? 0 : 1);
    while (!fs::exists(partial_) || fs::file_size(partial_) < kBytes / 2) std::this_thread::yield();
    EXPECT_EQ(server_.NextRequest(), "/gate -");
    return pid;
  }

  attune::testing::HttpServer server_{WriteFile(source_, content_)};
};

TEST_F(DownloadOverHttp, ChecksTheFileAndDoesNotRequestItAgain) {
  const Result<Downloaded> first = Download(server_.Url("/file"));
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->bytes, kBytes);
  EXPECT_EQ(first->received, kBytes);
  EXPECT_TRUE(IsComplete());
  EXPECT_EQ(server_.NextRequest(), "/file -");
  const Result<Downloaded> second = Download(server_.Url("/file"));
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(second->bytes, kBytes);
  EXPECT_EQ(second->received, 0u);
  EXPECT_TRUE(server_.HasReadAllRequests());
}

TEST_F(DownloadOverHttp, FollowsRedirects) {
  EXPECT_TRUE(Download(server_.Url("/moved")).ok());
  EXPECT_TRUE(IsComplete());
}

TEST_F(DownloadOverHttp, ContinuesWhereTheConnectionWasCut) {
  // The server sends half of the remaining bytes each time. This takes more attempts than `tries`,
  // which counts only attempts without data.
  EXPECT_TRUE(Download(server_.Url("/cut")).ok());
  EXPECT_TRUE(IsComplete());
  EXPECT_EQ(server_.NextRequest(), "/cut -");
  EXPECT_EQ(server_.NextRequest(), "/cut bytes=524288-");
  EXPECT_EQ(server_.NextRequest(), "/cut bytes=786432-");
  EXPECT_EQ(server_.NextRequest(), "/cut bytes=917504-");
  EXPECT_EQ(server_.NextRequest(), "/cut bytes=983040-");
}

TEST_F(DownloadOverHttp, ContinuesAfterAKilledDownload) {
  const pid_t killed = StartHalf();
  kill(killed, SIGKILL);
  waitpid(killed, nullptr, 0);
  EXPECT_FALSE(fs::exists(path_));
  const Result<Downloaded> done = Download(server_.Url("/file"));
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(done->received, kBytes / 2);
  EXPECT_EQ(server_.NextRequest(), "/file bytes=" + std::to_string(kBytes / 2) + "-");
  EXPECT_TRUE(IsComplete());
}

TEST_F(DownloadOverHttp, GivesUpAStalledConnection) {
  options_ = {.stall_timeout = 100ms, .tries = 1};
  const Error error = ErrorOf(server_.Url("/stalls"));
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("100 ms (tries: 1)"));
  EXPECT_EQ(fs::file_size(partial_), kBytes / 2);
}

TEST_F(DownloadOverHttp, ATimeoutReportsTheBytesReceived) {
  options_.timeout = 50ms;
  const Error error = ErrorOf(server_.Url("/stalls"));
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, AllOf(HasSubstr(" 0 s; "), HasSubstr(" bytes")));
}

TEST_F(DownloadOverHttp, StopsWhenItIsCancelled) {
  callbacks_.tick = [this] {
    std::error_code absent;
    return fs::file_size(partial_, absent) != kBytes / 2;
  };
  EXPECT_EQ(ErrorOf(server_.Url("/stalls")).code, ErrorCode::kUnavailable);
  EXPECT_EQ(fs::file_size(partial_), kBytes / 2) << "the next download continues from there";
}

TEST_F(DownloadOverHttp, StopsWhenItIsCancelledBetweenAttempts) {
  options_ = {.tries = 100, .backoff = std::chrono::hours(1)};
  callbacks_.tick = [this] { return server_.HasReadAllRequests(); };
  EXPECT_EQ(ErrorOf(server_.Url("/busy")).code, ErrorCode::kUnavailable);
}

TEST_F(DownloadOverHttp, ReportsItsProgress) {
  std::vector<std::pair<uint64_t, uint64_t>> progress;
  callbacks_.progress = [&](uint64_t done, uint64_t all) { progress.emplace_back(done, all); };
  WriteFile(partial_, content_.substr(0, 1000));
  ASSERT_TRUE(Download(server_.Url("/file")).ok());
  ASSERT_FALSE(progress.empty());
  EXPECT_THAT(progress, Each(Pair(::testing::Le(kBytes), kBytes)));
  EXPECT_GT(progress.front().first, 1000u);
}

TEST_F(DownloadOverHttp, ReportsItsProgressWithoutASize) {
  std::vector<std::pair<uint64_t, uint64_t>> progress;
  callbacks_.progress = [&](uint64_t done, uint64_t all) { progress.emplace_back(done, all); };
  ASSERT_TRUE(Download(server_.Url("/stream")).ok());
  EXPECT_TRUE(IsComplete());
  EXPECT_THAT(progress, Each(Pair(::testing::_, 0u)));
}

TEST_F(DownloadOverHttp, StartsOverIfTheServerHasNoRanges) {
  WriteFile(partial_, content_.substr(0, 1000));
  EXPECT_TRUE(Download(server_.Url("/plain")).ok());
  EXPECT_TRUE(IsComplete());
  EXPECT_EQ(server_.NextRequest(), "/plain bytes=1000-");
  EXPECT_TRUE(server_.HasReadAllRequests());
}

TEST_F(DownloadOverHttp, DiscardsThePartialFileOfAnotherDownload) {
  WriteFile(partial_, "the beginning of something else");
  EXPECT_TRUE(Download(server_.Url("/file")).ok());
  EXPECT_TRUE(IsComplete());
  EXPECT_EQ(server_.NextRequest(), "/file bytes=31-");
  EXPECT_EQ(server_.NextRequest(), "/file -");
}

TEST_F(DownloadOverHttp, UsesACompletePartialFile) {
  WriteFile(partial_, content_);
  EXPECT_TRUE(Download(server_.Url("/file")).ok());
  EXPECT_TRUE(IsComplete());
}

TEST_F(DownloadOverHttp, RetriesABusyServer) {
  EXPECT_TRUE(Download(server_.Url("/recovers")).ok());
  EXPECT_TRUE(IsComplete());
}

TEST_F(DownloadOverHttp, GivesUpOnABusyServerAfterSomeTries) {
  const Error error = ErrorOf(server_.Url("/busy"));
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("/busy: HTTP status 503 (tries: 3)"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(server_.NextRequest(), "/busy -");
  EXPECT_TRUE(server_.HasReadAllRequests());
}

TEST_F(DownloadOverHttp, AMissingFileIsAnErrorAtOnce) {
  const Error error = ErrorOf(server_.Url("/missing"));
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("/missing: HTTP status 404"), HasSubstr("correct the URL")));
  EXPECT_EQ(server_.NextRequest(), "/missing -");
  EXPECT_TRUE(server_.HasReadAllRequests());
}

TEST_F(DownloadOverHttp, AWrongHashNamesBothAndLeavesNothing) {
  const std::string found = std::exchange(hash_, std::string(64, 'a'));
  const Error error = ErrorOf(server_.Url("/file"));
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_THAT(error.message, AllOf(HasSubstr(hash_), HasSubstr(found), HasSubstr("1048576 bytes")));
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_FALSE(fs::exists(partial_));
  EXPECT_EQ(server_.NextRequest(), "/file -");
  EXPECT_TRUE(server_.HasReadAllRequests()) << "it was received in one part";
}

TEST_F(DownloadOverHttp, AWrongHashOfPartsIsCheckedByASecondDownload) {
  hash_ = std::string(64, 'a');
  EXPECT_EQ(ErrorOf(server_.Url("/cut")).code, ErrorCode::kCorrupt);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(server_.NextRequest(), "/cut -");
    for (int part = 0; part < 4; ++part)
      EXPECT_THAT(server_.NextRequest(), HasSubstr("/cut bytes="));
  }
  EXPECT_TRUE(server_.HasReadAllRequests());
}

TEST_F(DownloadOverHttp, ErrorsDoNotShowSecretsOfAUrl) {
  std::string url = server_.Url("/missing?token=secret");
  url.insert(7, "user:password@");
  EXPECT_THAT(ErrorOf(url).message, AllOf(HasSubstr("http://127.0.0.1:"), Not(HasSubstr("secret")),
                                          Not(HasSubstr("password"))));
}

TEST_F(DownloadOverHttp, ReadsLoginsFromNetrc) {
  const char* home = getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  setenv("HOME", folder_.path().c_str(), 1);
  EXPECT_THAT(ErrorOf(server_.Url("/login")).message, HasSubstr("HTTP status 401"));
  WriteFile(folder_ / ".netrc", "machine 127.0.0.1 login ada password lovelace\n");
  EXPECT_TRUE(Download(server_.Url("/login")).ok());
  setenv("HOME", before.c_str(), 1);
  EXPECT_TRUE(IsComplete());
}

TEST_F(DownloadOverHttp, WritesNothingIfTheDiskWouldBecomeTooFull) {
  options_.disk_free_bytes_min = uint64_t{1} << 60;
  const Error error = ErrorOf(server_.Url("/file"));
  EXPECT_EQ(error.code, ErrorCode::kStorageFull);
  EXPECT_THAT(error.message, AllOf(HasSubstr("/file: needs 1048576 more bytes"),
                                   HasSubstr(std::to_string(uint64_t{1} << 60))));
  EXPECT_EQ(fs::file_size(partial_), 0u);
}

TEST_F(DownloadOverHttp, KeepsPartsIfTheDiskWouldBecomeTooFull) {
  options_.disk_free_bytes_min = uint64_t{1} << 60;
  WriteFile(partial_, content_.substr(0, 1000));
  EXPECT_THAT(ErrorOf(server_.Url("/file")).message, HasSubstr("needs 1047576 more bytes"));
  EXPECT_EQ(fs::file_size(partial_), 1000u);
}

TEST_F(DownloadOverHttp, AFullDiskIsNamedAndFreedAgain) {
  const fs::path disk = folder_ / "disk";
  fs::create_directories(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  }
  const Result<Downloaded> done =
      DownloadFile({server_.Url("/file"), hash_, disk / "data"}, options_);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::kStorageFull);
  EXPECT_THAT(done.error().message,
              AllOf(HasSubstr("data.partial: "), HasSubstr(", after 65536 bytes")));
  EXPECT_FALSE(fs::exists(disk / "data.partial"));
  umount2(disk.c_str(), MNT_DETACH);
}

TEST_F(DownloadTest, AnUnreachableServerIsNamed) {
  const Error error = ErrorOf("http://127.0.0.1:1/data");
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, AllOf(HasSubstr("http://127.0.0.1:1/data: "), HasSubstr("connect"),
                                   HasSubstr("(tries: 3)")));
}

TEST_F(DownloadTest, AnUnknownHostIsNamed) {
  EXPECT_THAT(ErrorOf("http://nowhere.invalid/data").message, HasSubstr("host: nowhere.invalid"));
}

TEST_F(DownloadTest, LeavesNoThreadSoThatTheProcessMayFork) {
  const auto threads = [] { return std::distance(fs::directory_iterator("/proc/self/task"), {}); };
  const auto before = threads();
  ErrorOf("http://nowhere.invalid/data");  // a thread of libcurl resolves the host
  for (int i = 0; i < 1000 && threads() != before; ++i)
    std::this_thread::yield();  // joined, but not yet removed by the kernel
  EXPECT_EQ(threads(), before);
}

TEST_F(DownloadTest, KeepsADifferentFileAtThePath) {
  WriteFile(path_, "my notes");
  const Error error = ErrorOf("http://127.0.0.1:1/data");
  EXPECT_EQ(error.code, ErrorCode::kConflict);
  EXPECT_THAT(error.message, AllOf(HasSubstr(path_.string()), HasSubstr(hash_),
                                   HasSubstr(Sha256::HexOf("my notes"))));
  EXPECT_EQ(ReadFile(path_), "my notes");
}

TEST_F(DownloadTest, AcceptsFileUrls) {
  WriteFile(source_, content_);
  WriteFile(partial_, content_.substr(0, 1000));
  const Result<Downloaded> done = Download("file://" + source_.string());
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(done->received, kBytes - 1000);
  EXPECT_TRUE(IsComplete());
}

TEST_F(DownloadTest, AcceptsAnEmptyFile) {
  hash_ = Sha256::HexOf("");
  WriteFile(source_, "");
  EXPECT_TRUE(Download("file://" + source_.string()).ok());
  EXPECT_TRUE(fs::exists(path_));
}

TEST_F(DownloadTest, AMissingFileOfAFileUrlIsAnError) {
  const Error error = ErrorOf("file:///no/such/file");
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("file:///no/such/file: Couldn't open"));
}

TEST_F(DownloadTest, RefusesOtherProtocolsAndInvalidUrls) {
  EXPECT_EQ(ErrorOf("ftp://127.0.0.1/data").code, ErrorCode::kInvalid);
  EXPECT_EQ(ErrorOf("http://127.0.0.1:port/data").code, ErrorCode::kInvalid);
}

TEST_F(DownloadTest, NamesAFolderThatIsMissing) {
  const Result<Downloaded> done =
      DownloadFile({"http://127.0.0.1:1/data", hash_, folder_ / "missing/data"}, options_);
  EXPECT_EQ(done.error().code, ErrorCode::kDenied);
}

}  // namespace
}  // namespace attune::download
