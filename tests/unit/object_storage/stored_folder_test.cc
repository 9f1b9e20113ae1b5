#include "object_storage/stored_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "object_storage/store.h"
#include "tests/unit/object_storage/s3_server.h"

namespace attune::object_storage {
namespace {

using ::testing::SizeIs;
using std::chrono_literals::operator""ms;

class StoredFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!S3Server::WhyMissing().empty()) GTEST_SKIP() << S3Server::WhyMissing();
    server_ = S3Server::Shared();
    server_->MakeBucket(bucket_);
    server_->Put(bucket_, "a/large", large_);
    server_->Put(bucket_, "a/small", "text");
    server_->Put(bucket_, "a/empty", "");
  }

  StoredFolder Open() {
    const Address address =
        ParseAddress("s3://" + bucket_ + "?region=us-east-1&endpoint=" + server_->endpoint())
            .value();
    store_.emplace(
        ObjectStore::Open(address, TestEnvironment(), {.tries = 2, .backoff = 1ms}).value());
    return std::move(StoredFolder::Open(*store_, "a", stop_.get_token()).value());
  }

  static ErrorCode CodeOf(const Result<checkpoints::Piece>& piece) {
    return piece.ok() ? ErrorCode::kInternal : piece.error().code;
  }

  const std::string large_ = std::string(5 << 20, 'a') + std::string(1 << 20, 'b');
  const std::string bucket_ = S3Server::NewBucketName();
  std::stop_source stop_;
  std::optional<ObjectStore> store_;
  S3Server* server_ = nullptr;
};

TEST_F(StoredFolderTest, ReadsConsecutivePiecesWithOneRequest) {
  StoredFolder folder = Open();
  EXPECT_THAT(folder.files(), SizeIs(3));
  std::string text;
  while (text.size() < large_.size()) {
    const Result<checkpoints::Piece> piece = folder.Read("large", text.size());
    ASSERT_TRUE(piece.ok()) << piece.error().message;
    EXPECT_EQ(piece->file_bytes, large_.size());
    EXPECT_EQ(piece->data.size(),
              std::min(checkpoints::kPieceBytesMax, large_.size() - text.size()));
    text += piece->data;
  }
  EXPECT_EQ(text, large_);
  EXPECT_THAT(server_->Requests("^GET /" + bucket_ + "/a/large"), SizeIs(1));
}

TEST_F(StoredFolderTest, ReadsFromAnyOffset) {
  StoredFolder folder = Open();
  EXPECT_EQ(folder.Read("large", (5 << 20) - 1).value().data, 'a' + std::string(1 << 20, 'b'));
  EXPECT_EQ(folder.Read("small", 1, "memory").value().data, "ext");
  EXPECT_EQ(folder.Read("small", 0).value().data, "text");
  EXPECT_EQ(folder.Read("small", 4).value().data, "");
  EXPECT_EQ(folder.Read("small", 1000).value().data, "");
  EXPECT_EQ(folder.Read("empty", 0).value().file_bytes, 0u);
}

TEST_F(StoredFolderTest, ContinuesWhereTheConnectionWasCut) {
  StoredFolder folder = Open();
  server_->Fail("cut", "GET /" + bucket_ + "/a/large", 1);
  EXPECT_EQ(folder.Read("large", 0).value().data, large_.substr(0, checkpoints::kPieceBytesMax));
  EXPECT_THAT(server_->Requests("^GET /" + bucket_ + "/a/large"), SizeIs(2));
}

TEST_F(StoredFolderTest, AFileThatIsNotListedIsNotFound) {
  StoredFolder folder = Open();
  EXPECT_EQ(CodeOf(folder.Read("other", 0)), ErrorCode::kNotFound);
  EXPECT_EQ(CodeOf(folder.Read("../a/small", 0)), ErrorCode::kNotFound);
}

TEST_F(StoredFolderTest, AFileThatWasDeletedIsNotFound) {
  StoredFolder folder = Open();
  ASSERT_TRUE(store_->Remove("a", "manifest.json", {}).ok());
  EXPECT_EQ(CodeOf(folder.Read("small", 0)), ErrorCode::kNotFound);
}

TEST_F(StoredFolderTest, ExpiredCredentialsAreDenied) {
  StoredFolder folder = Open();
  server_->Fail("expired", '/' + bucket_);
  EXPECT_EQ(CodeOf(folder.Read("small", 0)), ErrorCode::kDenied);
}

TEST_F(StoredFolderTest, StopsWhenItIsAsked) {
  StoredFolder folder = Open();
  ASSERT_TRUE(folder.Read("large", 0).ok());
  stop_.request_stop();
  EXPECT_EQ(CodeOf(folder.Read("small", 0)), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace attune::object_storage
