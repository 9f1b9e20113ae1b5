#include "executor/transfer/uploader.h"

#include <gmock/gmock.h>

#include <condition_variable>
#include <cstdlib>
#include <map>

#include "object_storage/process.h"
#include "tests/unit/executor/harness.h"
#include "tests/unit/executor/transfer/fake_rclone.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Clock = std::chrono::steady_clock;

// Pauses that no test waits for.
constexpr UploadOptions kPatient{
    .settle = milliseconds(0), .pause = std::chrono::hours(1), .backoff = std::chrono::hours(1)};

class UploaderTest : public testing::Test {
 protected:
  void Start(UploadOptions options = kPatient) {
    options.store.tries = 1;
    uploader_ = std::make_unique<Uploader>(
        gang::Folders(data_.path()), environment_,
        Uploader::Events{.stored = [this](const v1::Upload& upload) { Add(stored_, upload); },
                         .skipped = [this](const std::string& path) { Add(skipped_, path); },
                         .problem = [this](const std::string& why) { Add(problems_, why); }},
        options);
  }

  template <class Value>
  void Add(std::vector<Value>& values, const Value& value) {
    const std::lock_guard lock(mutex_);
    values.push_back(value);
    changed_.notify_all();
  }
  template <class Value>
  std::vector<Value> Await(const std::vector<Value>& values, size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, gang::kDeadline, [&] { return values.size() >= count; });
    return values;
  }

  // The steps of the uploads that are stored, when there are as many.
  std::vector<int64_t> Stored(size_t count) {
    std::vector<int64_t> steps;
    for (const v1::Upload& upload : Await(stored_, count))
      steps.push_back(upload.checkpoint().step());
    return steps;
  }
  std::vector<std::string> Problems(size_t count) { return Await(problems_, count); }

  fs::path Folder(int64_t step) const {
    return gang::Folders(data_.path()).Checkpoints({.sweep = 1, .trial = 3}) /
           gang::CheckpointFolder(step, 2);
  }
  std::string Write(int64_t step) {
    return digests_[step] = WriteCheckpoint(Folder(step), "model " + std::to_string(step));
  }
  // The upload of a checkpoint, which is written unless it was before.
  v1::Upload Wanted(int64_t step, const std::string& address = "") {
    v1::Upload upload;
    upload.mutable_checkpoint()->set_sweep(1);
    upload.mutable_checkpoint()->set_trial(3);
    upload.mutable_checkpoint()->set_attempt(2);
    upload.mutable_checkpoint()->set_step(step);
    upload.set_path(Folder(step));
    upload.set_digest(digests_.contains(step) ? digests_.at(step) : Write(step));
    upload.set_address(address.empty() ? rclone_.Address() : address);
    upload.set_stored(Path(step));
    return upload;
  }
  static std::string Path(int64_t step) { return "checkpoints/step-" + std::to_string(step); }
  static std::string KeyName() { return "AWS_ACCESS_KEY_ID"; }

  void SetUploads(const std::vector<v1::Upload>& wanted, const std::string& key = "old") {
    v1::Uploads uploads;
    for (const v1::Upload& upload : wanted) *uploads.add_uploads() = upload;
    v1::NamedValue& variable = *uploads.add_environment();
    variable.set_name(KeyName());
    variable.mutable_value()->set_text(key);
    uploads.set_bytes_per_second_max(bytes_per_second_max_);
    uploader_->SetUploads(uploads);
  }

  gang::TempDir data_;
  FakeRclone rclone_;
  object_storage::Environment environment_ = rclone_.Environment();
  uint64_t bytes_per_second_max_ = 0;
  std::map<int64_t, std::string> digests_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1::Upload> stored_;
  std::vector<std::string> skipped_;
  std::vector<std::string> problems_;
  std::unique_ptr<Uploader> uploader_;
};

TEST_F(UploaderTest, CopiesCheckpointsInTheOrderOfTheList) {
  Start();
  SetUploads({Wanted(30), Wanted(10), Wanted(20)});
  EXPECT_THAT(Stored(3), ElementsAre(30, 10, 20));
  for (const int64_t step : {10, 20, 30}) {
    for (const std::string name : {"model", "state/rng", "manifest.json"})
      EXPECT_EQ(gang::ReadFile(rclone_.Store() / Path(step) / name),
                gang::ReadFile(Folder(step) / name));
  }
  EXPECT_EQ(stored_[0].digest(), digests_.at(30));
  EXPECT_EQ(stored_[0].address(), rclone_.Address());
  EXPECT_THAT(problems_, IsEmpty());
  EXPECT_THAT(skipped_, IsEmpty());
}

TEST_F(UploaderTest, ReportsAnUploadOnce) {
  Start();
  SetUploads({Wanted(10)});
  Stored(1);
  SetUploads({Wanted(10), Wanted(20)});
  EXPECT_THAT(Stored(2), ElementsAre(10, 20));
}

TEST_F(UploaderTest, AnUploadThatIsWantedAgainIsReportedAgain) {
  Start();
  SetUploads({Wanted(10)});
  Stored(1);
  SetUploads({});
  SetUploads({Wanted(10)});
  EXPECT_THAT(Stored(2), ElementsAre(10, 10));
}

TEST_F(UploaderTest, ASupersededCheckpointIsNotSent) {
  UploadOptions options = kPatient;
  options.settle = std::chrono::seconds(1);
  Start(options);
  const Clock::time_point begun = Clock::now();
  SetUploads({Wanted(10)});
  SetUploads({Wanted(20)});
  EXPECT_THAT(Stored(1), ElementsAre(20));
  EXPECT_GE(Clock::now() - begun, options.settle);
  EXPECT_THAT(rclone_.Calls(), Not(Contains(HasSubstr(Path(10)))));
}

TEST_F(UploaderTest, CancelsAnUploadThatIsNoLongerWanted) {
  rclone_.Hold("copy");
  Start();
  SetUploads({Wanted(10)});
  ASSERT_TRUE(rclone_.AwaitCall("copy"));
  rclone_.StopHolding("copy");
  SetUploads({Wanted(20)});
  EXPECT_THAT(Stored(1), ElementsAre(20));
  EXPECT_FALSE(fs::exists(rclone_.Store() / Path(10)));
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(UploaderTest, KeepsTheCurrentUploadThatIsStillWanted) {
  rclone_.Hold("copy");
  Start();
  SetUploads({Wanted(10)});
  ASSERT_TRUE(rclone_.AwaitCall("copy"));
  SetUploads({Wanted(20), Wanted(10)});
  rclone_.Release("copy");
  EXPECT_THAT(Stored(2), ElementsAre(10, 20));
}

TEST_F(UploaderTest, ItsEndStopsTheCurrentUpload) {
  rclone_.Hold("copy");
  Start();
  SetUploads({Wanted(10), Wanted(20)});
  ASSERT_TRUE(rclone_.AwaitCall("copy"));
  const Clock::time_point begun = Clock::now();
  uploader_.reset();
  EXPECT_LT(Clock::now() - begun, object_storage::Process::kStopGrace);
  EXPECT_THAT(rclone_.Calls("copy"), SizeIs(1));
  EXPECT_THAT(stored_, IsEmpty());
}

TEST_F(UploaderTest, SendsOnlyFilesThatAreMissingAfterACrash) {
  const v1::Upload wanted = Wanted(10);
  fs::create_directories(rclone_.Store() / Path(10));
  fs::copy_file(Folder(10) / "model", rclone_.Store() / Path(10) / "model");
  Start();
  SetUploads({wanted});
  EXPECT_THAT(Stored(1), ElementsAre(10));
  EXPECT_THAT(rclone_.Copied(), ElementsAre("state/rng", "manifest.json"));
}

TEST_F(UploaderTest, ACompleteCopyIsReportedByTheNextProcess) {
  Start();
  SetUploads({Wanted(10)});
  Stored(1);
  uploader_.reset();
  Start();
  SetUploads({Wanted(10)});
  EXPECT_THAT(Stored(2), ElementsAre(10, 10));
  EXPECT_THAT(rclone_.Copied(), SizeIs(3));
}

TEST_F(UploaderTest, PausesIfItIsDeniedUntilTheCredentialsChange) {
  rclone_.SetKey("new");
  Start();
  SetUploads({Wanted(10), Wanted(20)}, "old");
  EXPECT_THAT(Problems(1),
              ElementsAre(AllOf(HasSubstr(rclone_.Address()), HasSubstr("AccessDenied"))));
  SetUploads({Wanted(10), Wanted(20), Wanted(30)}, "old");
  SetUploads({Wanted(10), Wanted(20), Wanted(30)}, "new");
  EXPECT_THAT(Stored(3), testing::UnorderedElementsAre(10, 20, 30));
  EXPECT_THAT(Problems(2), ElementsAre(Not(IsEmpty()), ""));
  // Only one call was denied.
  EXPECT_THAT(rclone_.Calls(), SizeIs(1 + 3 * 4));
}

TEST_F(UploaderTest, CredentialsThatComeDuringAnUploadAreTriedAtOnce) {
  rclone_.SetKey("new");
  rclone_.Hold("lsjson");
  Start();
  SetUploads({Wanted(10)}, "old");
  ASSERT_TRUE(rclone_.AwaitCall("lsjson"));
  SetUploads({Wanted(10)}, "new");
  rclone_.Release("lsjson");
  EXPECT_THAT(Stored(1), ElementsAre(10));
}

TEST_F(UploaderTest, ItsOwnEnvironmentIsReplaced) {
  environment_.push_back(KeyName() + "=own");
  rclone_.SetKey("sent");
  Start();
  SetUploads({Wanted(10)}, "sent");
  EXPECT_THAT(Stored(1), ElementsAre(10));
}

TEST_F(UploaderTest, TriesAgainAfterThePause) {
  rclone_.Fail("lsjson", "QuotaExceeded");
  UploadOptions options = kPatient;
  options.pause = milliseconds(1);
  Start(options);
  SetUploads({Wanted(10)});
  ASSERT_TRUE(rclone_.AwaitCall("lsjson", 2));
  rclone_.Repair("lsjson");
  EXPECT_THAT(Stored(1), ElementsAre(10));
  EXPECT_THAT(Problems(2), ElementsAre(HasSubstr("QuotaExceeded"), ""));
}

TEST_F(UploaderTest, TriesTheNextUploadFirstAfterAnError) {
  rclone_.Fail("copy", "connection reset");
  UploadOptions options = kPatient;
  options.backoff = milliseconds(1);
  Start(options);
  SetUploads({Wanted(10), Wanted(20)});
  ASSERT_TRUE(rclone_.AwaitCall("copy", 3));
  EXPECT_THAT(rclone_.Calls("copy")[0], HasSubstr(Path(10)));
  EXPECT_THAT(rclone_.Calls("copy")[1], HasSubstr(Path(20)));
  EXPECT_THAT(rclone_.Calls("copy")[2], HasSubstr(Path(10)));
  rclone_.Repair("copy");
  EXPECT_THAT(Stored(2), SizeIs(2));
  EXPECT_THAT(Problems(2).front(), HasSubstr("connection reset"));
  EXPECT_EQ(Problems(2).back(), "");
}

TEST_F(UploaderTest, PausesOnlyTheStoreThatFails) {
  Start();
  SetUploads({Wanted(10, "s4://bucket"), Wanted(20)});
  EXPECT_THAT(Stored(1), ElementsAre(20));
  EXPECT_THAT(Problems(1), ElementsAre(HasSubstr("s4://bucket")));
}

TEST_F(UploaderTest, NothingIsPausedIfNothingIsWanted) {
  rclone_.SetKey("new");
  Start();
  SetUploads({Wanted(10)});
  Problems(1);
  SetUploads({});
  EXPECT_THAT(Problems(2), ElementsAre(HasSubstr("AccessDenied"), ""));
}

TEST_F(UploaderTest, WithoutRcloneTheProblemSaysHowToInstallIt) {
  environment_ = {"PATH=/usr/bin:/bin", "ATTUNE_RCLONE=/nonexistent/rclone"};
  Start();
  SetUploads({Wanted(10)});
  EXPECT_THAT(Problems(1), ElementsAre(HasSubstr("install rclone")));
}

TEST_F(UploaderTest, PassesOverACheckpointThatIsGoneUntilTheListChanges) {
  const v1::Upload gone = Wanted(10);
  const fs::path elsewhere = data_.path() / "elsewhere";
  fs::rename(Folder(10), elsewhere);
  Start();
  SetUploads({gone, Wanted(20)});
  EXPECT_THAT(Stored(1), ElementsAre(20));
  fs::rename(elsewhere, Folder(10));
  SetUploads({gone, Wanted(30)});
  EXPECT_THAT(Stored(3), ElementsAre(20, 10, 30));
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(UploaderTest, ReportsAnUploadThatItPassesOverOnce) {
  const v1::Upload gone = Wanted(10);
  fs::remove_all(Folder(10));
  Start();
  SetUploads({gone, Wanted(20)});
  EXPECT_THAT(Await(skipped_, 1), ElementsAre(Path(10)));
  Stored(1);
  SetUploads({gone, Wanted(20), Wanted(30)});
  EXPECT_THAT(Stored(2), ElementsAre(20, 30));
  EXPECT_THAT(Await(skipped_, 1), SizeIs(1));
  SetUploads({Wanted(20)});
  SetUploads({gone, Wanted(20)});
  EXPECT_THAT(Await(skipped_, 2), ElementsAre(Path(10), Path(10)));
}

TEST_F(UploaderTest, PassesOverACheckpointWithAnIncompleteFile) {
  const v1::Upload damaged = Wanted(10);
  fs::resize_file(Folder(10) / "model", 3);
  Start();
  SetUploads({damaged, Wanted(20)});
  EXPECT_THAT(Stored(1), ElementsAre(20));
  EXPECT_THAT(Await(skipped_, 1), ElementsAre(Path(10)));
  EXPECT_FALSE(fs::exists(rclone_.Store() / Path(10)));
}

TEST_F(UploaderTest, SendsNothingOutsideOfTheCheckpoints) {
  v1::Upload other = Wanted(10);
  other.set_digest(WriteCheckpoint(data_.path() / "other", "secret"));
  other.set_path(data_.path() / "other");
  v1::Upload above = Wanted(10);
  above.set_digest(WriteCheckpoint(Folder(10).parent_path().parent_path(), "secret"));
  above.set_path(Folder(10).parent_path() / "..");
  Start();
  SetUploads({other, above, Wanted(20)});
  EXPECT_THAT(Stored(1), ElementsAre(20));
  EXPECT_FALSE(fs::exists(rclone_.Store() / Path(10)));
}

TEST_F(UploaderTest, ItsProcessesHaveALowPriorityAndTheLimitOfTheServer) {
  bytes_per_second_max_ = 12'345;
  Start();
  SetUploads({Wanted(10)});
  Stored(1);
  EXPECT_THAT(rclone_.Priorities(), AllOf(Not(IsEmpty()), Each("10")));
  EXPECT_THAT(rclone_.Limits(), Contains("--bwlimit=12345B"));
}

TEST_F(UploaderTest, WorksWithTheInstalledRclone) {
  const fs::path installed = fs::path(ATTUNE_SOURCE_DIR) / ".deps/python-storage/bin/rclone";
  const char* const chosen = std::getenv("ATTUNE_RCLONE");
  if (chosen == nullptr && !fs::exists(installed))
    GTEST_SKIP() << "rclone is not installed; run `scripts/setup tests`";
  environment_ = {"PATH=/usr/bin:/bin", "HOME=/nonexistent",
                  "ATTUNE_RCLONE=" + (chosen == nullptr ? installed.string() : chosen)};
  Start();
  SetUploads({Wanted(10), Wanted(20)});
  EXPECT_THAT(Stored(2), ElementsAre(10, 20));
  EXPECT_EQ(gang::ReadFile(rclone_.Store() / Path(20) / "model"), "model 20");
}

}  // namespace
}  // namespace attune::agent
