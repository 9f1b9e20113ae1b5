#include "executor/environments/package_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/lines.h"
#include "system/files.h"
#include "system/sha256.h"
#include "system/system_error.h"
#include "system/unique_fd.h"

namespace attune::agent {
namespace {

namespace fs = std::filesystem;

// A wheel ends with the checksums of its files, and any archive ends with some checksum.
constexpr size_t kArchiveTailBytes = 64 << 10;
constexpr std::string_view kArchiveEnds[] = {".whl", ".zip",     ".tar.gz",
                                             ".tgz", ".tar.bz2", ".tar.xz"};
constexpr std::string_view kUseWheels =
    "build a wheel of it, put the wheel into the folder that `environment.wheels` names, and name "
    "the package";

bool IsBlank(char letter) { return letter == ' ' || letter == '\t'; }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

// The text without a comment, which begins with # at the start of the text or after a blank.
std::string_view WithoutComment(std::string_view text) {
  for (size_t at = text.find('#'); at != text.npos; at = text.find('#', at + 1)) {
    if (at == 0 || IsBlank(text[at - 1])) return text.substr(0, at);
  }
  return text;
}

bool HasScheme(std::string_view text) { return text.find("://") != text.npos; }

bool IsBelow(const fs::path& root, const fs::path& path) {
  return std::ranges::mismatch(root, path).in1 == root.end();
}

bool IsArchive(std::string_view name) {
  return std::ranges::any_of(kArchiveEnds,
                             [&](std::string_view end) { return name.ends_with(end); });
}

// Whether a requirement names a file or folder of this host instead of a package or an address.
bool IsLocal(std::string_view requirement) {
  // A marker or an option may contain anything.
  requirement = Trim(requirement.substr(
      0, std::min({requirement.find(" ;"), requirement.find(" --"), requirement.size()})));
  if (requirement.find("file:") != requirement.npos) return true;
  if (HasScheme(requirement)) return false;
  requirement = requirement.substr(0, requirement.find(';'));
  return requirement.starts_with('.') || requirement.starts_with('~') ||
         requirement.find('/') != requirement.npos || IsArchive(requirement);
}

// The value of an option at the start of a line: `-r FILE`, `-rFILE`, `--requirement FILE` or
// `--requirement=FILE`. nullopt: the line has another option, or none.
std::optional<std::string> OptionValue(std::string_view line, std::string_view short_name,
                                       std::string_view long_name) {
  if (line.starts_with(long_name)) {
    line.remove_prefix(long_name.size());
    if (line.empty() || (line.front() != '=' && !IsBlank(line.front()))) return std::nullopt;
    line.remove_prefix(1);
  } else if (line.starts_with(short_name) && !line.starts_with("--")) {
    line.remove_prefix(short_name.size());
  } else {
    return std::nullopt;
  }
  line = Trim(line);
  const bool is_quoted = line.size() >= 2 && line.front() == line.back() &&
                         (line.front() == '"' || line.front() == '\'');
  return std::string(is_quoted ? line.substr(1, line.size() - 2) : line);
}

// Reads package files into a digest.
class PackageReader {
 public:
  explicit PackageReader(const fs::path& root) : root_(root) {}

  Result<PackageFiles> Read(const gang::EnvironmentFiles& files);

 private:
  Result<fs::path> Find(const fs::path& path) const;
  Result<fs::path> FindInRoot(const fs::path& path) const;
  Result<std::string> ReadText(const fs::path& file) const;
  Status AddRequirements(const fs::path& file);
  Status AddLine(const fs::path& file, std::string_view line);
  Status AddFolder(const Result<fs::path>& real);
  Status AddSettings(const fs::path& folder);
  void Add(std::string_view text);
  std::string NameOf(const fs::path& file) const;  // for messages

  const fs::path& root_;
  Sha256 digest_;
  std::set<fs::path> requirements_;  // files that were added
};

std::string PackageReader::NameOf(const fs::path& file) const {
  const fs::path inside = root_.empty() ? fs::path() : file.lexically_relative(root_);
  return inside.empty() || *inside.begin() == ".." ? file.string() : inside.string();
}

// Adds a text after its size, so that different lists of texts have different digests.
void PackageReader::Add(std::string_view text) {
  digest_.Add(std::to_string(text.size()) + ":");
  digest_.Add(text);
}

// Follows links.
Result<fs::path> PackageReader::Find(const fs::path& path) const {
  std::error_code failed;
  fs::path real = fs::canonical(path, failed);
  if (!failed) return real;
  return Invalid(NameOf(path) + " cannot be read: " + failed.message() +
                 (root_.empty() ? "; every host needs it at this path, or use `code`"
                                : "; the code of the sweep must contain it"));
}

// Follows links; an error if the path leaves the root.
Result<fs::path> PackageReader::FindInRoot(const fs::path& path) const {
  Result<fs::path> real = Find(path);
  if (!real.ok() || root_.empty()) return real;
  std::error_code failed;
  const fs::path root = fs::canonical(root_, failed);
  if (!failed && IsBelow(root, *real)) return real;
  return Invalid(NameOf(path) +
                 " is outside of the code of the sweep; put a copy of it into the code");
}

Result<std::string> PackageReader::ReadText(const fs::path& file) const {
  const Result<fs::path> real = FindInRoot(file);
  if (!real.ok()) return real.error();
  std::error_code failed;
  if (!fs::is_regular_file(*real, failed)) return Invalid(NameOf(file) + " is not a file");
  const uint64_t bytes = fs::file_size(*real, failed);
  if (failed || bytes > kPackageFileBytesMax)
    return Invalid(NameOf(file) + " has " + std::to_string(bytes >> 20) +
                   " MiB, more than the 16 MiB of a file that describes packages");
  return ReadWhole(*real);
}

Status PackageReader::AddRequirements(const fs::path& file) {
  const fs::path path = file.lexically_normal();
  if (!requirements_.insert(path).second) return {};
  if (requirements_.size() > kPackageFilesMax)
    return Invalid(NameOf(path) + " is one of more than " + std::to_string(kPackageFilesMax) +
                   " files of requirements that refer to each other; join some of them");
  const Result<std::string> text = ReadText(path);
  if (!text.ok()) return text.error();
  Add(*text);
  std::string line;
  for (std::string_view part : SplitLines(*text)) {
    // A backslash joins two lines, except in a comment.
    const bool continues = part.ends_with('\\') && !Trim(part).starts_with('#');
    line += continues ? part.substr(0, part.size() - 1) : part;
    if (continues) continue;
    if (Status added = AddLine(path, Trim(WithoutComment(line))); !added.ok()) return added;
    line.clear();
  }
  return AddLine(path, Trim(WithoutComment(line)));
}

Status PackageReader::AddLine(const fs::path& file, std::string_view line) {
  const fs::path folder = file.parent_path();
  const auto refusal = [&](std::string_view why) {
    return Invalid(NameOf(file) + ": \"" + std::string(line) + "\" " + std::string(why));
  };
  if (line.empty()) return {};
  if (OptionValue(line, "-e", "--editable"))
    return refusal("installs a folder in place, which differs on other hosts; " +
                   std::string(kUseWheels));
  std::optional<std::string> other = OptionValue(line, "-r", "--requirement");
  if (!other) other = OptionValue(line, "-c", "--constraint");
  if (other) {
    return HasScheme(*other) ? refusal(
                                   "refers to an address, whose content may change; put a copy "
                                   "of that file next to this file")
                             : AddRequirements(folder / *other);
  }
  if (const auto links = OptionValue(line, "-f", "--find-links"))
    return HasScheme(*links) ? Status() : AddFolder(FindInRoot(folder / *links));
  if (line.starts_with('-') || !IsLocal(line)) return {};
  return refusal("names a file or folder of one host; " + std::string(kUseWheels));
}

// Adds the archives of a folder.
Status PackageReader::AddFolder(const Result<fs::path>& real) {
  if (!real.ok()) return real.error();
  std::error_code failed;
  std::vector<fs::path> archives;
  for (auto entry = fs::directory_iterator(*real, failed);
       !failed && entry != fs::directory_iterator(); entry.increment(failed))
    if (IsArchive(entry->path().native())) archives.push_back(entry->path());
  if (failed)
    return Invalid("the folder of wheels " + NameOf(*real) +
                   " cannot be read: " + failed.message());
  std::ranges::sort(archives);
  std::string tail(kArchiveTailBytes, '\0');
  for (const fs::path& path : archives) {
    const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const off_t bytes = file ? lseek(file.get(), 0, SEEK_END) : -1;
    const off_t first = std::max<off_t>(0, bytes - static_cast<off_t>(tail.size()));
    const ssize_t count = bytes < 0 ? -1 : pread(file.get(), tail.data(), tail.size(), first);
    if (count < 0) return SystemError("cannot read " + path.string(), errno);
    Add(path.filename().string());
    Add(std::to_string(bytes));
    Add(std::string_view(tail).substr(0, static_cast<size_t>(count)));
  }
  return {};
}

// Adds files with settings of uv.
Status PackageReader::AddSettings(const fs::path& folder) {
  for (const char* name : {"pyproject.toml", "uv.toml"}) {
    std::error_code failed;
    if (!fs::exists(folder / name, failed)) continue;
    const Result<std::string> text = ReadText(folder / name);
    if (!text.ok()) return text.error();
    Add(name);
    Add(*text);
  }
  return {};
}

// Refuses packages of the lock in local folders, except the project, which is not installed. uv
// writes `source = { … }` of a package as a line.
Status CheckLock(const std::string& text, const std::string& name) {
  for (const std::string_view line : SplitLines(text)) {
    if (!line.starts_with("source = {")) continue;
    const bool is_local =
        std::ranges::any_of(std::to_array<std::string_view>(
                                {"{ editable = ", "{ directory = ", "{ path = ", "{ virtual = "}),
                            [&](std::string_view key) { return line.find(key) != line.npos; });
    if (is_local && line.find("= \".\" }") == line.npos)
      return Invalid(name + ": \"" + std::string(line) + "\" is a package in a local folder; " +
                     std::string(kUseWheels));
  }
  return {};
}

// Refuses packages of a project in local folders. Returns whether the project has a table with
// sources of packages.
Result<bool> CheckProject(const std::string& text, const std::string& name) {
  bool in_sources = false;
  bool has_sources = false;
  for (std::string_view line : SplitLines(text)) {
    line = Trim(WithoutComment(line));
    if (line.starts_with('[')) in_sources = line.starts_with("[tool.uv.sources");
    has_sources |= in_sources;
    std::string compact(line);
    std::erase_if(compact, IsBlank);
    const bool is_local = compact.find("@file:") != compact.npos ||
                          (in_sources && (compact.find("path=") != compact.npos ||
                                          compact.find("workspace=") != compact.npos));
    if (is_local)
      return Invalid(name + ": \"" + std::string(line) + "\" is a package in a local folder; " +
                     std::string(kUseWheels));
  }
  return has_sources;
}

Result<PackageFiles> PackageReader::Read(const gang::EnvironmentFiles& files) {
  if (!files.python.is_absolute() || (!files.wheels.empty() && !files.wheels.is_absolute()))
    return Invalid("environment: " + files.python.string() +
                   " is not an absolute path; use `code`, or write absolute paths");
  PackageFiles read{.file = files.python.lexically_normal(), .wheels = files.wheels, .digest = {}};
  const std::string name = read.file.filename();
  read.kind = name == "uv.lock"          ? PackageFilesKind::kLock
              : name == "pyproject.toml" ? PackageFilesKind::kProject
                                         : PackageFilesKind::kRequirements;
  Add(std::to_string(static_cast<int>(read.kind)));
  if (read.kind == PackageFilesKind::kRequirements) {
    if (Status added = AddRequirements(read.file); !added.ok()) return added.error();
  } else {
    const Result<std::string> text = ReadText(read.file);
    if (!text.ok()) return text.error();
    Add(*text);
    if (read.kind == PackageFilesKind::kLock) {
      if (Status checked = CheckLock(*text, NameOf(read.file)); !checked.ok())
        return checked.error();
      if (Result<std::string> project = ReadText(read.file.parent_path() / "pyproject.toml");
          !project.ok())
        return project.error();
    } else {
      const Result<bool> names_sources = CheckProject(*text, NameOf(read.file));
      if (!names_sources.ok()) return names_sources.error();
      read.names_sources = *names_sources;
    }
  }
  if (Status added = AddSettings(read.file.parent_path()); !added.ok()) return added.error();
  if (!read.wheels.empty()) {
    // An absolute path may name a folder that is on each host.
    const fs::path wheels = read.wheels.lexically_normal();
    const bool is_in_root = !root_.empty() && IsBelow(root_, wheels);
    if (Status added = AddFolder(is_in_root ? FindInRoot(wheels) : Find(wheels)); !added.ok())
      return added.error();
  }
  read.digest = digest_.Hex();
  return read;
}

}  // namespace

Result<PackageFiles> ReadPackageFiles(const gang::EnvironmentFiles& files) {
  return PackageReader(files.root).Read(files);
}

}  // namespace attune::agent
