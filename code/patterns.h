#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace attune::code {

// Patterns of paths, with the syntax and meaning of gitignore(5):
//
// - A pattern without a slash, or with a slash only at its end, matches a name in every folder.
//   Other patterns match whole paths, and a slash at their beginning has no further meaning.
// - `*` and `?` match within a name, `[a-z]` and `[!a-z]` match one character, `\` quotes the next
//   one. `**/` matches any number of folders, and `/**` everything below a folder.
// - A slash at the end matches only folders. A pattern that begins with `!` takes back the earlier
//   ones. The last pattern that matches decides.
//
// A file below a folder that matches also matches, whatever later patterns say, as with git.
class Patterns {
 public:
  Patterns() = default;

  // One pattern a line. Empty lines and lines that begin with # are ignored.
  static Patterns ParseLines(std::string_view text);

  // One pattern an element. kInvalid: a pattern is empty or has a line break.
  static Result<Patterns> FromList(const std::vector<std::string>& patterns);

  bool empty() const { return patterns_.empty(); }

  // Whether the patterns match the path itself. Use it if no folder of the path matches, as when
  // folders are visited in turn.
  bool Matches(std::string_view path, bool is_folder) const;

  // Whether the patterns match the file or one of its folders.
  bool MatchesFile(std::string_view path) const;

 private:
  struct Pattern {
    std::string glob;  // without the marks around it
    bool negated = false;
    bool folders_only = false;
    bool any_folder = false;  // matches a name in every folder
  };

  void Add(std::string_view line);

  std::vector<Pattern> patterns_;
};

}  // namespace attune::code
