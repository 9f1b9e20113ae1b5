#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "base/result.h"
#include "code/manifest.h"
#include "server/folder/code_storage.h"
#include "system/sha256.h"
#include "tests/support/scratch_folder.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;
using ::testing::StartsWith;

constexpr uint64_t kPatchedBytesMax = 40;

std::string PatchOf(const std::string& path, const std::string& from, const std::string& to) {
  return "--- a/" + path + "\n+++ b/" + path + "\n@@ -1 +1 @@\n-" + from + "\n+" + to + "\n";
}

class CodePatchesTest : public ::testing::Test {
 protected:
  CodePatchesTest() {
    const std::map<std::string, std::string> files{
        {"lib/net.py", "three\n"}, {"none", ""}, {"train.py", "one\n"}};
    code::Manifest manifest;
    std::string pack;
    for (const auto& [path, contents] : files) {
      manifest.files.push_back(
          {.path = path, .bytes = contents.size(), .sha256 = Sha256::HexOf(contents)});
      pack += contents;
    }
    manifest.links.push_back({"link.py", "train.py"});
    const std::string text = code::ToText(manifest);
    digest_ = code::DigestOf(text);
    EXPECT_TRUE(storage_.AddManifest(digest_, 0, text, true).ok());
    EXPECT_TRUE(storage_.AddPack(digest_, 0, pack)->complete);
  }

  // The digest after the patches, or the error.
  std::string Apply(const std::vector<std::string>& patches) {
    const Result<std::string> patched = storage_.ApplyPatches(digest_, patches);
    return patched.ok() ? *patched : std::string(Name(patched.error().code));
  }

  static Status RemoveAllExcept(CodeStorage& storage, std::set<std::string> used) {
    return storage.RemoveUnused([&] { return used; });
  }

  std::string PackOf(CodeStorage& storage, const std::string& digest) {
    const auto piece = storage.Read(digest, "pack", 0, 1'000);
    return piece.ok() ? piece->data : "error: " + piece.error().message;
  }

  size_t CountEntries(const std::string& name) const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& each : fs::directory_iterator(folder_ / ("code/" + name)))
      ++count;
    return count;
  }

  attune::testing::ScratchFolder folder_;
  CodeStorage storage_{folder_ / "code", kPatchedBytesMax};
  std::string digest_;
};

TEST_F(CodePatchesTest, AppliesPatchesInOrder) {
  const std::string patched =
      Apply({PatchOf("train.py", "one", "two"), PatchOf("lib/net.py", "three", "four"),
             PatchOf("train.py", "two", "five")});
  ASSERT_THAT(patched, StartsWith("sha256:"));
  EXPECT_NE(patched, digest_);
  EXPECT_TRUE(storage_.Find(patched)->complete);
  EXPECT_EQ(PackOf(storage_, patched), "four\nfive\n");
  EXPECT_EQ(PackOf(storage_, digest_), "three\none\n");
  EXPECT_EQ(CountEntries("files"), 4u) << "only the last text of a file is stored";
  EXPECT_EQ(CountEntries("patches"), 0u);
  const auto mode = fs::status(fs::path(folder_ / "code/files") / Sha256::HexOf("five\n"));
  EXPECT_EQ(mode.permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(CodePatchesTest, TheSamePatchGivesTheSameSnapshot) {
  const std::string patch = PatchOf("train.py", "one", "two");
  EXPECT_EQ(Apply({patch}), Apply({patch}));
  EXPECT_EQ(Apply({patch, PatchOf("train.py", "two", "one")}), digest_);
  EXPECT_EQ(Apply({}), digest_);
}

TEST_F(CodePatchesTest, RefusesWhatDoesNotApply) {
  EXPECT_EQ(Apply({PatchOf("train.py", "other", "two")}), Name(ErrorCode::kInvalid));
  EXPECT_EQ(Apply({PatchOf("train.py", "one", "two"), PatchOf("train.py", "one", "two")}),
            Name(ErrorCode::kInvalid));
  EXPECT_EQ(Apply({PatchOf("../train.py", "one", "two")}), Name(ErrorCode::kInvalid));
  EXPECT_EQ(storage_.ApplyPatches("sha256:../..", {}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(storage_.ApplyPatches(code::DigestOf("none"), {}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(CountEntries("files"), 2u);
  EXPECT_EQ(CountEntries("snapshots"), 1u);
  EXPECT_EQ(CountEntries("patches"), 0u);
}

TEST_F(CodePatchesTest, LimitsTheSizeOfTheResult) {
  const size_t others = std::string("three\n").size() + 1;
  const std::string largest(kPatchedBytesMax - others, 'x');
  EXPECT_THAT(Apply({PatchOf("train.py", "one", largest)}), StartsWith("sha256:"));
  EXPECT_EQ(Apply({PatchOf("train.py", "one", largest + 'x')}), Name(ErrorCode::kInvalid));
}

TEST_F(CodePatchesTest, KeepsTheResultUntilASweepUsesIt) {
  const std::string patched = Apply({PatchOf("train.py", "one", "two")});
  ASSERT_TRUE(RemoveAllExcept(storage_, {digest_}).ok());
  EXPECT_TRUE(storage_.Find(patched)->complete);
  ASSERT_TRUE(RemoveAllExcept(storage_, {patched}).ok());
  EXPECT_FALSE(storage_.Find(digest_)->complete);
  EXPECT_EQ(PackOf(storage_, patched), "three\ntwo\n") << "it has a file of the first snapshot";
  ASSERT_TRUE(RemoveAllExcept(storage_, {}).ok());
  EXPECT_EQ(CountEntries("files"), 0u);
}

TEST_F(CodePatchesTest, KeepsTheResultAgainIfItIsAppliedAgain) {
  const std::string patch = PatchOf("train.py", "one", "two");
  const std::string patched = Apply({patch});
  ASSERT_TRUE(RemoveAllExcept(storage_, {digest_, patched}).ok());
  EXPECT_EQ(Apply({patch}), patched);
  ASSERT_TRUE(RemoveAllExcept(storage_, {digest_}).ok());
  EXPECT_TRUE(storage_.Find(patched)->complete);
}

TEST_F(CodePatchesTest, DeletesWhatACrashHasLeft) {
  fs::create_directories(folder_ / "code/patches/abcdef/0/tree");
  std::ofstream(folder_ / "code/patches/abcdef/0/tree/train.py") << "two\n";
  std::ofstream(fs::path(folder_ / "code/files") / Sha256::HexOf("two\n")) << "two\n";
  CodeStorage next{folder_ / "code", kPatchedBytesMax};
  ASSERT_TRUE(RemoveAllExcept(next, {digest_}).ok());
  EXPECT_EQ(CountEntries("patches"), 0u);
  EXPECT_EQ(CountEntries("files"), 2u);
  EXPECT_EQ(PackOf(next, digest_), "three\none\n");
}

TEST_F(CodePatchesTest, DeletesFilesWhoseSnapshotCouldNotBeWritten) {
  ASSERT_TRUE(RemoveAllExcept(storage_, {digest_}).ok());
  const std::string patch = PatchOf("train.py", "one", "two");
  const std::string patched = Apply({patch});
  ASSERT_TRUE(RemoveAllExcept(storage_, {digest_, patched}).ok());
  ASSERT_TRUE(RemoveAllExcept(storage_, {digest_}).ok());
  // A folder is in the place of the manifest.
  fs::create_directories(folder_ / ("code/snapshots/" + patched.substr(7) + "/x"));
  EXPECT_THAT(Apply({patch}), ::testing::Not(StartsWith("sha256:")));
  EXPECT_EQ(CountEntries("files"), 3u);
  fs::remove_all(folder_ / ("code/snapshots/" + patched.substr(7)));
  ASSERT_TRUE(RemoveAllExcept(storage_, {digest_}).ok());
  EXPECT_EQ(CountEntries("files"), 2u);
}

TEST_F(CodePatchesTest, RemovesNoScratchFolderInUse) {
  std::thread removing([this] {
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(RemoveAllExcept(storage_, {digest_}).ok());
  });
  for (int i = 0; i < 5; ++i)
    EXPECT_THAT(Apply({PatchOf("train.py", "one", std::to_string(i))}), StartsWith("sha256:"));
  removing.join();
}

TEST_F(CodePatchesTest, ReadsAFileOfASnapshot) {
  EXPECT_EQ(storage_.ReadFile(digest_, "train.py", 4).value(), "one\n");
  EXPECT_EQ(storage_.ReadFile(digest_, "train.py", 3).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(storage_.ReadFile(digest_, "none", 0).value(), "");
  for (const char* absent : {"", "lib", "link.py", "../train.py", "zzz"})
    EXPECT_EQ(storage_.ReadFile(digest_, absent, 100).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(storage_.ReadFile(code::DigestOf("none"), "train.py", 4).error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(storage_.ReadFile("sha256:../..", "train.py", 4).error().code, ErrorCode::kInvalid);
  fs::remove(fs::path(folder_ / "code/files") / Sha256::HexOf("one\n"));
  EXPECT_EQ(storage_.ReadFile(digest_, "train.py", 4).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace attune::server
