#include "executor/transfer/data_copies.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include "system/sha256.h"
#include "tests/support/http_server.h"
#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr size_t kBytes = 1 << 20;

class DataCopies : public ::testing::Test {
 protected:
  DataCopies() {
    gang::WriteFile(folder_.path() / "source", text_);
    server_.emplace(folder_.path() / "source");
    Start();
  }

  void Start(uint64_t disk_free_bytes_min = 0) {
    fetcher_.reset();
    fetcher_ = std::make_unique<Fetcher>(
        kData, copies_, CopyLimits{.bytes_max = 0, .disk_free_bytes_min = disk_free_bytes_min},
        [this](const gang::AttemptId& attempt, Fetched fetched) {
          const std::lock_guard lock(mutex_);
          done_[attempt.attempt] = std::move(fetched);
          changed_.notify_all();
        });
  }

  gang::DataFile File(const std::string& path) const {
    return {.name = "train", .url = server_->Url(path), .sha256 = sha256_};
  }
  gang::GangSpec Spec(uint32_t attempt) const {
    gang::GangSpec spec{.attempt = {.sweep = 1, .attempt = attempt}, .ranks = {{.rank = 2}}};
    spec.sweep_dir = folder_.path() / "s1";
    spec.attempt_dir = spec.sweep_dir / std::to_string(attempt);
    spec.checkpoint_dir = spec.sweep_dir / "checkpoints";
    spec.files_dir = spec.sweep_dir / "files";
    return spec;
  }
  void Fetch(uint32_t attempt, const gang::DataFile& file) {
    const gang::GangSpec spec = Spec(attempt);
    fetcher_->Fetch(spec.attempt, WantedData(spec, file));
  }
  Fetched Await(uint32_t attempt) {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, gang::kDeadline, [&] { return done_.contains(attempt); });
    return came ? done_.at(attempt) : Fetched{.error = "nothing came"};
  }
  Fetched FetchAndAwait(uint32_t attempt, const gang::DataFile& file) {
    Fetch(attempt, file);
    return Await(attempt);
  }
  // Fetches for attempt 1 until half of the file is here.
  void FetchHalf() {
    Fetch(1, File("/gate"));
    EXPECT_EQ(server_->NextRequest(), "/gate -");
    const fs::path partial = copies_ / ("." + sha256_ + ".part") / "gate.partial";
    const auto deadline = std::chrono::steady_clock::now() + gang::kDeadline;
    std::error_code absent;
    while (fs::file_size(partial, absent) != kBytes / 2 &&
           std::chrono::steady_clock::now() < deadline)
      sched_yield();
  }

  std::string LogOf(uint32_t attempt) const {
    return gang::ReadFile(gang::RankLog(Spec(attempt).attempt_dir, 2));
  }
  static std::vector<std::string> Names(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
      names.push_back(entry.path().filename());
    return names;
  }
  static mode_t Mode(const fs::path& path) {
    struct stat status {};
    stat(path.c_str(), &status);
    return status.st_mode & 0777;
  }
  // Changes a file as a user who ignores its permissions.
  static void Overwrite(const fs::path& file, const std::string& text) {
    fs::permissions(file, fs::perms::owner_write, fs::perm_options::add);
    gang::WriteFile(file, text);
  }

  gang::TempDir folder_;
  const std::string text_ = std::string(kBytes, 'd');
  std::string sha256_ = Sha256::HexOf(text_);
  const fs::path copies_ = folder_.path() / "data";
  const fs::path copy_ = copies_ / sha256_;
  std::optional<attune::testing::HttpServer> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint32_t, Fetched> done_;
  std::unique_ptr<Fetcher> fetcher_;
};

TEST_F(DataCopies, DownloadsAFileThatNobodyMayWrite) {
  const Fetched fetched = FetchAndAwait(1, File("/file"));
  ASSERT_EQ(fetched.error, "");
  EXPECT_EQ(fetched.name, "data train");
  EXPECT_EQ(fetched.folder, copy_);
  const fs::path file = PathOfData(fetched.folder, File("/file"));
  EXPECT_EQ(file, copy_ / "file");
  EXPECT_EQ(gang::ReadFile(file), text_);
  EXPECT_EQ(Mode(file), 0444u);
  EXPECT_EQ(Mode(copy_), 0555u);
  EXPECT_THAT(Names(copy_), UnorderedElementsAre("file", ".stamp"));
  EXPECT_THAT(Names(copies_), ElementsAre(sha256_));
}

TEST_F(DataCopies, ASecondGangAndALaterExecutorUseTheSameCopy) {
  FetchAndAwait(1, File("/file"));
  EXPECT_EQ(server_->NextRequest(), "/file -");
  EXPECT_EQ(FetchAndAwait(2, File("/file")).folder, copy_);
  Start();
  EXPECT_EQ(FetchAndAwait(3, File("/file")).folder, copy_);
  EXPECT_TRUE(server_->HasReadAllRequests());
}

TEST_F(DataCopies, AnotherUrlGivesTheSameFileAnotherName) {
  FetchAndAwait(1, File("/file"));
  EXPECT_EQ(server_->NextRequest(), "/file -");
  const gang::DataFile mirrored = File("/mirror/train.tar.gz");
  EXPECT_EQ(FetchAndAwait(2, mirrored).error, "");
  EXPECT_TRUE(server_->HasReadAllRequests());
  const fs::path path = PathOfData(copy_, mirrored);
  EXPECT_EQ(path.filename(), "train.tar.gz");
  EXPECT_EQ(gang::ReadFile(path), text_);
  EXPECT_EQ(Mode(copy_), 0555u);
  EXPECT_EQ(FetchAndAwait(3, mirrored).error, "");
}

TEST_F(DataCopies, KeepsAFileThatWasOnlyTouched) {
  FetchAndAwait(1, File("/file"));
  EXPECT_EQ(server_->NextRequest(), "/file -");
  fs::last_write_time(copy_ / "file", fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(FetchAndAwait(2, File("/file")).error, "");
  EXPECT_TRUE(server_->HasReadAllRequests());
}

TEST_F(DataCopies, DownloadsAChangedOrMissingFileAgain) {
  FetchAndAwait(1, File("/file"));
  Overwrite(copy_ / "file", "changed");
  EXPECT_EQ(FetchAndAwait(2, File("/file")).error, "");
  EXPECT_EQ(gang::ReadFile(copy_ / "file"), text_);
  fs::permissions(copy_, fs::perms::owner_write, fs::perm_options::add);
  fs::remove(copy_ / "file");
  EXPECT_EQ(FetchAndAwait(3, File("/file")).error, "");
  EXPECT_EQ(gang::ReadFile(copy_ / "file"), text_);
  Overwrite(copy_ / ".stamp", "../../etc/passwd");
  EXPECT_EQ(FetchAndAwait(4, File("/file")).error, "");
  EXPECT_THAT(Names(copies_), ElementsAre(sha256_));
}

TEST_F(DataCopies, ANewExecutorContinuesADownload) {
  FetchHalf();
  Start();  // the first one has ended
  EXPECT_EQ(FetchAndAwait(2, File("/gate")).error, "");
  EXPECT_EQ(server_->NextRequest(), "/gate bytes=" + std::to_string(kBytes / 2) + "-");
  EXPECT_EQ(gang::ReadFile(copy_ / "gate"), text_);
}

TEST_F(DataCopies, CompletesACopyWhoseFileIsComplete) {
  const fs::path part = copies_ / ("." + sha256_ + ".part");
  fs::create_directories(part);
  gang::WriteFile(part / "file", text_);
  gang::WriteFile(part / "other.partial", "from another URL");
  EXPECT_EQ(FetchAndAwait(1, File("/file")).error, "");
  EXPECT_TRUE(server_->HasReadAllRequests());
  EXPECT_THAT(Names(copy_), UnorderedElementsAre("file", ".stamp"));
}

TEST_F(DataCopies, ReplacesACompleteFileThatWasChanged) {
  const fs::path part = copies_ / ("." + sha256_ + ".part");
  fs::create_directories(part);
  gang::WriteFile(part / "file", "changed");
  EXPECT_EQ(FetchAndAwait(1, File("/file")).error, "");
  EXPECT_EQ(gang::ReadFile(copy_ / "file"), text_);
}

TEST_F(DataCopies, CancelsADownloadThatNoGangNeeds) {
  FetchHalf();
  Fetch(2, File("/file"));
  fetcher_->Release(Spec(1).attempt);
  EXPECT_EQ(Await(2).error, "");
  EXPECT_FALSE(done_.contains(1));
}

TEST_F(DataCopies, AMissingFileIsTheHostsErrorWithUrlAndStatus) {
  const Fetched fetched = FetchAndAwait(1, File("/missing?token=secret"));
  EXPECT_THAT(fetched.error,
              AllOf(HasSubstr("data train could not be fetched: " + server_->Url("/missing")),
                    HasSubstr("HTTP status 404"), ::testing::Not(HasSubstr("secret"))));
  EXPECT_FALSE(fetched.is_final);
}

TEST_F(DataCopies, AWrongHashIsPermanent) {
  sha256_ = std::string(64, 'a');
  const Fetched fetched = FetchAndAwait(1, File("/file"));
  EXPECT_THAT(fetched.error, AllOf(HasSubstr(sha256_), HasSubstr(Sha256::HexOf(text_))));
  EXPECT_TRUE(fetched.is_final);
  EXPECT_FALSE(fs::exists(copies_ / sha256_));
}

TEST_F(DataCopies, AnInvalidHashOrUrlIsPermanent) {
  gang::DataFile file = File("/file");
  file.url = "gopher://127.0.0.1/file";
  EXPECT_TRUE(FetchAndAwait(1, file).is_final);
  file = File("/file");
  file.sha256 = "../../elsewhere";
  EXPECT_TRUE(FetchAndAwait(2, file).is_final);
  EXPECT_TRUE(server_->HasReadAllRequests());
}

TEST_F(DataCopies, AShortDiskIsTheHostsError) {
  Start(uint64_t{1} << 60);
  const Fetched fetched = FetchAndAwait(1, File("/file"));
  EXPECT_THAT(fetched.error, HasSubstr(std::to_string(uint64_t{1} << 60)));
  EXPECT_FALSE(fetched.is_final);
}

TEST_F(DataCopies, AnUnusedCopyIsDeletedWhenTheDiskIsShort) {
  FetchAndAwait(1, File("/file"));
  fetcher_->Release(Spec(1).attempt);
  fetcher_->EvictUnused();
  const auto deadline = std::chrono::steady_clock::now() + gang::kDeadline;
  while (!Names(copies_).empty() && std::chrono::steady_clock::now() < deadline) sched_yield();
  EXPECT_THAT(Names(copies_), IsEmpty());
}

TEST_F(DataCopies, TheLogsOfGangsThatWaitSayWhy) {
  FetchHalf();
  Fetch(2, File("/gate"));
  server_->OpenGate();
  EXPECT_EQ(Await(1).error, "");
  EXPECT_EQ(Await(2).error, "");
  EXPECT_EQ(LogOf(1), "[attune] downloading train from " + server_->Url("/gate") + "\n");
}

TEST_F(DataCopies, LinesInTheLogShowTheProgress) {
  const gang::GangSpec spec = Spec(1);
  const WantedCopy wanted = WantedData(spec, {.name = "train", .url = "https://ada:l@a/t.bin?k"});
  wanted.progress(Progress{.bytes_done = 45'400'000, .bytes_all = 170'498'071});
  wanted.progress(Progress{.bytes_done = 1'250'000, .bytes_all = 2'000'000});
  wanted.progress(Progress{.bytes_done = 2'500'000});
  wanted.progress(std::nullopt);
  EXPECT_EQ(LogOf(1),
            "[attune] downloading train from https://a/t.bin: 45 of 170 MB\n"
            "[attune] downloading train from https://a/t.bin: 1.2 of 2.0 MB\n"
            "[attune] downloading train from https://a/t.bin: 2.5 MB\n"
            "[attune] waiting for train: this host downloads other data first\n");
}

}  // namespace
}  // namespace attune::agent
