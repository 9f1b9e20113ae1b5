#include "core/analysis/failure_pattern.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <utility>

namespace attune {
namespace {

constexpr size_t kDigestLengthMin = 8;
// The numbers after these words tell causes apart.
constexpr std::array<std::string_view, 3> kTellingWords{"exit code ", "status ", "signal "};

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool IsHexDigit(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsPath(char c) {
  return !IsSpace(c) && std::string_view("'\"`,;:()[]{}<>|=").find(c) == std::string_view::npos;
}

template <class Test>
std::string_view Take(std::string_view text, Test test) {
  return text.substr(0, std::ranges::find_if_not(text, test) - text.begin());
}

// 12, 0.5, 1e-3, 10.0.0.7
std::string_view TakeNumber(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const bool more = end + 1 < text.size() && IsDigit(text[end + 1]);
    const bool exponent = end + 2 < text.size() && (text[end] == 'e' || text[end] == 'E') &&
                          (text[end + 1] == '-' || text[end + 1] == '+') && IsDigit(text[end + 2]);
    if (IsDigit(text[end]))
      ++end;
    else if ((text[end] == '.' || text[end] == 'e' || text[end] == 'E') && more)
      ++end;
    else if (exponent)
      end += 2;
    else
      break;
  }
  return text.substr(0, end);
}

bool IsDigest(std::string_view word) {
  return word.size() >= kDigestLengthMin && std::ranges::all_of(word, IsHexDigit) &&
         std::ranges::any_of(word, IsDigit);
}

bool IsPathStart(std::string_view text) {
  return (text.starts_with('/') || text.starts_with("./") || text.starts_with("../")) &&
         Take(text, IsPath).size() > 2;
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  std::string Scan() {
    while (!rest_.empty()) Step();
    return std::move(pattern_);
  }

 private:
  void Step() {
    const bool in_word = !pattern_.empty() && IsWord(pattern_.back());
    if (IsSpace(rest_.front())) {
      if (!pattern_.empty() && pattern_.back() != ' ') pattern_ += ' ';
      return Skip(Take(rest_, IsSpace));
    }
    if (!in_word && IsPathStart(rest_)) return TakePath();
    if (!in_word && IsWord(rest_.front())) return TakeWord();
    pattern_ += rest_.front();
    Skip(rest_.substr(0, 1));
  }

  void TakePath() {
    std::string_view path = Take(rest_, IsPath);
    Skip(path);
    while (path.ends_with('/')) path.remove_suffix(1);
    const size_t slash = path.rfind('/');
    pattern_ += "…/" + Scanner(path.substr(slash + 1)).Scan();
  }

  void TakeWord() {
    const std::string_view word = Take(rest_, IsWord);
    const bool hexadecimal = word.starts_with("0x") || word.starts_with("0X");
    if (hexadecimal || IsDigest(word)) return Replace(word);
    const std::string_view number = TakeNumber(rest_);
    if (number.empty()) return Keep(word);
    const bool tells = std::ranges::any_of(
        kTellingWords, [&](std::string_view before) { return pattern_.ends_with(before); });
    return tells ? Keep(number) : Replace(number);
  }

  // A sign belongs to the number.
  void Replace(std::string_view number) {
    const bool is_signed =
        pattern_.ends_with('-') && (pattern_.size() == 1 || !IsWord(pattern_[pattern_.size() - 2]));
    if (is_signed) pattern_.pop_back();
    pattern_ += 'N';
    Skip(number);
  }

  void Keep(std::string_view text) {
    pattern_ += text;
    Skip(text);
  }

  void Skip(std::string_view text) { rest_.remove_prefix(text.size()); }

  std::string_view rest_;
  std::string pattern_;
};

}  // namespace

std::string PatternOf(std::string_view message) {
  std::string pattern = Scanner(message).Scan();
  while (pattern.ends_with(' ')) pattern.pop_back();
  return pattern;
}

}  // namespace attune
