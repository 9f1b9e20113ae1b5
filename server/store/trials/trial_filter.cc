#include "server/store/trials/trial_filter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/parse_number.h"
#include "base/result.h"

namespace attune::server {
namespace {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool EndsWord(char c) { return IsSpace(c) || c == '(' || c == ')'; }

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

struct FilterToken {
  enum class Kind { kWord, kOpen, kClose, kOr, kNot, kEnd };

  Kind kind = Kind::kEnd;
  size_t offset = 0;                 // of its first byte in the filter
  std::string word = {};             // without quotes
  std::vector<bool> quoted = {};     // for each byte of the word, whether it was in quotes
  std::vector<size_t> offsets = {};  // for each byte of the word, and for its end, in the filter
  bool wholly_quoted = false;
};

// Reads a filter from left to right, with one token of look-ahead. After the first error, all
// further tokens are the end.
class FilterParser {
 public:
  explicit FilterParser(std::string_view text) : text_(text) { Advance(); }

  Result<TrialFilter> Parse() {
    if (token_.kind == FilterToken::Kind::kEnd && !error_) return TrialFilter{};
    TrialFilter filter = Alternatives();
    if (token_.kind != FilterToken::Kind::kEnd) Fail(token_.offset, "a word");
    if (error_) return *error_;
    return filter;
  }

 private:
  using Kind = FilterToken::Kind;

  TrialFilter Alternatives() {
    TrialFilter first = Conjunction();
    if (token_.kind != Kind::kOr) return first;
    const size_t position = first.position;
    MatchAny any;
    any.parts.push_back(std::move(first));
    while (token_.kind == Kind::kOr) {
      Advance();
      any.parts.push_back(Conjunction());
    }
    return {position, std::move(any)};
  }

  TrialFilter Conjunction() {
    TrialFilter first = Operand();
    const auto more = [&] {
      return token_.kind != Kind::kEnd && token_.kind != Kind::kOr && token_.kind != Kind::kClose;
    };
    if (!more()) return first;
    const size_t position = first.position;
    MatchAll all;
    all.parts.push_back(std::move(first));
    while (more()) all.parts.push_back(Operand());
    return {position, std::move(all)};
  }

  TrialFilter Operand() {
    const FilterToken token = token_;
    const size_t position = PositionOf(token.offset);
    if (token.kind == Kind::kEnd || token.kind == Kind::kOr || token.kind == Kind::kClose) {
      Fail(token.offset, "a word or '('");
      return {};
    }
    if (token.kind == Kind::kWord) {
      if (++words_ > kFilterWordsMax)
        Fail(token.offset, "at most " + std::to_string(kFilterWordsMax) + " words");
      Advance();
      return {position, MatchOf(token)};
    }
    if (++depth_ > kFilterDepthMax)
      Fail(token.offset, "at most " + std::to_string(kFilterDepthMax) +
                             " groups and negations inside each other");
    Advance();
    TrialFilter filter{.position = position};
    if (token.kind == Kind::kNot) {
      MatchNot negation;
      negation.part.push_back(Operand());
      filter.match = std::move(negation);
    } else {
      filter = Alternatives();
      if (token_.kind != Kind::kClose) Fail(token_.offset, "')'");
      Advance();
    }
    --depth_;
    return filter;
  }

  decltype(TrialFilter::match) MatchOf(const FilterToken& token) {
    std::string lower = InLowerCase(token.word);
    if (token.wholly_quoted) return MatchText{std::move(lower)};
    for (const TrialState state : kTrialStatesInOrder)
      if (lower == Name(state)) return MatchStates{{state}};
    if (lower.starts_with("state:")) return StatesOf(token, lower);
    if (lower.starts_with("tag:")) return TagsOf(token, lower);
    const std::string_view digits(std::string_view(lower).substr(lower.starts_with('#') ? 1 : 0));
    if (!digits.empty() && std::ranges::all_of(digits, IsDigit))
      return MatchNumber{ParseNumber<uint32_t>(digits)};
    if (const auto range = RangeOf(token)) return *range;
    if (const auto comparison = ComparisonOf(token)) return *comparison;
    return MatchText{std::move(lower)};
  }

  // tag:NAME or tag:NAME,NAME
  MatchTags TagsOf(const FilterToken& token, std::string_view lower) {
    MatchTags match;
    for (size_t begin = lower.find(':') + 1; begin <= lower.size();) {
      const size_t end = std::min(lower.find(',', begin), lower.size());
      if (end == begin) Fail(token.offsets[begin], "a tag");
      match.tags.emplace_back(lower.substr(begin, end - begin));
      begin = end + 1;
    }
    return match;
  }

  MatchStates StatesOf(const FilterToken& token, std::string_view lower) {
    MatchStates match;
    for (size_t begin = lower.find(':') + 1; begin <= lower.size();) {
      const size_t end = std::min(lower.find(',', begin), lower.size());
      const std::string_view word = lower.substr(begin, end - begin);
      const auto* const found = std::ranges::find(kTrialStatesInOrder, word,
                                                  [](TrialState state) { return Name(state); });
      if (found == kTrialStatesInOrder.end()) {
        Fail(token.offsets[begin], "a state: " + AllStates());
        break;
      }
      match.states.push_back(*found);
      begin = end + 1;
    }
    return match;
  }

  static std::string AllStates() {
    std::string list;
    for (const TrialState state : kTrialStatesInOrder)
      list += (list.empty() ? "" : ", ") + std::string(Name(state));
    return list;
  }

  // NAME:LOW..HIGH
  std::optional<MatchRange> RangeOf(const FilterToken& token) {
    const std::string& word = token.word;
    const size_t colon = FindPlain(token, ":", 1);
    if (colon == word.npos || FindOperator(token) < colon) return std::nullopt;
    const size_t dots = FindPlain(token, "..", colon + 1);
    if (dots == word.npos) return std::nullopt;
    MatchRange match{.name = word.substr(0, colon),
                     .low = word.substr(colon + 1, dots - colon - 1),
                     .high = word.substr(dots + 2)};
    match.low_number = EndOf(token, match.name, match.low, colon + 1);
    match.high_number = EndOf(token, match.name, match.high, dots + 2);
    return match;
  }

  // An end of a range as a number, if it is one. Fails if it must be a number but is not.
  std::optional<double> EndOf(const FilterToken& token, std::string_view name,
                              const std::string& text, size_t place) {
    const auto number = ParseNumber<double>(text);
    if (!text.empty() && (!number || std::isnan(*number)) && !IsTimeColumn(name))
      Fail(token.offsets[place], "a number");
    return number;
  }

  // NAME<VALUE, or with another operator
  std::optional<MatchComparison> ComparisonOf(const FilterToken& token) {
    const std::string& word = token.word;
    const size_t place = FindOperator(token);
    if (place == word.npos) return std::nullopt;
    const bool with_equals = word.substr(place + 1, 1) == "=" && !token.quoted[place + 1];
    const size_t begin = place + (with_equals && word[place] != '=' ? 2 : 1);
    MatchComparison match{.name = word.substr(0, place),
                          .comparison = ComparisonNamed(word[place], with_equals),
                          .text = word.substr(begin)};
    match.number = ParseNumber<double>(match.text);
    // The operand "" in quotes is the empty text.
    if (match.text.empty() && text_[token.offsets[begin] - 1] != '"')
      Fail(token.offsets[begin], "a value after " + word.substr(place, begin - place));
    const bool is_equality =
        match.comparison == Comparison::kEqual || match.comparison == Comparison::kNotEqual;
    if (!is_equality && (!match.number || std::isnan(*match.number)) && !IsTimeColumn(match.name))
      Fail(token.offsets[begin], "a number");
    return match;
  }

  static Comparison ComparisonNamed(char first, bool with_equals) {
    if (first == '<') return with_equals ? Comparison::kLessOrEqual : Comparison::kLess;
    if (first == '>') return with_equals ? Comparison::kGreaterOrEqual : Comparison::kGreater;
    return first == '!' ? Comparison::kNotEqual : Comparison::kEqual;
  }

  // The place of the first operator outside quotes after a name; npos if there is none.
  static size_t FindOperator(const FilterToken& token) {
    for (size_t i = 1; i < token.word.size(); ++i) {
      if (token.quoted[i]) continue;
      const char c = token.word[i];
      if (c == '<' || c == '>' || c == '=') return i;
      if (c == '!' && i + 1 < token.word.size() && token.word[i + 1] == '=' && !token.quoted[i + 1])
        return i;
    }
    return std::string::npos;
  }

  // The first place of `text` outside quotes, from `begin` on.
  static size_t FindPlain(const FilterToken& token, std::string_view text, size_t begin) {
    size_t place = token.word.find(text, begin);
    while (place != token.word.npos && token.quoted[place])
      place = token.word.find(text, place + 1);
    return place;
  }

  // Reads the next token into `token_`.
  void Advance() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
    token_ = {.kind = Kind::kEnd, .offset = at_};
    if (error_ || at_ == text_.size()) return;
    const char c = text_[at_];
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : ' ';
    if (c == '(' || c == ')') {
      token_.kind = c == '(' ? Kind::kOpen : Kind::kClose;
      ++at_;
    } else if (c == '-' && !IsSpace(next) && next != ')') {
      token_.kind = Kind::kNot;
      ++at_;
    } else {
      ReadWord();
    }
  }

  void ReadWord() {
    int quotes = 0;
    while (at_ < text_.size() && !EndsWord(text_[at_])) {
      if (text_[at_] != '"') {
        AddToWord(/*quoted=*/false);
        continue;
      }
      ++quotes;
      for (++at_; at_ < text_.size() && text_[at_] != '"';) AddToWord(/*quoted=*/true);
      if (at_ == text_.size()) return Fail(at_, "a closing '\"'");
      ++at_;
    }
    token_.offsets.push_back(at_);
    token_.wholly_quoted = quotes == 1 && at_ - token_.offset == token_.word.size() + 2 &&
                           text_[token_.offset] == '"' && text_[at_ - 1] == '"';
    token_.kind = Kind::kWord;
    if (quotes == 0 && token_.word == "OR") token_.kind = Kind::kOr;
    if (quotes == 0 && token_.word == "NOT") token_.kind = Kind::kNot;
  }

  void AddToWord(bool quoted) {
    token_.word += text_[at_];
    token_.quoted.push_back(quoted);
    token_.offsets.push_back(at_++);
  }

  // The position of a byte, in characters from 1.
  size_t PositionOf(size_t offset) const {
    return 1 + static_cast<size_t>(std::ranges::count_if(
                   text_.substr(0, offset), [](char c) { return (c & 0xc0) != 0x80; }));
  }

  // Keeps the first error, and ends the text.
  void Fail(size_t offset, const std::string& expected) {
    if (!error_)
      error_ = Invalid("filter: at position " + std::to_string(PositionOf(offset)) + ": expected " +
                       expected);
    token_ = {.kind = Kind::kEnd, .offset = offset};
  }

  const std::string_view text_;
  size_t at_ = 0;
  FilterToken token_;
  int words_ = 0;
  int depth_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<TrialFilter> ParseTrialFilter(std::string_view text) {
  if (text.size() > kFilterBytesMax)
    return Invalid("filter: longer than " + std::to_string(kFilterBytesMax) + " bytes");
  return FilterParser(text).Parse();
}

bool IsTimeColumn(std::string_view name) { return name == "created" || name == "ended"; }

std::string InLowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

}  // namespace attune::server
