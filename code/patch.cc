#include "code/patch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "base/lines.h"
#include "base/message_limits.h"
#include "base/utf8.h"
#include "system/command.h"
#include "system/files.h"
#include "system/sha256.h"
#include "system/system_error.h"
#include "system/unique_fd.h"

namespace attune::code {
namespace {

namespace fs = std::filesystem;

constexpr size_t kGitOutputBytesMax = 64 << 20;
constexpr uint64_t kGitMemoryBytes = uint64_t{1} << 30;  // for small files
constexpr uint64_t kGitMemoryFactor = 4;                 // for each byte of a snapshot's limit
constexpr uint64_t kLargestBytesMax = uint64_t{1} << 40;
constexpr int kGitDied = 128;      // the exit code after a fatal error, and the largest of git
constexpr size_t kReasonsMax = 5;  // of git, that an error message lists
constexpr size_t kReasonBytesMax = 2'000;
constexpr std::string_view kAttributesName = ".gitattributes";
constexpr std::string_view kLinkMode = "120000";
constexpr mode_t kFileMode = 0644;
constexpr mode_t kProgramMode = 0755;

// The environment of git: that of this program, without settings of git.
std::vector<std::string> GitEnvironment(const fs::path& scratch) {
  std::vector<std::string> environment;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view variable = *each;
    const std::string_view name = variable.substr(0, variable.find('='));
    const bool is_replaced = name == "HOME" || name == "XDG_CONFIG_HOME" || name == "LC_ALL";
    if (!is_replaced && !name.starts_with("GIT_")) environment.emplace_back(variable);
  }
  const std::string home = scratch.string();
  for (const std::string& variable :
       {"HOME=" + home, "XDG_CONFIG_HOME=" + home, std::string("LC_ALL=C"),
        std::string("GIT_CONFIG_NOSYSTEM=1"), std::string("GIT_CONFIG_GLOBAL=/dev/null"),
        std::string("GIT_ATTR_NOSYSTEM=1"), std::string("GIT_TERMINAL_PROMPT=0"),
        "GIT_CEILING_DIRECTORIES=" + home, "GIT_DIR=" + home + "/git",
        "GIT_WORK_TREE=" + home + "/tree"})
    environment.push_back(variable);
  return environment;
}

// Takes the text before the next `end`, and `end`.
std::string_view TakeUntil(char end, std::string_view& text) {
  const size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == text.npos ? text.size() : at + 1);
  return taken;
}

// Why git refuses a patch: "train.py:12 has other lines; old.py: No such file or directory".
std::string ReasonText(std::string_view errors) {
  std::string text;
  size_t count = 0;
  for (std::string_view line : SplitLines(errors)) {
    const bool is_reason = line.starts_with("error: ") || line.starts_with("fatal: ");
    if (!is_reason || (count > 0 && line.ends_with(": patch does not apply"))) continue;
    if (++count > kReasonsMax) break;
    line.remove_prefix(line.find(' ') + 1);
    if (line.ends_with('.')) line.remove_suffix(1);
    constexpr std::string_view kFailed = "patch failed: ";
    const bool differs = line.starts_with(kFailed);
    if (differs) line.remove_prefix(kFailed.size());
    text += (count > 1 ? "; " : "") + ValidUtf8(line) + (differs ? " has other lines" : "");
  }
  if (count > kReasonsMax) text += "; and more";
  return text.empty() ? "git gives no reason" : CutEnd(text, kReasonBytesMax);
}

bool HasGitFolder(std::string_view path) {
  while (!path.empty()) {
    std::string name(TakeUntil('/', path));
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (name == ".git") return true;
  }
  return false;
}

// The folders around a path, without the root.
std::vector<std::string> FoldersAround(const std::string& path) {
  std::vector<std::string> folders;
  for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
    folders.push_back(path.substr(0, slash));
  return folders;
}

std::string QuotedPath(std::string_view path) { return '"' + ValidUtf8(path) + '"'; }

// The scratch folder has the patch ("patch"), copies of the files that it names ("tree"), and an
// empty git repository ("git"), because git heeds .gitattributes only in a repository.
class Patcher {
 public:
  Patcher(std::string_view patch, const Manifest& before, const StoredPath& stored,
          const fs::path& scratch, uint64_t bytes_max)
      : patch_(patch),
        before_(before),
        stored_(stored),
        scratch_(scratch),
        tree_(scratch / "tree"),
        bytes_max_(bytes_max),
        git_({.environment = GitEnvironment(scratch),
              .working_directory = tree_,
              .output_bytes_max = kGitOutputBytesMax,
              .memory_bytes_max =
                  kGitMemoryBytes + kGitMemoryFactor * std::min(bytes_max, kLargestBytesMax)}) {}

  Result<Patched> Run() {
    using Step = Status (Patcher::*)();
    for (const Step step : {&Patcher::CheckText, &Patcher::MakeRepository, &Patcher::ListTouched,
                            &Patcher::CheckPaths, &Patcher::CheckLinks, &Patcher::CopyTouched,
                            &Patcher::Apply, &Patcher::ReadTree, &Patcher::CheckResult}) {
      if (Status done = (this->*step)(); !done.ok()) return done.error();
    }
    return std::move(patched_);
  }

 private:
  Status CheckText() {
    if (patch_.find_first_not_of(" \t\r\n") == patch_.npos)
      return Invalid("the patch is empty; write it with `git diff` or `diff -u`");
    if (patch_.size() <= kPatchBytesMax) return {};
    return Invalid("the patch has " + std::to_string(patch_.size()) + " bytes, more than " +
                   std::to_string(kPatchBytesMax) + ": send large files with the code of a sweep");
  }

  Status MakeRepository() {
    std::error_code failed;
    fs::create_directory(tree_, failed);
    if (failed) return FailedFile("make", tree_, failed.value());
    if (Status written = WriteNew(scratch_ / "patch", patch_); !written.ok()) return written;
    const Result<CommandResult> made = Git({"init", "--quiet", "--template="});
    if (!made.ok()) return made.error();
    if (made->exit_code == 0) return {};
    return Error{ErrorCode::kUnavailable,
                 "`git init` failed in " + scratch_.string() + ": " + ReasonText(made->err)};
  }

  // Runs a command of git. A result with an exit code of at most kGitDied may be due to the patch.
  Result<CommandResult> Git(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "git");
    Result<CommandResult> ran = git_.Run(arguments);
    if (!ran.ok() && ran.error().code == ErrorCode::kNotFound)
      return Error{ErrorCode::kUnavailable,
                   "the server's host has no git, which applies patches: install git there"};
    if (!ran.ok() || ran->exit_code == 0) return ran;
    if (!HasFreeSpace(scratch_))
      return Error{ErrorCode::kStorageFull, "the disk of " + scratch_.string() + " is full"};
    if (ran->exit_code <= kGitDied) return ran;
    return Error{ErrorCode::kUnavailable, "`git " + arguments[1] + "` ended with exit code " +
                                              std::to_string(ran->exit_code)};
  }

  // Runs `git apply` with the options, and returns its output.
  Result<std::string> GitApply(std::vector<std::string> options) {
    options.insert(options.begin(), {"apply", "--whitespace=nowarn"});
    options.push_back("../patch");
    Result<CommandResult> ran = Git(std::move(options));
    if (!ran.ok()) return ran.error();
    if (ran->exit_code == 0) return std::move(ran->out);
    return Invalid("the patch does not apply: " + ReasonText(ran->err) +
                   ". Write it for the code of the sweep, with paths that begin in its folder, as "
                   "`git diff --relative --binary` does");
  }

  // Lists the paths before and after the patch. The list of the reversed patch has the paths before
  // a rename.
  Status ListTouched() {
    const Result<std::string> after = GitApply({"--numstat", "--summary", "-z"});
    if (!after.ok()) return after.error();
    const Result<std::string> before = GitApply({"--reverse", "--numstat", "-z"});
    if (!before.ok()) return before.error();
    // The lines of the summary have no zero byte.
    const size_t summary_at = after->rfind('\0') + 1;
    const std::string_view summary = std::string_view(*after).substr(summary_at);
    for (const std::string_view line : SplitLines(summary)) {
      renames_ |= line.starts_with(" rename ") || line.starts_with(" copy ");
      makes_links_ |= line.find(kLinkMode) != line.npos;
    }
    for (std::string_view list :
         {std::string_view(*after).substr(0, summary_at), std::string_view(*before)}) {
      while (!list.empty()) {
        std::string_view entry = TakeUntil('\0', list);
        TakeUntil('\t', entry);  // added lines
        TakeUntil('\t', entry);  // deleted lines
        touched_.emplace(entry);
      }
    }
    if (touched_.empty()) return Invalid("the patch changes nothing");
    if (touched_.size() <= kEntriesMax) return {};
    return Invalid("the patch changes more than " + std::to_string(kEntriesMax) + " files");
  }

  Status CheckPaths() {
    for (const std::string& path : touched_) {
      const Status checked = CheckPath(path);
      if (!checked.ok()) return Invalid("a path in the patch: " + checked.error().message);
      if (HasGitFolder(path))
        return Invalid("the patch changes " + QuotedPath(path) + ", but .git is not code");
    }
    return {};
  }

  Status CheckLinks() {
    std::set<std::string> links;
    for (const Link& link : before_.links) {
      links.insert(link.path);
      makes_links_ |= touched_.contains(link.path);
    }
    for (const std::string& path : touched_) {
      for (const std::string& folder : FoldersAround(path)) {
        if (links.contains(folder) && !touched_.contains(folder))
          return Invalid("the patch changes " + QuotedPath(path) + ", but " + QuotedPath(folder) +
                         " is a link: name the file that the link leads to");
        // Old versions of git write through a link that the same patch has renamed
        // (CVE-2023-23946).
        if (renames_ && makes_links_ && touched_.contains(folder))
          return Invalid("the patch replaces " + QuotedPath(folder) +
                         " and renames files or links: write it with `git diff --no-renames`");
      }
    }
    return {};
  }

  // Copies the files and links that the patch names, and the attributes that git heeds for them.
  Status CopyTouched() {
    std::set<std::string> copied = touched_;
    copied.emplace(kAttributesName);
    for (const std::string& path : touched_) {
      for (const std::string& folder : FoldersAround(path))
        copied.insert(folder + '/' + std::string(kAttributesName));
    }
    for (const File& file : before_.files) {
      if (!copied.contains(file.path)) {
        patched_.manifest.files.push_back(file);
      } else if (Status done = CopyFile(file); !done.ok()) {
        return done;
      }
    }
    for (const Link& link : before_.links) {
      if (!touched_.contains(link.path)) {
        patched_.manifest.links.push_back(link);
      } else if (Status done = CopyLink(link); !done.ok()) {
        return done;
      }
    }
    return {};
  }

  Status CopyFile(const File& file) const {
    const fs::path path = tree_ / file.path;
    if (Status made = MakeFolderOf(path); !made.ok()) return made;
    if (file.bytes == 0) {
      if (Status written = WriteNew(path, ""); !written.ok()) return written;
    } else {
      std::error_code failed;
      const fs::path stored = stored_(file.sha256);
      fs::copy_file(stored, path, failed);
      if (failed) return FailedFile("copy", stored, failed.value());
      if (fs::file_size(path, failed) != file.bytes)
        return Error{ErrorCode::kCorrupt, stored.string() + " is damaged"};
    }
    if (chmod(path.c_str(), file.executable ? kProgramMode : kFileMode) != 0)
      return FailedFile("write", path, errno);
    return {};
  }

  Status CopyLink(const Link& link) const {
    const fs::path path = tree_ / link.path;
    if (Status made = MakeFolderOf(path); !made.ok()) return made;
    return symlink(link.target.c_str(), path.c_str()) == 0 ? Status()
                                                           : FailedFile("make", path, errno);
  }

  static Status WriteNew(const fs::path& path, std::string_view text) {
    const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kPrivate));
    return file && WriteAt(file.get(), text, 0) ? Status() : FailedFile("write", path, errno);
  }

  static Status MakeFolderOf(const fs::path& path) {
    std::error_code failed;
    fs::create_directories(path.parent_path(), failed);
    return failed ? Status(FailedFile("make", path.parent_path(), failed.value())) : Status();
  }

  Status Apply() {
    const Result<std::string> applied = GitApply({});
    return applied.ok() ? Status() : applied.error();
  }

  Status ReadTree() {
    std::error_code failed;
    for (auto entry = fs::recursive_directory_iterator(tree_, failed);
         !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
      if (Status read = ReadEntry(entry->path()); !read.ok()) return read;
    }
    if (failed) return FailedFile("list", tree_, failed.value());
    std::ranges::sort(patched_.manifest.files, {}, &File::path);
    std::ranges::sort(patched_.manifest.links, {}, &Link::path);
    return {};
  }

  Status ReadEntry(const fs::path& entry) {
    const std::string path = entry.lexically_relative(tree_).string();
    struct stat state {};
    if (lstat(entry.c_str(), &state) != 0) return FailedFile("read", entry, errno);
    if (S_ISLNK(state.st_mode)) {
      std::error_code failed;
      patched_.manifest.links.push_back({path, fs::read_symlink(entry, failed).string()});
      if (failed) return FailedFile("read", entry, failed.value());
    } else if (S_ISREG(state.st_mode)) {
      Result<std::string> hash = Sha256::HexOfFile(entry);
      if (!hash.ok()) return hash.error();
      patched_.files.emplace(*hash, entry);
      patched_.manifest.files.push_back({.path = path,
                                         .bytes = static_cast<uint64_t>(state.st_size),
                                         .sha256 = *std::move(hash),
                                         .executable = (state.st_mode & S_IXUSR) != 0});
    }
    return {};
  }

  Status CheckResult() {
    const uint64_t bytes = patched_.manifest.bytes();
    if (bytes > bytes_max_)
      return Invalid("the code with the patch has " + std::to_string(bytes) +
                     " bytes, but this server takes at most " + std::to_string(bytes_max_));
    const Result<Manifest> parsed = ParseManifest(ToText(patched_.manifest));
    return parsed.ok() ? Status() : Invalid("the code with the patch: " + parsed.error().message);
  }

  static Error FailedFile(const std::string& what, const fs::path& path, int error) {
    return SystemError("cannot " + what + " " + path.string(), error);
  }

  const std::string_view patch_;
  const Manifest& before_;
  const StoredPath& stored_;
  const fs::path scratch_;
  const fs::path tree_;
  const uint64_t bytes_max_;
  SystemCommands git_;

  std::set<std::string> touched_;  // the paths before and after the patch
  bool renames_ = false;           // whether the patch renames or copies
  bool makes_links_ = false;       // whether it may change a link
  Patched patched_;
};

}  // namespace

Result<Patched> ApplyPatch(std::string_view patch, const Manifest& manifest,
                           const StoredPath& stored, const fs::path& scratch, uint64_t bytes_max) {
  std::error_code failed;
  const fs::path absolute = fs::absolute(scratch, failed);  // git runs in another folder
  if (failed) return SystemError("cannot find " + scratch.string(), failed.value());
  return Patcher(patch, manifest, stored, absolute, bytes_max).Run();
}

}  // namespace attune::code
