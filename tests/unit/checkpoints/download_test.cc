#include "checkpoints/download.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "base/result.h"
#include "system/sha256.h"
#include "tests/support/scratch_folder.h"

namespace attune::checkpoints {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr size_t kPieceBytes = 1000;

std::string Read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Downloads a checkpoint from memory. The source fails after `pieces_left_` pieces.
class DownloadTest : public ::testing::Test {
 protected:
  DownloadTest() {
    files_["model.bin"] = std::string(3500, 'm') + "end";
    files_["state/total.json"] = "{}";
    files_["empty"] = "";
    MakeManifest();
  }

  void MakeManifest(const std::string& extra = "") {
    std::string list;
    for (const auto& [name, text] : files_) {
      if (name == "manifest.json") continue;
      list += (list.empty() ? "\"" : ",\"") + name + R"(":{"bytes":)" +
              std::to_string(text.size()) + R"(,"sha256":")" + Sha256::HexOf(text) + "\"}";
    }
    files_["manifest.json"] =
        R"({"format":"attune-checkpoint/1","step":9,"world_size":1,"files":{)" + list + extra +
        "}}";
    digest_ = "sha256:" + Sha256::HexOf(files_["manifest.json"]);
  }

  Downloaded Get(uint64_t disk_free_bytes_min = 0) {
    requests_.clear();
    return Download({.name = "s1/17/2-900",
                     .digest = digest_,
                     .read = [this](const std::string& file, uint64_t offset,
                                    const std::string&) { return ReadPiece(file, offset); }},
                    Out(), {}, disk_free_bytes_min);
  }
  Result<Piece> ReadPiece(const std::string& file, uint64_t offset) {
    if (pieces_left_-- <= 0) return Error{ErrorCode::kNotFound, "executor box is lost"};
    if (file != "manifest.json") requests_.emplace_back(file, offset);
    const std::string& text = files_.at(file);
    return Piece{.data = text.substr(std::min<size_t>(offset, text.size()), kPieceBytes),
                 .file_bytes = text.size()};
  }

  fs::path Out() const { return folder_ / "out"; }
  // The hidden folder of an incomplete download.
  fs::path Part() const { return folder_ / (".out.part-" + digest_.substr(7, 16)); }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename());
    return names;
  }

  attune::testing::ScratchFolder folder_;
  std::map<std::string, std::string> files_;
  std::string digest_;
  int pieces_left_ = 1000;
  std::vector<std::pair<std::string, uint64_t>> requests_;
};

TEST_F(DownloadTest, DownloadsEveryFileAndLeavesNoOtherFiles) {
  const auto done = Get();
  ASSERT_TRUE(done.status.ok()) << done.status.error().message;
  EXPECT_EQ(done.files, 3u);
  EXPECT_EQ(done.bytes, 3505u);
  EXPECT_EQ(done.fetched, 3505u);
  for (const auto& [name, text] : files_) EXPECT_EQ(Read(Out() / name), text) << name;
  EXPECT_THAT(Names(), ElementsAre("out"));
}

TEST_F(DownloadTest, ResumesAtTheByteOfAnInterruption) {
  pieces_left_ = 3;  // the manifest, and two pieces of model.bin
  const auto cut = Get();
  EXPECT_EQ(cut.status.error(), (Error{ErrorCode::kNotFound, "executor box is lost"}));
  EXPECT_EQ(cut.part, Part());
  EXPECT_FALSE(fs::exists(Out()));
  EXPECT_EQ(fs::file_size(Part() / "model.bin"), 2 * kPieceBytes);

  pieces_left_ = 1000;
  const auto done = Get();
  ASSERT_TRUE(done.status.ok()) << done.status.error().message;
  EXPECT_THAT(requests_, ElementsAre(Pair("model.bin", 2000), Pair("model.bin", 3000),
                                     Pair("state/total.json", 0)));
  EXPECT_EQ(done.fetched, 1505u);
  EXPECT_EQ(Read(Out() / "model.bin"), files_["model.bin"]);
}

TEST_F(DownloadTest, DownloadsAgainWhatACrashDamaged) {
  fs::create_directories(Part());
  std::ofstream(Part() / "model.bin") << std::string(2500, '\0');
  const auto done = Get();
  ASSERT_TRUE(done.status.ok()) << done.status.error().message;
  EXPECT_EQ(Read(Out() / "model.bin"), files_["model.bin"]);
}

TEST_F(DownloadTest, DownloadsAgainAFileThatIsTooLong) {
  fs::create_directories(Part());
  std::ofstream(Part() / "model.bin") << std::string(5000, 'm');
  ASSERT_TRUE(Get().status.ok());
  EXPECT_EQ(Read(Out() / "model.bin"), files_["model.bin"]);
}

TEST_F(DownloadTest, NamesAFileThatIsDamagedAtItsSource) {
  files_["model.bin"][1700] = 'x';
  const auto done = Get();
  EXPECT_EQ(done.status.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(done.status.error().message, AllOf(HasSubstr("model.bin"), HasSubstr("s1/17/2-900")));
  EXPECT_FALSE(fs::exists(Out()));
  files_["model.bin"].pop_back();
  EXPECT_THAT(Get().status.error().message, AllOf(HasSubstr("3502 bytes"), HasSubstr("3503")));
}

TEST_F(DownloadTest, RefusesAManifestWithAnotherDigest) {
  files_["manifest.json"] += " ";
  EXPECT_THAT(Get().status.error().message, HasSubstr(digest_));
  for (const char* none : {"", "sha256:", "sha256:0123456789abcdef"}) {
    digest_ = none;
    EXPECT_THAT(Get().status.error().message, HasSubstr("\"" + digest_ + "\"")) << none;
  }
}

TEST_F(DownloadTest, RefusesNamesOutsideTheFolder) {
  const std::string entry = R"(":{"bytes":2,"sha256":")" + Sha256::HexOf("{}") + "\"}";
  for (const std::string name : {"../evil", "/tmp/evil", "state/../../evil"}) {
    MakeManifest(",\"" + name + entry);
    EXPECT_THAT(Get().status.error().message, HasSubstr(name)) << name;
    EXPECT_FALSE(fs::exists(folder_ / "evil"));
  }
}

TEST_F(DownloadTest, DoesNotChangeAnExistingFolder) {
  fs::create_directories(Out());
  const auto done = Get();
  EXPECT_EQ(done.status.error().code, ErrorCode::kConflict);
  EXPECT_THAT(done.status.error().message, HasSubstr(Out().string()));
  EXPECT_THAT(fs::directory_iterator(Out()) == fs::directory_iterator(), true);
  EXPECT_THAT(requests_, IsEmpty());
}

TEST_F(DownloadTest, RefusesASecondDownloadAtTheSameTime) {
  fs::create_directories(Part());
  const int other = open(Part().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(other, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(Get().status.error().code, ErrorCode::kUnavailable);
  close(other);
  EXPECT_TRUE(Get().status.ok());
}

TEST_F(DownloadTest, RefusesACheckpointLargerThanTheDisk) {
  MakeManifest(R"(,"huge":{"bytes":1000000000000000,"sha256":")" + Sha256::HexOf("") + "\"}");
  const auto done = Get();
  EXPECT_EQ(done.status.error().code, ErrorCode::kStorageFull);
  EXPECT_THAT(done.status.error().message, HasSubstr("10000000000035"));
  EXPECT_THAT(requests_, IsEmpty());
}

TEST_F(DownloadTest, RefusesACheckpointThatLeavesTooLittleFree) {
  constexpr uint64_t kMoreThanAnyDisk = uint64_t{1} << 60;
  const auto done = Get(kMoreThanAnyDisk);
  EXPECT_EQ(done.status.error().code, ErrorCode::kStorageFull);
  EXPECT_THAT(done.status.error().message, HasSubstr("1152921504606846976"));
  EXPECT_THAT(requests_, IsEmpty());
}

}  // namespace
}  // namespace attune::checkpoints
