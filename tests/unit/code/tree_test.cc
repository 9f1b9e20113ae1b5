#include "code/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/result.h"
#include "code/pack.h"
#include "system/sha256.h"
#include "tests/support/scratch_folder.h"

namespace attune::code {
namespace {

namespace fs = std::filesystem;
using checkpoints::Downloaded;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr size_t kPieceBytes = 5;  // so that files begin and end inside pieces

std::string Read(const fs::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// A snapshot in memory, whose source can fail after some pieces.
class CodeTree : public ::testing::Test {
 protected:
  CodeTree() {
    Add("run.sh", "#!/bin/sh\n", true);
    Add("model/empty.py", "");
    Add("model/net.py", "net = 1\n");
    Add("train.py", "print('train')\n");
    manifest_.links = {{.path = "latest", .target = "model"}};
    std::ranges::sort(manifest_.files, {}, &File::path);
    for (const File& file : manifest_.files) pack_ += texts_.at(file.path);
    text_ = ToText(manifest_);
  }

  void Add(const std::string& path, const std::string& text, bool executable = false) {
    texts_[path] = text;
    manifest_.files.push_back({.path = path,
                               .bytes = text.size(),
                               .sha256 = Sha256::HexOf(text),
                               .executable = executable});
  }

  std::string digest() const { return DigestOf(text_); }

  Downloaded Download() {
    const auto read = [this](const std::string& part, uint64_t offset,
                             std::string) -> Result<checkpoints::Piece> {
      reads_.push_back(part + "@" + std::to_string(offset));
      if (pieces_left_-- == 0) return Error{ErrorCode::kUnavailable, "the server is away"};
      const std::string& bytes = part == kManifestPart ? text_ : pack_;
      return checkpoints::Piece{
          .data = bytes.substr(offset, part == kManifestPart ? text_.size() : kPieceBytes),
          .file_bytes = bytes.size()};
    };
    return DownloadCopy({.name = "code", .digest = digest(), .read = read}, copy_, 0);
  }

  fs::path PathInTree(const std::string& path) const { return TreeOf(copy_) / path; }

  // Writes to a file of the copy as a user who ignores its permissions.
  void Overwrite(const std::string& path, const std::string& text) {
    fs::permissions(PathInTree(path), fs::perms::owner_write, fs::perm_options::add);
    std::ofstream(PathInTree(path)) << text;
  }

  attune::testing::ScratchFolder scratch_;
  const fs::path copy_ = scratch_ / "copy";
  const fs::path work_ = scratch_ / "work";
  Manifest manifest_;
  std::map<std::string, std::string> texts_;
  std::string text_;
  std::string pack_;
  int pieces_left_ = 1'000;
  std::vector<std::string> reads_;
};

TEST_F(CodeTree, DownloadsFilesThatNobodyMayWrite) {
  const Downloaded done = Download();
  ASSERT_TRUE(done.status.ok()) << done.status.error().message;
  EXPECT_EQ(done.files, 4u);
  EXPECT_EQ(done.bytes, pack_.size());
  for (const auto& [path, text] : texts_) EXPECT_EQ(Read(PathInTree(path)), text);
  EXPECT_EQ(fs::read_symlink(PathInTree("latest")), "model");
  const auto mode = [&](const std::string& path) {
    return static_cast<int>(fs::status(PathInTree(path)).permissions());
  };
  EXPECT_EQ(mode("train.py"), 0444);
  EXPECT_EQ(mode("run.sh"), 0555);
  EXPECT_EQ(mode("model"), 0555);
  EXPECT_TRUE(VerifyCopy(copy_, digest()).ok());
}

TEST_F(CodeTree, ReplacesAChangedCopyWhileItIsInUse) {
  ASSERT_TRUE(Download().status.ok());
  Overwrite("train.py", "changed");
  const fs::path link = scratch_ / "link";
  fs::create_symlink(PathInTree("train.py"), link);  // as in the folder of a running trial
  ASSERT_TRUE(Download().status.ok());
  EXPECT_EQ(Read(link), texts_.at("train.py"));
  EXPECT_TRUE(VerifyCopy(copy_, digest()).ok());
  EXPECT_FALSE(fs::exists(scratch_ / ".copy.part"));
}

TEST_F(CodeTree, ContinuesAfterTheFilesWereProtected) {
  ASSERT_TRUE(Download().status.ok());
  fs::rename(copy_, scratch_ / ".copy.part");  // as if the process had ended before the last step
  const Downloaded done = Download();
  ASSERT_TRUE(done.status.ok()) << done.status.error().message;
  EXPECT_EQ(done.fetched, 0u);
  EXPECT_TRUE(VerifyCopy(copy_, digest()).ok());
}

TEST_F(CodeTree, ContinuesAtTheByteWhereItStopped) {
  pieces_left_ = 3;  // the manifest and two pieces
  EXPECT_EQ(Download().status.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(fs::exists(copy_));
  pieces_left_ = 1'000;
  reads_.clear();
  const Downloaded done = Download();
  ASSERT_TRUE(done.status.ok()) << done.status.error().message;
  EXPECT_EQ(reads_.at(0), "manifest@0");
  EXPECT_EQ(reads_.at(1), "pack@10");
  EXPECT_EQ(done.fetched, pack_.size() - 10);
  EXPECT_TRUE(VerifyCopy(copy_, digest()).ok());
}

TEST_F(CodeTree, RefusesFilesWithoutTheirHashes) {
  const std::string right = pack_;
  pack_.back() = '!';
  EXPECT_EQ(Download().status.error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(fs::is_empty(scratch_.path()));
  pack_ = right;
  EXPECT_TRUE(Download().status.ok());  // from the first byte on
}

TEST_F(CodeTree, RefusesADamagedManifest) {
  const std::string right = digest();
  text_ += "file\t644\t1\t" + std::string(64, 'a') + "\tz\n";
  const auto read = [this](const std::string&, uint64_t,
                           std::string) -> Result<checkpoints::Piece> {
    return checkpoints::Piece{.data = text_, .file_bytes = text_.size()};
  };
  EXPECT_EQ(
      DownloadCopy({.name = "code", .digest = right, .read = read}, copy_, 0).status.error().code,
      ErrorCode::kCorrupt);
}

TEST_F(CodeTree, DownloadsNothingIfTheDiskIsShort) {
  const auto read = [this](const std::string&, uint64_t,
                           std::string) -> Result<checkpoints::Piece> {
    return checkpoints::Piece{.data = text_, .file_bytes = text_.size()};
  };
  EXPECT_EQ(
      DownloadCopy({.name = "code", .digest = digest(), .read = read}, copy_, uint64_t{1} << 62)
          .status.error()
          .code,
      ErrorCode::kStorageFull);
}

TEST_F(CodeTree, FindsEachKindOfChange) {
  ASSERT_TRUE(Download().status.ok());
  const auto problem = [&] {
    const Status verified = VerifyCopy(copy_, digest());
    return verified.ok() ? "" : verified.error().message;
  };
  const auto again = [&] {
    ASSERT_FALSE(RemoveCopy(copy_));
    ASSERT_TRUE(Download().status.ok());
    ASSERT_EQ(problem(), "");
  };
  Overwrite("train.py", "print('Train')\n");  // as long as before
  EXPECT_THAT(problem(), HasSubstr("train.py"));
  again();
  fs::permissions(TreeOf(copy_), fs::perms::owner_all);
  fs::remove(PathInTree("train.py"));
  EXPECT_THAT(problem(), HasSubstr("train.py"));
  again();
  fs::permissions(PathInTree("model"), fs::perms::owner_all);
  std::ofstream(PathInTree("model/more.py")) << "x";
  EXPECT_THAT(problem(), HasSubstr("more.py"));
  again();
  fs::permissions(TreeOf(copy_), fs::perms::owner_all);
  fs::remove(PathInTree("latest"));
  fs::create_symlink("train.py", PathInTree("latest"));
  EXPECT_THAT(problem(), HasSubstr("latest"));
  again();
  std::ofstream(copy_ / "manifest") << "attune-code/1\n";
  EXPECT_THAT(problem(), HasSubstr("manifest"));
}

TEST_F(CodeTree, AllowsPythonToCacheModules) {
  ASSERT_TRUE(Download().status.ok());
  fs::permissions(PathInTree("model"), fs::perms::owner_all);
  fs::create_directory(PathInTree("model/__pycache__"));
  std::ofstream(PathInTree("model/__pycache__/net.pyc")) << "x";
  EXPECT_TRUE(VerifyCopy(copy_, digest()).ok());
}

TEST_F(CodeTree, TrustsEqualFilesWithOtherTimes) {
  ASSERT_TRUE(Download().status.ok());
  Overwrite("train.py", texts_.at("train.py"));
  EXPECT_TRUE(VerifyCopy(copy_, digest()).ok());
  EXPECT_EQ(static_cast<int>(fs::status(PathInTree("train.py")).permissions()), 0444);
  fs::remove(copy_ / "stamps");
  EXPECT_TRUE(VerifyCopy(copy_, digest()).ok());
}

TEST_F(CodeTree, LinksTheTopLevelEntriesIntoTheWorkFolder) {
  ASSERT_TRUE(Download().status.ok());
  ASSERT_TRUE(MakeWorkFolder(copy_, work_, "", false).ok());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(work_)) {
    names.push_back(entry.path().filename());
    EXPECT_TRUE(entry.is_symlink());
  }
  EXPECT_THAT(names, UnorderedElementsAre("latest", "model", "run.sh", "train.py"));
  EXPECT_EQ(Read(work_ / "model/net.py"), "net = 1\n");

  // Files of the program stay. Links to another copy are replaced.
  fs::remove(work_ / "train.py");
  std::ofstream(work_ / "train.py") << "mine";
  fs::remove(work_ / "run.sh");
  fs::create_symlink("/elsewhere", work_ / "run.sh");
  std::ofstream(work_ / "result.txt") << "7";
  ASSERT_TRUE(MakeWorkFolder(copy_, work_, "", false).ok());
  EXPECT_EQ(Read(work_ / "train.py"), "mine");
  EXPECT_EQ(Read(work_ / "run.sh"), "#!/bin/sh\n");
  EXPECT_EQ(Read(work_ / "result.txt"), "7");
}

TEST_F(CodeTree, TheFolderOfTheProgramIsReal) {
  ASSERT_TRUE(Download().status.ok());
  ASSERT_TRUE(MakeWorkFolder(copy_, work_, "", false).ok());
  ASSERT_TRUE(MakeWorkFolder(copy_, work_, "model", false).ok());
  EXPECT_FALSE(fs::is_symlink(work_ / "model"));
  EXPECT_EQ(fs::read_symlink(work_ / "model/net.py"), PathInTree("model/net.py"));
  EXPECT_TRUE(fs::is_symlink(work_ / "train.py"));
  std::ofstream(work_ / "model/log.txt") << "mine";
  ASSERT_TRUE(MakeWorkFolder(copy_, work_, "model", false).ok());
  EXPECT_EQ(Read(work_ / "model/log.txt"), "mine");
  EXPECT_TRUE(VerifyCopy(copy_, digest()).ok());
  EXPECT_TRUE(MakeWorkFolder(copy_, work_, "model/absent", false).ok());  // the start explains it
}

TEST_F(CodeTree, CopiesTheFilesIntoAWritableWorkFolder) {
  ASSERT_TRUE(Download().status.ok());
  fs::create_directory(scratch_ / ".work.part");  // from an interrupted call
  ASSERT_TRUE(MakeWorkFolder(copy_, work_, "", true).ok());
  std::ofstream(work_ / "model/net.py") << "net = 2\n";
  std::ofstream(work_ / "model/new.py") << "";
  EXPECT_EQ(static_cast<int>(fs::status(work_ / "run.sh").permissions()), 0755);
  EXPECT_EQ(fs::read_symlink(work_ / "latest"), "model");
  ASSERT_TRUE(MakeWorkFolder(copy_, work_, "", true).ok());
  EXPECT_EQ(Read(work_ / "model/net.py"), "net = 2\n");
  EXPECT_EQ(Read(PathInTree("model/net.py")), "net = 1\n");
  EXPECT_TRUE(VerifyCopy(copy_, digest()).ok());
}

}  // namespace
}  // namespace attune::code
