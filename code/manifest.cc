#include "code/manifest.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "base/message_limits.h"
#include "base/utf8.h"
#include "system/sha256.h"

namespace attune::code {
namespace {

constexpr std::string_view kFirstLine = "attune-code/1";
constexpr std::string_view kEmptySha256 =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr int kLinksFollowedMax = 40;  // as in Linux
constexpr int kLinkStepsMax = 1'000'000;

std::string Quoted(std::string_view path) { return '"' + ValidUtf8(path) + '"'; }

// Describes why a path is refused, as the end of a message. Empty if it is valid.
std::string PathFault(std::string_view path) {
  if (path.size() > kPathBytesMax)
    return "is longer than " + std::to_string(kPathBytesMax) + " bytes";
  if (!IsUtf8(path)) return "is not valid UTF-8";
  if (HasControlCharacters(path)) return "has a control character";
  for (;;) {
    const size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    if (name.empty() || name == "." || name == "..") return "is not a path inside the folder";
    if (slash == path.npos) return "";
    path.remove_prefix(slash + 1);
  }
}

// The names of a path, the last one first.
std::vector<std::string_view> NamesFromTheEnd(std::string_view path) {
  std::vector<std::string_view> names;
  for (;;) {
    const size_t slash = path.rfind('/');
    names.push_back(slash == path.npos ? path : path.substr(slash + 1));
    if (slash == path.npos) return names;
    path = path.substr(0, slash);
  }
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "" : path.substr(0, slash);
}

class Checker {
 public:
  explicit Checker(const Manifest& manifest) : manifest_(manifest) {}

  Status Check() {
    if (manifest_.files.size() + manifest_.links.size() > kEntriesMax)
      return Invalid("the code has more than " + std::to_string(kEntriesMax) +
                     " files: exclude folders that training does not need");
    uint64_t bytes = 0;
    for (const File& file : manifest_.files) {
      if (Status added = AddPath(file.path); !added.ok()) return added;
      if (file.bytes > uint64_t{kIntegerMax} - bytes) return Invalid("the code is too large");
      bytes += file.bytes;
      const auto [known, added] = sizes_.emplace(file.sha256, file.bytes);
      if ((!added && known->second != file.bytes) ||
          (file.bytes == 0) != (file.sha256 == kEmptySha256))
        return Invalid(Quoted(file.path) + " has a SHA-256 that does not fit its size");
    }
    for (const Link& link : manifest_.links) {
      if (Status added = AddPath(link.path); !added.ok()) return added;
      links_.emplace(link.path, &link);
    }
    for (const Link& link : manifest_.links) {
      if (Status checked = CheckLink(link); !checked.ok()) return checked;
    }
    return {};
  }

 private:
  Status AddPath(const std::string& path) {
    if (Status checked = CheckPath(path); !checked.ok()) return checked;
    for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
      const std::string folder = path.substr(0, slash);
      folders_.insert(folder);
      if (Status added = AddName(folder); !added.ok()) return added;
      if (entries_.contains(folder))
        return Invalid(Quoted(folder) + " is both a file and a folder");
    }
    if (!entries_.insert(path).second) return Invalid(Quoted(path) + " is there twice");
    if (folders_.contains(path)) return Invalid(Quoted(path) + " is both a file and a folder");
    return AddName(path);
  }

  Status AddName(const std::string& path) {
    const auto [known, added] = by_lower_case_.emplace(LowerCase(path), path);
    if (added || known->second == path) return {};
    return Invalid(
        Quoted(known->second) + " and " + Quoted(path) +
        " differ only in the case of letters, so some systems can keep only one of them: "
        "rename or exclude one");
  }

  Status CheckLink(const Link& link) {
    const std::string fault = LinkFault(link);
    if (fault.empty()) return {};
    return Invalid("the link " + Quoted(link.path) + " to " + Quoted(link.target) + ' ' + fault +
                   ": exclude the link, or replace it with a copy");
  }

  // Follows the link as the kernel does: name by name, and the links on its way.
  std::string LinkFault(const Link& link) {
    if (link.target.empty() || link.target.size() > kPathBytesMax || !IsUtf8(link.target) ||
        HasControlCharacters(link.target)) {
      return "has an invalid target";
    }
    std::string folder = FolderOf(link.path);
    std::vector<std::string_view> names;
    int followed = 0;
    for (const Link* next = &link;;) {
      if (++followed > kLinksFollowedMax) return "leads in a circle";
      if (next->target.starts_with('/')) return "leads out of the folder";
      const auto added = NamesFromTheEnd(next->target);
      names.insert(names.end(), added.begin(), added.end());
      next = nullptr;
      while (!names.empty() && next == nullptr) {
        const std::string_view name = names.back();
        names.pop_back();
        if (++steps_ > kLinkStepsMax) return "belongs to links with too long targets";
        if (name.empty() || name == ".") continue;
        if (name == "..") {
          if (folder.empty()) return "leads out of the folder";
          folder = FolderOf(folder);
          continue;
        }
        const std::string path = folder + (folder.empty() ? "" : "/") + std::string(name);
        const auto found = links_.find(path);
        if (found != links_.end()) {
          next = found->second;
        } else if (folders_.contains(path)) {
          folder = path;
        } else {
          return entries_.contains(path) && names.empty() ? "" : "leads to nothing in the snapshot";
        }
      }
      if (next == nullptr) return "";
    }
  }

  static std::string LowerCase(std::string text) {
    for (char& c : text) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return text;
  }

  const Manifest& manifest_;
  std::map<std::string_view, uint64_t> sizes_;  // by SHA-256
  std::set<std::string> entries_;
  std::set<std::string> folders_;
  std::map<std::string, std::string> by_lower_case_;
  std::map<std::string, const Link*> links_;
  int steps_ = 0;  // names on the ways of all links
};

// Takes the text before the next tab, and the tab.
std::string_view TakeField(std::string_view& line) {
  const size_t tab = line.find('\t');
  const std::string_view field = line.substr(0, tab);
  line.remove_prefix(tab == line.npos ? line.size() : tab + 1);
  return field;
}

bool ParseFile(std::string_view line, File& file) {
  const std::string_view mode = TakeField(line);
  const std::string_view bytes = TakeField(line);
  file.executable = mode == "755";
  file.sha256 = TakeField(line);
  file.path = line;
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), file.bytes);
  return (mode == "644" || mode == "755") && error == std::errc() &&
         end == bytes.data() + bytes.size() && file.bytes <= uint64_t{kIntegerMax} &&
         std::to_string(file.bytes) == bytes && IsSha256(file.sha256);
}

}  // namespace

uint64_t Manifest::bytes() const {
  uint64_t sum = 0;
  for (const File& file : files) sum += file.bytes;
  return sum;
}

std::string ToText(const Manifest& manifest) {
  std::string text(kFirstLine);
  text += '\n';
  for (const File& file : manifest.files) {
    text += "file\t";
    text += file.executable ? "755\t" : "644\t";
    text += std::to_string(file.bytes) + '\t' + file.sha256 + '\t' + file.path + '\n';
  }
  for (const Link& link : manifest.links) text += "link\t" + link.target + '\t' + link.path + '\n';
  return text;
}

std::string DigestOf(std::string_view manifest_text) {
  return "sha256:" + Sha256::HexOf(manifest_text);
}

Result<Manifest> ParseManifest(std::string_view text) {
  if (text.size() > kManifestBytesMax)
    return Invalid("the manifest is larger than " + std::to_string(kManifestBytesMax >> 20) +
                   " MiB");
  Manifest manifest;
  std::string_view rest = text;
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    const std::string_view whole = line;
    const std::string_view kind = number == 1 ? "" : TakeField(line);
    if (kind == "file" && ParseFile(line, manifest.files.emplace_back())) continue;
    if (kind == "link") {
      Link& link = manifest.links.emplace_back();
      link.target = TakeField(line);
      link.path = line;
      continue;
    }
    if (number > 1 || whole != kFirstLine)
      return Invalid("line " + std::to_string(number) + " of the manifest is malformed");
  }
  const auto is_sorted = [](const auto& entries) {
    return std::ranges::is_sorted(entries, {}, [](const auto& entry) { return entry.path; });
  };
  if (!is_sorted(manifest.files) || !is_sorted(manifest.links) || ToText(manifest) != text)
    return Invalid("the manifest is not in the form that attune writes");
  if (Status checked = CheckManifest(manifest); !checked.ok()) return checked.error();
  return manifest;
}

Status CheckPath(std::string_view path) {
  const std::string fault = PathFault(path);
  return fault.empty() ? Status() : Invalid(Quoted(path) + ' ' + fault);
}

Status CheckManifest(const Manifest& manifest) { return Checker(manifest).Check(); }

}  // namespace attune::code
