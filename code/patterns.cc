#include "code/patterns.h"

#include <cstddef>
#include <optional>

#include "base/utf8.h"

namespace attune::code {
namespace {

// The length of the first character of a text that is not empty. Bytes that are not UTF-8 count as
// one character each.
size_t FirstCharacter(std::string_view text) {
  const size_t bytes = CharacterBytes(text);
  return bytes == 0 ? 1 : bytes;
}

struct BracketMatch {
  bool matches = false;
  size_t end = 0;  // the index behind the closing bracket
};

// Matches a bracket expression at the beginning of the glob with a character. Returns nullopt if
// it has no closing bracket; the bracket is then an ordinary character.
std::optional<BracketMatch> MatchBracket(std::string_view glob, std::string_view character) {
  size_t at = 1;
  const bool negated = at < glob.size() && (glob[at] == '!' || glob[at] == '^');
  if (negated) ++at;
  bool matches = false;
  for (bool first = true; at < glob.size(); first = false) {
    if (glob[at] == ']' && !first) return BracketMatch{matches != negated, at + 1};
    const auto next = [&]() -> std::string_view {
      if (glob[at] == '\\' && at + 1 < glob.size()) ++at;
      const std::string_view found = glob.substr(at, FirstCharacter(glob.substr(at)));
      at += found.size();
      return found;
    };
    const std::string_view low = next();
    std::string_view high = low;
    if (at + 1 < glob.size() && glob[at] == '-' && glob[at + 1] != ']') {
      ++at;
      high = next();
    }
    // The order of UTF-8 as bytes is the order of its code points.
    if (low <= character && character <= high) matches = true;
  }
  return std::nullopt;
}

// Whether the whole glob matches the whole path. Iterative, with one point to return to for each of
// `*` and `**`, so that no pattern takes exponential time: a later `*` makes an earlier one in the
// same name needless, and a later `**` makes every earlier one needless.
bool GlobMatches(std::string_view glob, std::string_view path) {
  struct Point {
    size_t glob;
    size_t path;
  };
  std::optional<Point> star;   // behind a `*`
  std::optional<Point> stars;  // behind a `**/`, or at the end behind `/**`
  size_t g = 0;
  size_t p = 0;
  const auto at_name = [&](size_t i) { return i == 0 || path[i - 1] == '/'; };
  for (;;) {
    if (glob.substr(g).starts_with("**") && (g == 0 || glob[g - 1] == '/') &&
        (g + 2 == glob.size() || glob[g + 2] == '/') && at_name(p)) {
      if (g + 2 == glob.size()) return p < path.size();
      g += 3;
      stars = {g, p};
      star.reset();
      continue;
    }
    if (g < glob.size() && glob[g] == '*') {
      while (g < glob.size() && glob[g] == '*') ++g;
      star = {g, p};
      continue;
    }
    if (g == glob.size() && p == path.size()) return true;
    if (g < glob.size() && p < path.size()) {
      const std::string_view character = path.substr(p, FirstCharacter(path.substr(p)));
      if (glob[g] == '?' && character != "/") {
        ++g;
        p += character.size();
        continue;
      }
      if (glob[g] == '[' && character != "/") {
        if (const auto bracket = MatchBracket(glob.substr(g), character)) {
          if (bracket->matches) {
            g += bracket->end;
            p += character.size();
            continue;
          }
        } else if (character == "[") {
          ++g;
          ++p;
          continue;
        }
      } else {
        const size_t quoted = glob[g] == '\\' && g + 1 < glob.size() ? g + 1 : g;
        if (glob[quoted] == path[p]) {
          g = quoted + 1;
          ++p;
          continue;
        }
      }
    }
    if (star && star->path < path.size() && path[star->path] != '/') {
      star->path += FirstCharacter(path.substr(star->path));
      g = star->glob;
      p = star->path;
      continue;
    }
    if (!stars) return false;
    const size_t slash = path.find('/', stars->path);
    if (slash == path.npos) return false;
    stars->path = slash + 1;
    g = stars->glob;
    p = stars->path;
    star.reset();
  }
}

std::string_view NameOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

}  // namespace

Patterns Patterns::ParseLines(std::string_view text) {
  Patterns patterns;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with('#')) patterns.Add(line);
  }
  return patterns;
}

Result<Patterns> Patterns::FromList(const std::vector<std::string>& list) {
  Patterns patterns;
  for (const std::string& each : list) {
    const size_t before = patterns.patterns_.size();
    if (each.find_first_of("\r\n") == each.npos) patterns.Add(each);
    if (patterns.patterns_.size() == before)
      return Error{ErrorCode::kInvalid, "\"" + each + "\" is not a pattern of paths"};
  }
  return patterns;
}

void Patterns::Add(std::string_view line) {
  // Blanks at the end do not count, unless they are quoted.
  while (line.ends_with(' ') && !line.ends_with("\\ ")) line.remove_suffix(1);
  Pattern pattern;
  if (line.starts_with('!')) {
    pattern.negated = true;
    line.remove_prefix(1);
  }
  if (line.ends_with('/')) {
    pattern.folders_only = true;
    line.remove_suffix(1);
  }
  pattern.any_folder = line.find('/') == line.npos;
  if (line.starts_with('/')) line.remove_prefix(1);
  if (line.empty()) return;
  pattern.glob = line;
  patterns_.push_back(std::move(pattern));
}

bool Patterns::Matches(std::string_view path, bool is_folder) const {
  for (auto pattern = patterns_.rbegin(); pattern != patterns_.rend(); ++pattern) {
    if (pattern->folders_only && !is_folder) continue;
    if (GlobMatches(pattern->glob, pattern->any_folder ? NameOf(path) : path))
      return !pattern->negated;
  }
  return false;
}

bool Patterns::MatchesFile(std::string_view path) const {
  for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
    if (Matches(path.substr(0, slash), true)) return true;
  }
  return Matches(path, false);
}

}  // namespace attune::code
