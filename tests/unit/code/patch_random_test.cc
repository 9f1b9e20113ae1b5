#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "code/patch.h"
#include "system/command.h"
#include "system/files.h"
#include "tests/support/scratch_folder.h"
#include "tests/unit/code/folder_snapshot.h"

namespace attune::code {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kRounds = 30;

CommandResult Git(const fs::path& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "git");
  SystemCommands git({.environment = {{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}},
                      .working_directory = folder});
  return git.Run(arguments).value();
}

// Random files and links, and random changes of them.
class Tree {
 public:
  // `prefix`: of the names of new files.
  Tree(fs::path root, std::string prefix, bool has_links, uint64_t seed)
      : root_(std::move(root)), prefix_(std::move(prefix)), has_links_(has_links), random_(seed) {}

  void Fill() {
    if (Draw(4) == 0) WriteFile(root_ / ".gitattributes", "*1 text eol=crlf\n*2 text=auto\n");
    for (int i = 0; i < 12; ++i) Add();
  }

  void Change() {
    const fs::path path = root_ / AnyPath();
    switch (Draw(9)) {
      case 0:
        return Add();
      case 1:
        return void(fs::remove(path));
      case 2:
        return fs::rename(path, NewPath());
      case 3:
        return fs::copy(path, NewPath(), fs::copy_options::copy_symlinks);
      case 4:
        fs::remove(path);
        return WriteFile(path / NewName(), Text());
      case 5:
        return Link(path);
      default:
        return Edit(path);
    }
  }

  void Edit(const fs::path& path) {
    if (fs::is_symlink(path)) return Link(path);
    std::string text = ReadWhole(path).value();
    size_t at = 0;
    for (uint64_t lines = Draw(20); lines > 0 && at < text.size(); --lines)
      at = std::min(text.find('\n', at), text.size() - 1) + 1;
    text.insert(at, Draw(2) == 0 ? "edited\n" : "edited\r\n");
    if (Draw(4) == 0) text.pop_back();
    WriteFile(path, text, Draw(3) == 0);
  }

  // The path of a file or a link.
  std::string AnyPath() {
    const Manifest manifest = FolderSnapshot(root_).manifest;
    const uint64_t drawn = Draw(manifest.files.size() + manifest.links.size());
    return drawn < manifest.files.size() ? manifest.files[drawn].path
                                         : manifest.links[drawn - manifest.files.size()].path;
  }

  uint64_t Draw(uint64_t count) { return random_() % count; }

 private:
  std::string NewName() {
    return prefix_ + std::to_string(++names_) + '.' + std::to_string(Draw(3));
  }

  fs::path NewPath() {
    fs::path folder = root_;
    for (uint64_t depth = Draw(3); depth > 0; --depth) folder /= "folder" + std::to_string(Draw(2));
    fs::create_directories(folder);
    return folder / NewName();
  }

  void Add() {
    const fs::path path = NewPath();
    WriteFile(path, Text(), Draw(4) == 0);
    if (Draw(6) == 0) Link(path);
  }

  std::string Text() {
    if (Draw(8) == 0) return std::string("\0binary\n", 8) + std::to_string(Draw(1'000'000));
    const std::string end = Draw(4) == 0 ? "\r\n" : "\n";
    std::string text;
    for (uint64_t lines = Draw(30); lines > 0; --lines)
      text += "line " + std::to_string(Draw(9)) + end;
    return Draw(4) == 0 ? text + "no end" : text;
  }

  // Replaces an entry by a link to another one.
  void Link(const fs::path& path) {
    const fs::path target = root_ / AnyPath();
    if (target == path || !has_links_) return;
    fs::remove(path);
    fs::create_symlink(target.lexically_relative(path.parent_path()), path);
  }

  const fs::path root_;
  const std::string prefix_;
  const bool has_links_;
  std::mt19937_64 random_;
  int names_ = 0;
};

// Compares ApplyPatch() with `git apply` for a random patch. Returns whether the patch applies.
bool CheckRandomPatch(uint64_t seed) {
  SCOPED_TRACE("ATTUNE_SEED=" + std::to_string(seed));
  const testing::ScratchFolder scratch;
  const fs::path before_path = scratch / "before";
  const fs::path after_path = scratch / "after";
  fs::create_directories(before_path);
  // ApplyPatch() refuses some patches that replace links and also rename files.
  const bool has_links = seed % 2 == 0;
  Tree before(before_path, "file", has_links, seed);
  before.Fill();
  EXPECT_EQ(Git(before_path, {"init", "--quiet", "--template="}).exit_code, 0);
  EXPECT_EQ(Git(before_path, {"add", "."}).exit_code, 0);
  fs::copy(before_path, after_path, fs::copy_options::recursive | fs::copy_options::copy_symlinks);

  Tree after(after_path, "new", has_links, ~seed);
  for (int i = 0; i < 4; ++i) after.Change();
  const std::vector<std::vector<std::string>> options{
      {"--no-renames"}, {"-B", "--no-renames"}, {"-M"}, {"-C", "--find-copies-harder"}, {"-U1"}};
  std::vector<std::string> diff = options[after.Draw(has_links ? 2 : options.size())];
  diff.insert(diff.begin(), {"diff", "--binary", "--cached"});
  const std::string tree = Git(after_path, {"write-tree"}).out;
  diff.push_back(tree.substr(0, tree.find('\n')));
  EXPECT_EQ(Git(after_path, {"add", "--all", "."}).exit_code, 0);
  const std::string patch = Git(after_path, diff).out;
  WriteFile(scratch / "patch", patch);
  if (seed % 5 == 0) before.Edit(before_path / before.AnyPath());  // the patch is for other files

  const FolderSnapshot snapshot(before_path);
  if (!CheckManifest(snapshot.manifest).ok() || patch.empty()) return false;
  const auto stored = [&](const std::string& hash) { return snapshot.files.at(hash); };
  fs::create_directory(scratch / "scratch");
  const Result<Patched> patched =
      ApplyPatch(patch, snapshot.manifest, stored, scratch / "scratch", 1'000'000);
  const CommandResult git = Git(before_path, {"apply", scratch / "patch"});
  const Manifest expected = FolderSnapshot(before_path).manifest;

  const bool applies = git.exit_code == 0 && CheckManifest(expected).ok();
  EXPECT_EQ(patched.ok(), applies) << git.err << (patched.ok() ? "" : patched.error().message);
  if (!patched.ok()) {
    EXPECT_EQ(patched.error().code, ErrorCode::kInvalid);
    return false;
  }
  EXPECT_EQ(ToText(patched->manifest), ToText(expected));
  for (const File& file : patched->manifest.files) {
    const auto made = patched->files.find(file.sha256);
    if (made != patched->files.end())
      EXPECT_EQ(Sha256::HexOfFile(made->second).value(), file.sha256);
    else
      EXPECT_TRUE(snapshot.files.contains(file.sha256));
  }
  return true;
}

TEST(CodePatchRandom, AppliesAsGitDoes) {
  const char* given = std::getenv("ATTUNE_SEED");
  const uint64_t first = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  uint64_t applied = 0;
  for (uint64_t seed = first; seed < first + kRounds; ++seed) applied += CheckRandomPatch(seed);
  EXPECT_GT(applied, kRounds / 4);
}

}  // namespace
}  // namespace attune::code
