#include "code/collect.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "base/utf8.h"
#include "code/patterns.h"
#include "code/secret_names.h"
#include "system/files.h"
#include "system/sha256.h"
#include "system/system_error.h"
#include "system/unique_fd.h"

namespace attune::code {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIgnoreFile = ".attuneignore";
constexpr size_t kNamedFilesMax = 5;  // that an error message lists

std::string MegabytesText(uint64_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), bytes < 10'000'000 ? "%.2f MB" : "%.0f MB",
                static_cast<double>(bytes) / 1e6);
  return text.data();
}

// "a, b and 3 more".
std::string ListText(const std::vector<std::string>& names) {
  std::string text;
  const size_t named = std::min(names.size(), kNamedFilesMax);
  for (size_t i = 0; i < named; ++i) text += (i == 0 ? "" : ", ") + ValidUtf8(names[i]);
  if (named < names.size()) text += " and " + std::to_string(names.size() - named) + " more";
  return text;
}

bool IsInGitRepository(fs::path folder) {
  for (std::error_code error;; folder = folder.parent_path()) {
    if (fs::exists(folder / ".git", error)) return true;
    if (folder == folder.parent_path()) return false;
  }
}

// Whether a folder is the data folder of a server or of an executor, with its tokens.
bool IsDataFolder(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "attune.db", error) ||
         (fs::exists(folder / "folder-id", error) && fs::exists(folder / "executors", error));
}

bool SamePlaceAndTime(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec && a.st_ino == b.st_ino;
}

class Collector {
 public:
  Collector(fs::path folder, const CollectOptions& options, Commands& commands)
      : folder_(std::move(folder)), options_(options), commands_(commands) {}

  Result<Collected> Run() {
    using Step = Status (Collector::*)();
    for (const Step step :
         {&Collector::ReadPatterns, &Collector::ListFiles, &Collector::ReadStates,
          &Collector::CheckSize, &Collector::CheckSecretNames, &Collector::HashFiles}) {
      if (Status done = (this->*step)(); !done.ok()) return done.error();
    }
    if (Status checked = CheckManifest(collected_.manifest); !checked.ok()) return checked.error();
    return std::move(collected_);
  }

 private:
  Status ReadPatterns() {
    const Result<std::string> ignored = ReadWhole(folder_ / kIgnoreFile);
    if (!ignored.ok()) return ignored.error();
    ignored_ = Patterns::ParseLines(*ignored);
    for (auto [key, list, patterns] : {std::tuple("include", &options_.include, &included_),
                                       {"exclude", &options_.exclude, &excluded_}}) {
      Result<Patterns> parsed = Patterns::FromList(*list);
      if (!parsed.ok()) return Invalid("code." + std::string(key) + ": " + parsed.error().message);
      *patterns = *std::move(parsed);
    }
    return {};
  }

  Status ListFiles() {
    if (IsDataFolder(folder_))
      return Invalid(folder_.string() + " is a data folder of attune, not the folder of a program");
    if (IsInGitRepository(folder_)) {
      if (Status listed = ListWithGit(""); !listed.ok()) return listed;
      if (Status described = DescribeCommit(); !described.ok()) return described;
    } else if (Status walked = Walk("", false); !walked.ok()) {
      return walked;
    }
    return included_.empty() ? Status() : Walk("", true);
  }

  Result<std::string> Git(const std::string& below, std::vector<std::string> arguments) {
    std::vector<std::string> argv{"git", "-C", (folder_ / below).string()};
    argv.insert(argv.end(), std::make_move_iterator(arguments.begin()),
                std::make_move_iterator(arguments.end()));
    Result<CommandResult> ran = commands_.Run(argv);
    if (!ran.ok() && ran.error().code == ErrorCode::kNotFound)
      return Error{ErrorCode::kUnavailable,
                   folder_.string() +
                       " is in a git repository, but this machine has no git, which "
                       "knows the ignored files: install git"};
    if (!ran.ok()) return ran.error();
    if (ran->exit_code == 0) return std::move(ran->out);
    return Error{ErrorCode::kUnavailable, "`git " + argv[3] + "` failed in " + argv[2] + ": " +
                                              ValidUtf8(ran->err.substr(0, ran->err.find('\n')))};
  }

  // `below`: the folder of a submodule, with a slash at its end; empty for the whole folder.
  Status ListWithGit(const std::string& below) {
    const Result<std::string> listed =
        Git(below, {"ls-files", "-z", "--cached", "--others", "--exclude-standard"});
    if (!listed.ok()) return listed.error();
    std::error_code error;
    for (size_t at = 0; at < listed->size();) {
      const size_t end = std::min(listed->find('\0', at), listed->size());
      std::string path = below + listed->substr(at, end - at);
      at = end + 1;
      if (path.ends_with('/')) path.pop_back();
      if (ignored_.MatchesFile(path) || IsSkipped(path)) continue;
      // git lists a submodule, or another repository inside this one, as one entry.
      if (fs::is_directory(fs::symlink_status(folder_ / path, error))) {
        if (!fs::exists(folder_ / path / ".git", error)) continue;  // a submodule without its files
        if (Status inside = ListWithGit(path + '/'); !inside.ok()) return inside;
      } else {
        paths_.insert(std::move(path));
      }
    }
    return {};
  }

  Status DescribeCommit() {
    Result<std::string> commit = Git("", {"rev-parse", "--verify", "--quiet", "HEAD"});
    if (!commit.ok()) return {};  // a repository without a commit
    commit->erase(std::min(commit->find('\n'), commit->size()));
    collected_.commit = *std::move(commit);
    const Result<std::string> changes =
        Git("", {"status", "--porcelain", "--untracked-files=no", "-z", "--", "."});
    if (!changes.ok()) return changes.error();
    const Result<std::string> others =
        Git("", {"ls-files", "-z", "--others", "--exclude-standard"});
    if (!others.ok()) return others.error();
    collected_.dirty = !changes->empty() || HasCodeFile(*others);
    return {};
  }

  // Whether one of the paths, each with a zero byte at its end, belongs to the code.
  bool HasCodeFile(std::string_view paths) const {
    for (size_t at = 0; at < paths.size();) {
      const size_t end = std::min(paths.find('\0', at), paths.size());
      const std::string path(paths.substr(at, end - at));
      if (paths_.contains(path) && !excluded_.MatchesFile(path)) return true;
      at = end + 1;
    }
    return false;
  }

  // Visits a folder: for files that `include` matches, or for all files that are not ignored.
  Status Walk(const std::string& below, bool for_included) {
    std::error_code error;
    fs::directory_iterator entries(folder_ / below, error);
    // An ignored folder that this user cannot read has no file that `include` can name.
    if (error == std::errc::permission_denied && for_included) return {};
    if (error)
      return SystemError("cannot read the folder " + (folder_ / below).string(), error.value());
    for (; entries != fs::directory_iterator(); entries.increment(error)) {
      if (error) break;
      const std::string path = below + entries->path().filename().string();
      const bool is_folder = entries->symlink_status(error).type() == fs::file_type::directory;
      if (IsSkippedEntry(path, is_folder)) continue;
      if (!for_included && ignored_.Matches(path, is_folder)) continue;
      if (is_folder && excluded_.Matches(path, true)) continue;
      if (is_folder) {
        if (Status inside = Walk(path + '/', for_included); !inside.ok()) return inside;
      } else if (!for_included || included_.MatchesFile(path)) {
        paths_.insert(path);
      }
    }
    if (error)
      return SystemError("cannot read the folder " + (folder_ / below).string(), error.value());
    return {};
  }

  // Whether no snapshot has this entry. A submodule has a file .git, which names a folder of this
  // machine. Python writes to __pycache__ in the copies on hosts.
  bool IsSkippedEntry(const std::string& path, bool is_folder) {
    const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
    if (name == ".git") return true;
    if (!is_folder) return false;
    const auto [known, is_new] = skipped_folders_.try_emplace(path);
    if (is_new) known->second = name == kPythonCacheName || IsDataFolder(folder_ / path);
    return known->second;
  }

  // Whether the path or one of its folders is skipped.
  bool IsSkipped(const std::string& path) {
    for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
      if (IsSkippedEntry(path.substr(0, slash), true)) return true;
    }
    return IsSkippedEntry(path, false);
  }

  Status ReadStates() {
    for (const std::string& path : paths_) {
      if (excluded_.MatchesFile(path)) continue;
      const fs::path file = folder_ / path;
      struct stat state {};
      if (lstat(file.c_str(), &state) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) continue;  // git knows it, but it was deleted
        return SystemError("cannot read " + file.string(), errno);
      }
      if (S_ISREG(state.st_mode)) {
        File& added = collected_.manifest.files.emplace_back();
        added.path = path;
        added.bytes = static_cast<uint64_t>(state.st_size);
        added.executable = (state.st_mode & S_IXUSR) != 0;
      } else if (S_ISLNK(state.st_mode)) {
        std::error_code error;
        collected_.manifest.links.push_back({path, fs::read_symlink(file, error).string()});
        if (error) return SystemError("cannot read the link " + file.string(), error.value());
      }
    }
    return {};
  }

  Status CheckSize() {
    const uint64_t bytes = collected_.manifest.bytes();
    if (collected_.manifest.files.empty())
      return Invalid("no file in " + folder_.string() +
                     " belongs to the code: check code.path, "
                     "and whether git ignores the folder");
    if (bytes <= options_.bytes_max) return {};
    std::vector<const File*> files;
    for (const File& file : collected_.manifest.files) files.push_back(&file);
    std::ranges::stable_sort(files, std::greater(), &File::bytes);
    std::vector<std::string> largest;
    for (const File* file : files)
      largest.push_back(file->path + " (" + MegabytesText(file->bytes) + ')');
    largest.resize(std::min(largest.size(), kNamedFilesMax));
    return Invalid("the code in " + folder_.string() + " has " + MegabytesText(bytes) +
                   ", more than " + MegabytesText(options_.bytes_max) + ". The largest files are " +
                   ListText(largest) + ". List files that training does not need in " +
                   std::string(kIgnoreFile) +
                   " or in code.exclude, or raise the limit of the server");
  }

  bool IsIncludedByName(const std::string& path) const {
    return std::ranges::find(options_.include, path) != options_.include.end();
  }

  Status CheckSecretNames() {
    std::vector<std::string> secrets;
    for (const File& file : collected_.manifest.files) {
      if (HasSecretName(file.path) && !IsIncludedByName(file.path)) secrets.push_back(file.path);
    }
    return secrets.empty() ? Status() : SecretError(secrets);
  }

  static Error SecretError(const std::vector<std::string>& paths) {
    return Invalid(
        "these files look like secrets: " + ListText(paths) + ". List them in " +
        std::string(kIgnoreFile) +
        " or in code.exclude. If training needs one of them, list its path in code.include");
  }

  Status HashFiles() {
    for (File& file : collected_.manifest.files) {
      if (Status hashed = HashFile(file); !hashed.ok()) return hashed;
    }
    return {};
  }

  Status HashFile(File& file) const {
    const std::string path = (folder_ / file.path).string();
    const UniqueFd opened(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    struct stat before {};
    if (!opened || fstat(opened.get(), &before) != 0)
      return SystemError("cannot read " + path, errno);
    Sha256 hash;
    std::vector<char> bytes(1 << 16);
    uint64_t read_bytes = 0;
    for (;;) {
      const ssize_t count = read(opened.get(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return SystemError("cannot read " + path, errno);
      if (count == 0) break;
      const std::string_view piece(bytes.data(), static_cast<size_t>(count));
      if (read_bytes == 0 && HasSecretContents(piece.substr(0, 4096)) &&
          !IsIncludedByName(file.path))
        return SecretError({file.path});
      read_bytes += static_cast<uint64_t>(count);
      hash.Add(piece);
    }
    struct stat after {};
    if (fstat(opened.get(), &after) != 0 || !SamePlaceAndTime(before, after) ||
        read_bytes != file.bytes) {
      return Error{ErrorCode::kConflict, path + " changed while it was read: try again"};
    }
    file.sha256 = hash.Hex();
    return {};
  }

  const fs::path folder_;
  const CollectOptions& options_;
  Commands& commands_;
  Patterns ignored_, included_, excluded_;
  std::set<std::string> paths_;  // sorted by bytes
  std::map<std::string, bool> skipped_folders_;
  Collected collected_;
};

}  // namespace

Result<Collected> Collect(const fs::path& folder, const CollectOptions& options,
                          Commands& commands) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error || !fs::is_directory(real, error))
    return Error{ErrorCode::kNotFound, "code: there is no folder " + folder.string()};
  return Collector(real, options, commands).Run();
}

}  // namespace attune::code
