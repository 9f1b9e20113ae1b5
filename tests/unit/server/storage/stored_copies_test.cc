#include "server/storage/stored_copies.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "tests/support/scratch_folder.h"
#include "tests/unit/server/storage/store_environment.h"

namespace attune::server {
namespace {

class StoredCopiesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoStore(); !why.empty()) GTEST_SKIP() << why;
    WriteTestFile(scratch_ / "store/a/manifest.json", "{}");
    WriteTestFile(scratch_ / "store/a/model.bin", "0123456789");
  }

  Result<checkpoints::Piece> Read(const std::string& file, uint64_t offset = 0,
                                  uint32_t limit = 100) {
    return copies_.Read({.address = "file://" + (scratch_ / "store"),
                         .path = "a",
                         .file = file,
                         .offset = offset,
                         .limit_bytes = limit});
  }

  static std::optional<ErrorCode> CodeOf(const Result<checkpoints::Piece>& piece) {
    return piece.ok() ? std::nullopt : std::optional(piece.error().code);
  }

  attune::testing::ScratchFolder scratch_;
  Stores stores_{[] { return Variables(); }, StoreEnvironment(), {}};
  StoredCopies copies_{stores_};
};

TEST_F(StoredCopiesTest, ReadsParts) {
  const auto first = Read("model.bin", 0, 4);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->data, "0123");
  EXPECT_EQ(first->file_bytes, 10u);
  EXPECT_EQ(Read("model.bin", 4, 4).value().data, "4567");
  EXPECT_EQ(Read("model.bin", 8).value().data, "89");
  EXPECT_EQ(Read("model.bin", 2, 3).value().data, "234");
  EXPECT_EQ(Read("model.bin", 10).value().data, "");
  EXPECT_EQ(Read("manifest.json").value().data, "{}");
}

TEST_F(StoredCopiesTest, TellsAMissingFileFromAMissingCopy) {
  EXPECT_EQ(CodeOf(Read("other.bin")), ErrorCode::kNotFound);
  EXPECT_TRUE(Read("model.bin").ok());
  std::filesystem::remove_all(scratch_ / "store/a");
  StoredCopies others(stores_);
  const auto gone = others.Read({.address = "file://" + (scratch_ / "store"),
                                 .path = "a",
                                 .file = "model.bin",
                                 .offset = 0,
                                 .limit_bytes = 10});
  EXPECT_EQ(CodeOf(gone), ErrorCode::kConflict);
}

TEST_F(StoredCopiesTest, AnIncompleteCopyIsNone) {
  std::filesystem::remove(scratch_ / "store/a/manifest.json");
  EXPECT_EQ(CodeOf(Read("model.bin")), ErrorCode::kConflict);
}

TEST_F(StoredCopiesTest, StopsReading) {
  copies_.Stop();
  EXPECT_EQ(CodeOf(Read("model.bin")), ErrorCode::kUnavailable);
}

TEST_F(StoredCopiesTest, RefusesAnInvalidAddress) {
  const auto read = copies_.Read({.address = "ftp://a", .path = "a", .file = "b"});
  EXPECT_EQ(CodeOf(read), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace attune::server
