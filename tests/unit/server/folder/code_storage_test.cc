#include "server/folder/code_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/folder/code_copy.h"
#include "system/sha256.h"
#include "tests/support/scratch_folder.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kBytesMax = 1'000;

struct MadeCode {
  explicit MadeCode(const std::map<std::string, std::string>& files) {
    code::Manifest manifest;
    for (const auto& [path, contents] : files) {
      manifest.files.push_back(
          {.path = path, .bytes = contents.size(), .sha256 = Sha256::HexOf(contents)});
      pack += contents;
    }
    text = code::ToText(manifest);
    digest = code::DigestOf(text);
  }
  std::string text;
  std::string digest;
  std::string pack;  // of all files
};

class CodeStorageTest : public ::testing::Test {
 protected:
  // Sends the manifest, and what is missing of the pack, which must be `missing`.
  void Send(const MadeCode& snapshot, const std::string& missing) {
    auto progress = storage_.AddManifest(snapshot.digest, 0, snapshot.text, true);
    ASSERT_TRUE(progress.ok()) << progress.error().message;
    if (!progress->complete) progress = storage_.AddPack(snapshot.digest, 0, missing);
    ASSERT_TRUE(progress.ok()) << progress.error().message;
    EXPECT_TRUE(progress->complete);
  }

  std::string ReadPack(const MadeCode& snapshot) {
    const auto piece = storage_.Read(snapshot.digest, "pack", 0, 1'000);
    return piece.ok() ? piece->data : "error: " + piece.error().message;
  }

  Status RemoveAllExcept(std::set<std::string> used) {
    return storage_.RemoveUnused([&] { return used; });
  }

  size_t CountFiles() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& file : fs::directory_iterator(folder_ / "code/files"))
      ++count;
    return count;
  }

  attune::testing::ScratchFolder folder_;
  CodeStorage storage_{folder_ / "code", kBytesMax};
  const MadeCode first_{{{"a.py", "aaa"}, {"b.py", "bbbb"}, {"copy.py", "aaa"}, {"e.py", ""}}};
  const MadeCode second_{{{"a.py", "aaa"}, {"b.py", "other"}}};
};

TEST_F(CodeStorageTest, StoresASnapshotThatArrivesInPieces) {
  EXPECT_FALSE(storage_.Find(first_.digest)->complete);
  auto progress = storage_.AddManifest(first_.digest, 0, first_.text.substr(0, 20), false);
  EXPECT_EQ(progress->manifest_bytes, 20u);
  EXPECT_THAT(progress->missing, IsEmpty());
  progress = storage_.AddManifest(first_.digest, 20, first_.text.substr(20), true);
  ASSERT_TRUE(progress.ok()) << progress.error().message;
  EXPECT_THAT(progress->missing, ElementsAre(Sha256::HexOf("aaa"), Sha256::HexOf("bbbb")));
  progress = storage_.AddPack(first_.digest, 0, "aaab");
  EXPECT_EQ(progress->pack_bytes, 4u);
  EXPECT_THAT(progress->missing, IsEmpty()) << "the client has the list";
  EXPECT_FALSE(progress->complete);
  EXPECT_EQ(storage_.Read(first_.digest, "pack", 0, 10).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(storage_.AddPack(first_.digest, 4, "bbb")->complete);
  EXPECT_EQ(ReadPack(first_), "aaabbbbaaa");
  EXPECT_EQ(storage_.Read(first_.digest, "manifest", 0, 1'000)->data, first_.text);
  EXPECT_EQ(storage_.Read(first_.digest, "pack", 2, 3)->data, "abb");
  EXPECT_EQ(storage_.Read(first_.digest, "pack", 2, 3)->file_bytes, 10u);
  EXPECT_EQ(storage_.Read(first_.digest, "other", 0, 3).error().code, ErrorCode::kNotFound);
}

TEST_F(CodeStorageTest, AnotherServerContinuesAnUpload) {
  ASSERT_TRUE(storage_.AddManifest(first_.digest, 0, first_.text, true).ok());
  ASSERT_TRUE(storage_.AddPack(first_.digest, 0, "aa").ok());
  CodeStorage next{folder_ / "code", kBytesMax};
  const auto progress = next.Find(first_.digest);
  EXPECT_EQ(progress->pack_bytes, 2u);
  EXPECT_THAT(progress->missing, SizeIs(2));
  EXPECT_TRUE(next.AddPack(first_.digest, 2, "abbbb")->complete);
}

TEST_F(CodeStorageTest, AsksOnlyForNewFiles) {
  Send(first_, "aaabbbb");
  const auto progress = storage_.AddManifest(second_.digest, 0, second_.text, true);
  EXPECT_THAT(progress->missing, ElementsAre(Sha256::HexOf("other")));
  EXPECT_TRUE(storage_.AddPack(second_.digest, 0, "other")->complete);
  EXPECT_EQ(ReadPack(second_), "aaaother");
}

TEST_F(CodeStorageTest, NeedsNoPackIfItHasAllFiles) {
  Send(first_, "aaabbbb");
  const MadeCode renamed{{{"z.py", "bbbb"}}};
  EXPECT_TRUE(storage_.AddManifest(renamed.digest, 0, renamed.text, true)->complete);
}

TEST_F(CodeStorageTest, RefusesAPieceAtAnotherPlace) {
  EXPECT_EQ(storage_.AddManifest(first_.digest, 5, first_.text, true).error().code,
            ErrorCode::kConflict);
  EXPECT_EQ(storage_.AddPack(first_.digest, 0, "aaa").error().code, ErrorCode::kConflict);
  ASSERT_TRUE(storage_.AddManifest(first_.digest, 0, first_.text, true).ok());
  EXPECT_EQ(storage_.AddManifest(first_.digest, 0, first_.text, true).error().code,
            ErrorCode::kConflict);
  ASSERT_TRUE(storage_.AddPack(first_.digest, 0, "aaa").ok());
  EXPECT_EQ(storage_.AddPack(first_.digest, 0, "aaa").error().code, ErrorCode::kConflict);
  EXPECT_TRUE(storage_.AddPack(first_.digest, 3, "bbbb")->complete);
  EXPECT_TRUE(storage_.AddPack(first_.digest, 3, "bbbb")->complete);  // it arrived twice
}

TEST_F(CodeStorageTest, DropsWhatDoesNotHaveItsHash) {
  EXPECT_EQ(storage_.AddManifest(first_.digest, 0, first_.text + "\n", true).error().code,
            ErrorCode::kCorrupt);
  EXPECT_EQ(storage_.Find(first_.digest)->manifest_bytes, 0u);
  ASSERT_TRUE(storage_.AddManifest(first_.digest, 0, first_.text, true).ok());
  EXPECT_EQ(storage_.AddPack(first_.digest, 0, "aaaBBBB").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(storage_.Find(first_.digest)->manifest_bytes, 0u);
  ASSERT_TRUE(storage_.AddManifest(first_.digest, 0, first_.text, true).ok());
  EXPECT_EQ(storage_.AddPack(first_.digest, 0, "aaabbbbb").error().code, ErrorCode::kCorrupt);
  Send(first_, "bbbb");  // the file that was right is kept
}

TEST_F(CodeStorageTest, RefusesBadManifests) {
  const std::string text = "attune-code/1\nfile\t644\t3\t" + Sha256::HexOf("aaa") + "\t../a\n";
  EXPECT_EQ(storage_.AddManifest(code::DigestOf(text), 0, text, true).error().code,
            ErrorCode::kInvalid);
  const MadeCode large{{{"a", std::string(kBytesMax + 1, 'a')}}};
  EXPECT_EQ(storage_.AddManifest(large.digest, 0, large.text, true).error().code,
            ErrorCode::kInvalid);
  for (const char* digest : {"", "sha256:", "../../etc/passwd", "sha256:../../etc/passwd"}) {
    EXPECT_EQ(storage_.Find(digest).error().code, ErrorCode::kInvalid);
    EXPECT_EQ(storage_.Read(digest, "manifest", 0, 1).error().code, ErrorCode::kInvalid);
    EXPECT_EQ(storage_.Keep(digest), nullptr);
  }
}

TEST_F(CodeStorageTest, DeletesSnapshotsThatNoSweepUses) {
  Send(first_, "aaabbbb");
  Send(second_, "other");
  ASSERT_TRUE(RemoveAllExcept({first_.digest, second_.digest}).ok());
  ASSERT_TRUE(RemoveAllExcept({second_.digest}).ok());
  EXPECT_FALSE(storage_.Find(first_.digest)->complete);
  EXPECT_EQ(ReadPack(second_), "aaaother");
  EXPECT_EQ(CountFiles(), 2u);
  ASSERT_TRUE(RemoveAllExcept({}).ok());
  EXPECT_EQ(CountFiles(), 0u);
}

TEST_F(CodeStorageTest, KeepsASnapshotUntilItsSweepIsCreated) {
  Send(first_, "aaabbbb");
  ASSERT_TRUE(RemoveAllExcept({}).ok());  // the client has just sent it
  EXPECT_TRUE(storage_.Find(first_.digest)->complete);

  ASSERT_TRUE(RemoveAllExcept({first_.digest}).ok());  // a sweep uses it
  std::shared_ptr<void> kept = storage_.Keep(first_.digest);
  ASSERT_NE(kept, nullptr);
  ASSERT_TRUE(RemoveAllExcept({}).ok());
  EXPECT_TRUE(storage_.Find(first_.digest)->complete);
  kept.reset();
  ASSERT_TRUE(RemoveAllExcept({}).ok());
  EXPECT_EQ(storage_.Keep(first_.digest), nullptr);
}

TEST_F(CodeStorageTest, DeletesNothingIfTheSweepsAreUnknown) {
  Send(first_, "aaabbbb");
  ASSERT_TRUE(RemoveAllExcept({first_.digest}).ok());
  const Status failed = storage_.RemoveUnused([]() -> Result<std::set<std::string>> {
    return Error{ErrorCode::kUnavailable, "the tables are being rebuilt"};
  });
  EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(storage_.Find(first_.digest)->complete);
}

TEST_F(CodeStorageTest, AsksAgainForFilesThatWereDeletedMeanwhile) {
  Send(first_, "aaabbbb");
  ASSERT_TRUE(RemoveAllExcept({first_.digest}).ok());
  ASSERT_THAT(storage_.AddManifest(second_.digest, 0, second_.text, true)->missing, SizeIs(1));
  ASSERT_TRUE(RemoveAllExcept({}).ok());
  const auto progress = storage_.AddPack(second_.digest, 0, "other");
  ASSERT_TRUE(progress.ok()) << progress.error().message;
  EXPECT_FALSE(progress->complete);
  EXPECT_THAT(progress->missing, ElementsAre(Sha256::HexOf("aaa")));
  EXPECT_EQ(progress->pack_bytes, 0u);
  EXPECT_TRUE(storage_.AddPack(second_.digest, 0, "aaa")->complete);
}

TEST_F(CodeStorageTest, DeletesFilesThatACrashHasLeft) {
  Send(first_, "aaabbbb");
  std::ofstream(folder_ / ("code/files/" + std::string(64, 'f'))) << "x";
  CodeStorage next{folder_ / "code", kBytesMax};
  ASSERT_TRUE(next.RemoveUnused([&] { return std::set<std::string>{first_.digest}; }).ok());
  EXPECT_EQ(CountFiles(), 2u);
}

TEST_F(CodeStorageTest, AnEmptyPieceCompletesAnUploadAfterACrash) {
  ASSERT_TRUE(storage_.AddManifest(first_.digest, 0, first_.text, true).ok());
  ASSERT_TRUE(storage_.AddPack(first_.digest, 0, "aaabbb").ok());
  // The server ended after the last byte had arrived.
  std::ofstream(folder_ / ("code/uploads/" + first_.digest.substr(7) + "/pack"), std::ios::app)
      << 'b';
  CodeStorage next{folder_ / "code", kBytesMax};
  EXPECT_EQ(next.Find(first_.digest)->pack_bytes, 7u);
  EXPECT_TRUE(next.AddPack(first_.digest, 7, "")->complete);
}

TEST_F(CodeStorageTest, AsksAgainForFilesThatTheDiskHasLost) {
  Send(first_, "aaabbbb");
  fs::remove(fs::path(folder_ / "code/files") / Sha256::HexOf("aaa"));
  std::ofstream(fs::path(folder_ / "code/files") / Sha256::HexOf("bbbb")) << "b";
  CodeStorage next{folder_ / "code", kBytesMax};
  EXPECT_EQ(next.Keep(first_.digest), nullptr);
  const auto progress = next.AddManifest(first_.digest, 0, first_.text, true);
  ASSERT_TRUE(progress.ok()) << progress.error().message;
  EXPECT_THAT(progress->missing, SizeIs(2));
  EXPECT_TRUE(next.AddPack(first_.digest, 0, "aaabbbb")->complete);
}

TEST_F(CodeStorageTest, DeletesNothingIfAFolderCannotBeListed) {
  Send(first_, "aaabbbb");
  fs::remove_all(folder_ / "code/snapshots");
  std::ofstream(folder_ / "code/snapshots") << "not a folder";
  CodeStorage next{folder_ / "code", kBytesMax};
  EXPECT_FALSE(next.RemoveUnused([] { return std::set<std::string>(); }).ok());
  EXPECT_EQ(CountFiles(), 2u);
}

TEST_F(CodeStorageTest, LimitsUnfinishedUploads) {
  for (int i = 0; i < 64; ++i) {
    const std::string digest = code::DigestOf(std::to_string(i));
    ASSERT_TRUE(storage_.AddManifest(digest, 0, "a", false).ok());
  }
  EXPECT_EQ(storage_.AddManifest(first_.digest, 0, "a", false).error().code,
            ErrorCode::kUnavailable);
}

TEST_F(CodeStorageTest, CopiesCompleteSnapshots) {
  Send(first_, "aaabbbb");
  std::ofstream(folder_ / "code/snapshots/.draft") << "x";
  ASSERT_TRUE(CopySnapshots(folder_ / "code", folder_ / "copy").ok());
  CodeStorage copy{folder_ / "copy", kBytesMax};
  EXPECT_TRUE(copy.Find(first_.digest)->complete);
  std::ofstream(fs::path(folder_ / "code/files") / Sha256::HexOf("aaa")) << "AAA";
  EXPECT_EQ(CopySnapshots(folder_ / "code", folder_ / "other").error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(CopySnapshots(folder_ / "absent", folder_ / "none").ok());
}

}  // namespace
}  // namespace attune::server
