#include "object_storage/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "checkpoints/download.h"
#include "checkpoints/manifest.h"
#include "object_storage/stored_folder.h"
#include "system/sha256.h"
#include "tests/support/scratch_folder.h"
#include "tests/unit/object_storage/s3_server.h"

namespace attune::object_storage {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using std::chrono_literals::operator""ms;

constexpr size_t kPartBytes = 5 << 20;
constexpr char kPath[] = "checkpoints/s1/17/2-900";

std::string ReadFile(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Bytes that do not repeat.
std::string Content(size_t bytes) {
  std::string content(bytes, '\0');
  uint32_t state = 1;
  for (char& c : content) c = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return content;
}

class ObjectStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!S3Server::WhyMissing().empty()) GTEST_SKIP() << S3Server::WhyMissing();
    server_ = S3Server::Shared();
    server_->MakeBucket(bucket_);
  }

  ObjectStore Store() { return StoreAt("s3://" + bucket_ + "/base"); }
  ObjectStore StoreAt(const std::string& address) {
    const std::string settings =
        address.starts_with("s3") ? "?region=us-east-1&endpoint=" + server_->endpoint() : "";
    return ObjectStore::Open(ParseAddress(address + settings).value(), environment_, options_)
        .value();
  }

  void Write(const std::string& name, const std::string& text) {
    const fs::path path = source_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }

  // A checkpoint of two files. Returns its digest.
  std::string WriteCheckpoint(const std::string& weights = "weights") {
    Write("rank-0/weights", weights);
    Write("state", "state");
    checkpoints::Manifest manifest{.step = 900};
    manifest.files["rank-0/weights"] = {weights.size(), Sha256::HexOf(weights)};
    manifest.files["state"] = {5, Sha256::HexOf("state")};
    Write("manifest.json", ToJson(manifest));
    return checkpoints::DigestOf(ToJson(manifest));
  }

  UploadRequest Checkpoint() const {
    return {.folder = source_.path(),
            .files = {"rank-0/weights", "state"},
            .manifest = "manifest.json",
            .path = kPath};
  }

  Result<Uploaded> Upload() { return Store().Upload(Checkpoint(), stop_.get_token()); }
  ErrorCode CodeOfUpload() {
    const Result<Uploaded> uploaded = Upload();
    return uploaded.ok() ? ErrorCode::kInternal : uploaded.error().code;
  }

  std::string Key(const std::string& name) const {
    return std::string("base/") + kPath + '/' + name;
  }
  std::string Url(const std::string& name) const { return '/' + bucket_ + '/' + Key(name); }

  checkpoints::Downloaded Download(const std::string& digest) {
    const ObjectStore store = Store();
    Result<StoredFolder> folder = StoredFolder::Open(store, kPath, stop_.get_token());
    if (!folder.ok()) return {.status = folder.error()};
    return checkpoints::Download(
        {.name = kPath,
         .digest = digest,
         .read = [&](const std::string& file, uint64_t offset,
                     std::string memory) { return folder->Read(file, offset, std::move(memory)); }},
        copy_ / "checkpoint", {});
  }

  const attune::testing::ScratchFolder source_;
  const attune::testing::ScratchFolder copy_;
  const std::string bucket_ = S3Server::NewBucketName();
  Environment environment_ = TestEnvironment();
  StoreOptions options_{
      .parts = {.from_bytes = kPartBytes, .part_bytes = kPartBytes}, .tries = 3, .backoff = 1ms};
  std::stop_source stop_;
  S3Server* server_ = nullptr;
};

TEST_F(ObjectStoreTest, UploadsTheManifestLast) {
  WriteCheckpoint();
  const Result<Uploaded> uploaded = Upload();
  ASSERT_TRUE(uploaded.ok()) << uploaded.error().message;
  EXPECT_EQ(uploaded->files, 3u);
  EXPECT_EQ(uploaded->bytes, 12 + fs::file_size(source_ / "manifest.json"));
  EXPECT_THAT(server_->Keys(bucket_),
              UnorderedElementsAre(Key("manifest.json"), Key("rank-0/weights"), Key("state")));
  const std::vector<std::string> sent = server_->Requests("^PUT /" + bucket_ + '/');
  ASSERT_THAT(sent, SizeIs(3));
  EXPECT_THAT(sent.back(), HasSubstr("manifest.json"));
}

TEST_F(ObjectStoreTest, ADownloadIsVerified) {
  const std::string digest = WriteCheckpoint();
  ASSERT_TRUE(Upload().ok());
  const checkpoints::Downloaded done = Download(digest);
  ASSERT_TRUE(done.status.ok()) << done.status.error().message;
  EXPECT_EQ(ReadFile(copy_ / "checkpoint/rank-0/weights"), "weights");
  EXPECT_EQ(ReadFile(copy_ / "checkpoint/state"), "state");
}

TEST_F(ObjectStoreTest, ADownloadFindsADamagedFile) {
  const std::string digest = WriteCheckpoint();
  ASSERT_TRUE(Upload().ok());
  server_->Put(bucket_, Key("rank-0/weights"), "damaged");
  EXPECT_EQ(Download(digest).status.error().code, ErrorCode::kCorrupt);
}

TEST_F(ObjectStoreTest, SendsNothingThatIsStored) {
  WriteCheckpoint();
  ASSERT_TRUE(Upload().ok());
  server_->Requests("");
  const Result<Uploaded> again = Upload();
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->files, 0u);
  EXPECT_THAT(server_->Requests("^PUT /" + bucket_), IsEmpty());
}

TEST_F(ObjectStoreTest, SendsAFileOfAnotherSizeAgain) {
  WriteCheckpoint();
  server_->Put(bucket_, Key("state"), "half");
  ASSERT_TRUE(Upload().ok());
  EXPECT_THAT(Store().List(kPath, {}).value(), ::testing::Contains(Pair("state", 5)));
}

TEST_F(ObjectStoreTest, LargeFilesAreSentInParts) {
  const std::string digest = WriteCheckpoint(Content(2 * kPartBytes + 1));
  ASSERT_TRUE(Upload().ok());
  EXPECT_THAT(server_->Requests("^PUT " + Url("rank-0/weights") + ".*partNumber="), SizeIs(3));
  const checkpoints::Downloaded done = Download(digest);
  EXPECT_TRUE(done.status.ok()) << done.status.error().message;
  EXPECT_EQ(done.bytes, 2 * kPartBytes + 6);
}

TEST_F(ObjectStoreTest, AKilledUploadContinuesWithTheFilesThatAreMissing) {
  const std::string digest = WriteCheckpoint(Content(2 * kPartBytes));
  options_.transfers = 2;
  server_->Fail("hold", "PUT " + Url("rank-0/weights") + ".*partNumber=2", 1);
  const pid_t child = fork();
  if (child == 0) _exit(Upload().ok() ? 0 : 1);
  server_->Await("^PUT " + Url("state"));
  server_->Await("^PUT " + Url("rank-0/weights") + ".*partNumber=2");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  server_->Await("^gone PUT " + Url("rank-0/weights"));  // rclone has ended with its parent
  EXPECT_THAT(server_->Keys(bucket_), ElementsAre(Key("state")));
  EXPECT_THAT(server_->UnfinishedUploads(bucket_), ElementsAre(Key("rank-0/weights")));

  server_->Requests("");
  const Result<Uploaded> uploaded = Upload();
  ASSERT_TRUE(uploaded.ok()) << uploaded.error().message;
  EXPECT_EQ(uploaded->files, 2u);
  EXPECT_THAT(server_->Requests("^PUT " + Url("state")), IsEmpty());
  EXPECT_TRUE(Download(digest).status.ok());
}

TEST_F(ObjectStoreTest, AStoppedUploadLeavesNoPartsAndNoManifest) {
  WriteCheckpoint(Content(2 * kPartBytes));
  server_->Fail("hold", "PUT " + Url("rank-0/weights") + ".*partNumber=2", 1);
  std::optional<Result<Uploaded>> uploaded;
  std::thread uploading([&] { uploaded = Upload(); });
  server_->Await("^PUT " + Url("rank-0/weights") + ".*partNumber=2");
  stop_.request_stop();
  uploading.join();
  ASSERT_FALSE(uploaded->ok());
  EXPECT_EQ(uploaded->error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(server_->UnfinishedUploads(bucket_), IsEmpty());
  EXPECT_THAT(server_->Keys(bucket_), Not(::testing::Contains(Key("manifest.json"))));
}

TEST_F(ObjectStoreTest, RemovesAbandonedParts) {
  server_->BeginUpload(bucket_, "base/checkpoints/a");
  server_->BeginUpload(bucket_, "other/a");
  // moto says that all uploads began in 2010.
  ASSERT_TRUE(Store().RemoveAbandonedParts("checkpoints", std::chrono::hours(1'000'000), {}).ok());
  EXPECT_THAT(server_->UnfinishedUploads(bucket_), SizeIs(2));
  const Status removed = Store().RemoveAbandonedParts("checkpoints", std::chrono::hours(24), {});
  EXPECT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_THAT(server_->UnfinishedUploads(bucket_), ElementsAre("other/a"));
}

TEST_F(ObjectStoreTest, RemovesOnlyFilesBelowThePath) {
  for (const std::string key : {"base/a/manifest.json", "base/a/b/manifest.json", "base/a/b/c",
                                "base/ab/c", "base/a.txt", "other/a/c"})
    server_->Put(bucket_, key, "text");
  const Status removed = Store().Remove("a", "manifest.json", {});
  ASSERT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_THAT(server_->Keys(bucket_), UnorderedElementsAre("base/ab/c", "base/a.txt", "other/a/c"));
  EXPECT_TRUE(Store().Remove("a", "manifest.json", {}).ok()) << "there is nothing to delete";
}

TEST_F(ObjectStoreTest, AnInterruptedRemovalLeavesNoManifest) {
  server_->Put(bucket_, "base/a/b", "text");
  server_->Put(bucket_, "base/a/manifest.json", "text");
  server_->Fail("denied", "(DELETE|POST) /" + bucket_ + "/base/a/b");
  EXPECT_EQ(Store().Remove("a", "manifest.json", {}).error().code, ErrorCode::kDenied);
  EXPECT_THAT(server_->Keys(bucket_), ElementsAre("base/a/b"));
}

TEST_F(ObjectStoreTest, ListsOnlyValidNamesBelowThePath) {
  for (const std::string key : {"base/a/b", "base/a/c/d e.txt", "base/a/../../etc/passwd",
                                "base/a//etc/passwd", "base/a/./b", "base/ab", "base/a/f/"})
    server_->Put(bucket_, key, "text");
  const StoredFiles files = Store().List("a", {}).value();
  EXPECT_THAT(files, ::testing::IsSupersetOf({Pair("b", 4u), Pair("c/d e.txt", 4u)}));
  for (const auto& [name, bytes] : files) EXPECT_EQ(checkpoints::NameFault(name), "");
  EXPECT_THAT(files, Not(::testing::Contains(Pair(HasSubstr(".."), ::testing::_))));
  EXPECT_THAT(Store().List("nothing", {}).value(), IsEmpty());
}

TEST_F(ObjectStoreTest, AMissingBucketIsInvalid) {
  const ObjectStore store = StoreAt("s3://no-such-bucket/base");
  WriteCheckpoint();
  const Error error = store.Upload(Checkpoint(), {}).error();
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("no-such-bucket"));
  EXPECT_EQ(store.List("a", {}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(store.Remove("a", "manifest.json", {}).error().code, ErrorCode::kInvalid);
}

TEST_F(ObjectStoreTest, ExpiredCredentialsAreDeniedAtOnce) {
  WriteCheckpoint();
  server_->Fail("expired", '/' + bucket_);
  const Result<Uploaded> uploaded = Upload();
  ASSERT_FALSE(uploaded.ok());
  EXPECT_EQ(uploaded.error().code, ErrorCode::kDenied);
  EXPECT_THAT(uploaded.error().message,
              AllOf(HasSubstr("s3://" + bucket_ + "/base"), HasSubstr("ExpiredToken"),
                    HasSubstr("credentials"), Not(HasSubstr("test-secret-key")),
                    Not(HasSubstr("test-access-key"))));
  // rclone 1.60 lists twice.
  EXPECT_THAT(server_->Requests('/' + bucket_), SizeIs(::testing::Le(2)));
}

TEST_F(ObjectStoreTest, CredentialsThatExpireDuringAnUploadAreDenied) {
  WriteCheckpoint();
  server_->Fail("expired", "PUT " + Url("state"));
  EXPECT_EQ(CodeOfUpload(), ErrorCode::kDenied);
  EXPECT_THAT(server_->Keys(bucket_), Not(::testing::Contains(Key("manifest.json"))));
}

TEST_F(ObjectStoreTest, AFullQuotaIsReported) {
  WriteCheckpoint();
  server_->Fail("full", "PUT " + Url("state"));
  EXPECT_EQ(CodeOfUpload(), ErrorCode::kStorageFull);
}

TEST_F(ObjectStoreTest, RepeatsWhatABusyServiceRefused) {
  WriteCheckpoint();
  server_->Fail("busy", "GET /" + bucket_, 2);
  server_->Fail("broken", "PUT " + Url("state"), 1);
  server_->Fail("cut", "PUT " + Url("rank-0"), 1);
  const Result<Uploaded> uploaded = Upload();
  EXPECT_TRUE(uploaded.ok()) << uploaded.error().message;
}

TEST_F(ObjectStoreTest, GivesUpAServiceThatStaysBusy) {
  server_->Fail("busy", "GET /" + bucket_);
  EXPECT_EQ(Store().List("a", {}).error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(server_->Requests("GET /" + bucket_), SizeIs(::testing::Ge(options_.tries)));
}

TEST_F(ObjectStoreTest, AServiceThatCannotBeReachedIsUnavailable) {
  environment_.push_back("AWS_ENDPOINT_URL=http://127.0.0.1:1");
  const Result<ObjectStore> store =
      ObjectStore::Open(ParseAddress("s3://bucket/base").value(), environment_, options_);
  const Error error = store.value().List("a", {}).error();
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, AllOf(HasSubstr("s3://bucket/base"), HasSubstr("connection refused")));
}

TEST_F(ObjectStoreTest, WaitsForASlowService) {
  const std::string digest = WriteCheckpoint(Content(200'000));
  options_ = {.stall_timeout = 10'000ms, .tries = 1};
  server_->Fail("slow", '/' + bucket_);
  ASSERT_TRUE(Upload().ok());
  EXPECT_TRUE(Download(digest).status.ok());
}

TEST_F(ObjectStoreTest, GivesUpAServiceThatDoesNotAnswer) {
  options_ = {.stall_timeout = 200ms, .tries = 1};
  server_->Fail("hold", "GET /" + bucket_);
  EXPECT_EQ(Store().List("a", {}).error().code, ErrorCode::kUnavailable);
}

TEST_F(ObjectStoreTest, RefusesFilesThatItCannotStore) {
  WriteCheckpoint();
  const ObjectStore store = Store();
  const auto code_of = [&](const UploadRequest& request) {
    const Result<Uploaded> uploaded = store.Upload(request, {});
    return uploaded.ok() ? ErrorCode::kInternal : uploaded.error().code;
  };
  UploadRequest request = Checkpoint();
  request.files = {"missing"};
  EXPECT_EQ(code_of(request), ErrorCode::kNotFound);
  fs::create_symlink("/etc/passwd", source_ / "link");
  request.files = {"link"};
  EXPECT_EQ(code_of(request), ErrorCode::kNotFound);
  for (const std::string name : {"../state", "/etc/passwd", "a\nb", "a\xff"}) {
    request = Checkpoint();
    request.files = {name};
    EXPECT_EQ(code_of(request), ErrorCode::kInvalid) << name;
    request = Checkpoint();
    request.path = name;
    EXPECT_EQ(code_of(request), ErrorCode::kInvalid) << name;
    EXPECT_EQ(store.Remove(name, "manifest.json", {}).error().code, ErrorCode::kInvalid) << name;
  }
  request.path = "";
  EXPECT_EQ(code_of(request), ErrorCode::kInvalid);
  EXPECT_EQ(store.Remove("", "manifest.json", {}).error().code, ErrorCode::kInvalid);
  request = Checkpoint();
  request.manifest = "*";
  EXPECT_EQ(code_of(request), ErrorCode::kInvalid);
  EXPECT_THAT(server_->Keys(bucket_), IsEmpty());
}

TEST_F(ObjectStoreTest, AFolderStoresTheSame) {
  const std::string digest = WriteCheckpoint();
  const ObjectStore store = StoreAt("file://" + (copy_ / "stored"));
  EXPECT_THAT(store.List(kPath, {}).value(), IsEmpty());
  const Result<Uploaded> uploaded = store.Upload(Checkpoint(), {});
  ASSERT_TRUE(uploaded.ok()) << uploaded.error().message;
  EXPECT_THAT(store.List(kPath, {}).value(), SizeIs(3));
  EXPECT_EQ(store.Upload(Checkpoint(), {}).value().files, 0u);
  StoredFolder folder = StoredFolder::Open(store, kPath, {}).value();
  EXPECT_EQ(checkpoints::DigestOf(folder.Read("manifest.json", 0).value().data), digest);
  EXPECT_TRUE(store.RemoveAbandonedParts("checkpoints", std::chrono::hours(0), {}).ok());
  ASSERT_TRUE(store.Remove(kPath, "manifest.json", {}).ok());
  EXPECT_FALSE(fs::exists(copy_ / ("stored/" + std::string(kPath))));
  EXPECT_TRUE(store.Remove(kPath, "manifest.json", {}).ok());
}

// A program instead of rclone records how it was called.
TEST(ObjectStoreCommands, ContainNoCredentials) {
  const attune::testing::ScratchFolder folder;
  const std::string program = folder / "rclone";
  std::ofstream(program) << "#!/bin/sh\necho \"$@\" >>'" << folder / "calls"
                         << "'\n"
                         << "echo 'rclone v1.75.2'\necho refused test-secret-key >&2\n"
                         << "[ $1 = version ]\n";
  fs::permissions(program, fs::perms::owner_all);
  const ObjectStore store = ObjectStore::Open(ParseAddress("s3://bucket/base").value(),
                                              {"PATH=/usr/bin:/bin", "ATTUNE_RCLONE=" + program,
                                               "AWS_SECRET_ACCESS_KEY=test-secret-key"},
                                              {.bytes_per_second_max = 1000, .tries = 1})
                                .value();
  const Error error = store.List("a", {}).error();
  EXPECT_THAT(error.message, AllOf(HasSubstr("refused"), Not(HasSubstr("secret"))));
  EXPECT_THAT(ReadFile(folder / "calls"),
              AllOf(HasSubstr("store:bucket/base/a/"), HasSubstr("--bwlimit=1000B"),
                    Not(HasSubstr("secret"))));
}

}  // namespace
}  // namespace attune::object_storage
