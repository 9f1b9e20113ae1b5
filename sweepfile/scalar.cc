#include "sweepfile/scalar.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <system_error>

#include "base/result.h"

namespace attune::sweepfile {
namespace {

constexpr int64_t kMaxExactInteger = (int64_t{1} << 53) - 1;  // exact in a double
constexpr double kMaxExactReal = static_cast<double>(kMaxExactInteger);

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array kDurationUnits{Unit{"d", 86400}, Unit{"h", 3600}, Unit{"m", 60}, Unit{"s", 1},
                                    Unit{"ms", 0.001}};

struct SizeUnit {
  std::string_view name;
  int64_t bytes;
};

constexpr std::array kSizeUnits{SizeUnit{"TiB", int64_t{1} << 40},
                                SizeUnit{"GiB", int64_t{1} << 30},
                                SizeUnit{"MiB", int64_t{1} << 20},
                                SizeUnit{"KiB", int64_t{1} << 10},
                                SizeUnit{"TB", 1'000'000'000'000},
                                SizeUnit{"GB", 1'000'000'000},
                                SizeUnit{"MB", 1'000'000},
                                SizeUnit{"kB", 1'000},
                                SizeUnit{"B", 1}};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t Digits(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && IsDigit(text[digits])) ++digits;
  return digits;
}

std::string_view WithoutSign(std::string_view text) {
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
  return text;
}

enum class Look { kText, kNull, kBoolean, kDecimal, kOctal, kHex, kReal, kNotFinite };

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool LooksReal(std::string_view text) {
  text = WithoutSign(text);
  const size_t whole = Digits(text);
  text.remove_prefix(whole);
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    const size_t fraction = Digits(text);
    if (whole + fraction == 0) return false;
    text.remove_prefix(fraction);
  } else if (whole == 0) {
    return false;
  }
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text = WithoutSign(text.substr(1));
  return !text.empty() && Digits(text) == text.size();
}

Look LookAt(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return Look::kNull;
  }
  for (const std::string_view word : {"true", "True", "TRUE", "false", "False", "FALSE"}) {
    if (text == word) return Look::kBoolean;
  }
  for (const std::string_view word : {".nan", ".NaN", ".NAN"}) {
    if (text == word) return Look::kNotFinite;
  }
  const std::string_view unsigned_text = WithoutSign(text);
  for (const std::string_view word : {".inf", ".Inf", ".INF"}) {
    if (unsigned_text == word) return Look::kNotFinite;
  }
  if (!unsigned_text.empty() && Digits(unsigned_text) == unsigned_text.size()) {
    return Look::kDecimal;
  }
  if (text.size() > 2 && text.substr(0, 2) == "0o" &&
      text.find_first_not_of("01234567", 2) == text.npos) {
    return Look::kOctal;
  }
  if (text.size() > 2 && text.substr(0, 2) == "0x" &&
      text.find_first_not_of("0123456789abcdefABCDEF", 2) == text.npos) {
    return Look::kHex;
  }
  return LooksReal(text) ? Look::kReal : Look::kText;
}

bool IsNumeric(Look look) {
  return look == Look::kDecimal || look == Look::kOctal || look == Look::kHex ||
         look == Look::kReal || look == Look::kNotFinite;
}

Error TooLarge(std::string_view integer) {
  return Invalid("the integer " + std::string(integer) +
                 " is too large; JSON keeps integers exact only up to ±" +
                 std::to_string(kMaxExactInteger));
}

Result<Value> ParseInteger(std::string_view text, Look look) {
  const std::string_view written = text;
  const int base = look == Look::kDecimal ? 10 : look == Look::kOctal ? 8 : 16;
  if (base != 10) text.remove_prefix(2);
  if (text[0] == '+') text.remove_prefix(1);  // from_chars does not accept a plus
  int64_t integer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer, base);
  if (error != std::errc() || end != text.data() + text.size()) {
    return TooLarge(written);
  }
  if (integer > kMaxExactInteger || integer < -kMaxExactInteger) return TooLarge(written);
  return Value(integer);
}

Result<Value> ParseReal(std::string_view text) {
  const std::string_view written = text;
  if (text[0] == '+') text.remove_prefix(1);
  double real = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), real);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Invalid("the number " + std::string(written) + " is out of the range of a 64-bit float");
  }
  return Value(real);
}

Error MismatchError(std::string_view what, const Node& node) {
  return Invalid("expected " + std::string(what) + ", found " + Describe(node));
}

bool IsScalar(const Node& node) { return node.kind == Node::Kind::kScalar; }

// Whether the text is a number that is not finite: nan, -Infinity.
bool IsNotFinite(std::string_view text) {
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
  if (!text.empty() && text[0] == '.') text.remove_prefix(1);
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return lower == "nan" || lower == "inf" || lower == "infinity";
}

Result<Value> ReadNumeric(std::string_view what, const Node& node) {
  if (IsScalar(node) && IsNotFinite(node.text))
    return Invalid("expected a finite number, found the number " + node.text);
  if (!IsScalar(node) || !IsNumeric(LookAt(node.text))) return MismatchError(what, node);
  if (!node.quoted) return ReadValue(node);
  Node plain = node;
  plain.quoted = false;
  if (const Result<Value> value = ReadValue(plain); !value.ok()) return value.error();
  return Invalid(MismatchError(what, node).message + "; remove the quotes");
}

// Removes the number at the beginning of `text` and returns it.
std::optional<double> TakeNumber(std::string_view& text) {
  double number = 0;
  if (text.empty() || (!IsDigit(text[0]) && text[0] != '.')) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  while (!text.empty() && text[0] == ' ') text.remove_prefix(1);
  return number;
}

}  // namespace

std::string Describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
    case Node::Kind::kScalar:
      break;
  }
  constexpr size_t kShownBytes = 60;
  std::string shown = node.text;
  if (shown.size() > kShownBytes) {
    size_t cut = kShownBytes;
    while (cut > 0 && (static_cast<unsigned char>(shown[cut]) & 0xC0) == 0x80) --cut;
    shown = shown.substr(0, cut) + "…";
  }
  // Quotes are mentioned only if they change the type, because all texts in JSON have quotes.
  if (node.quoted && !LooksLikeText(node.text)) return "the quoted text \"" + shown + "\"";
  if (node.quoted) return "the text \"" + shown + "\"";
  switch (LookAt(node.text)) {
    case Look::kBoolean:
      return "the boolean " + shown;
    case Look::kDecimal:
    case Look::kOctal:
    case Look::kHex:
      return "the integer " + shown;
    case Look::kReal:
    case Look::kNotFinite:
      return "the number " + shown;
    default:
      return "the text \"" + shown + "\"";
  }
}

Result<Value> ReadValue(const Node& node) {
  if (!IsScalar(node)) return MismatchError("a number, text, true or false", node);
  if (node.quoted) {
    if (node.text.find('\0') != node.text.npos) return Invalid("the text holds a NUL character");
    return Value(node.text);
  }
  const Look look = LookAt(node.text);
  switch (look) {
    case Look::kBoolean:
      return Value(node.text[0] == 't' || node.text[0] == 'T');
    case Look::kDecimal:
    case Look::kOctal:
    case Look::kHex:
      return ParseInteger(node.text, look);
    case Look::kReal:
      return ParseReal(node.text);
    case Look::kNotFinite:
      return MismatchError("a finite number", node);
    default:
      return Value(node.text);
  }
}

Result<std::string> ReadText(const Node& node) {
  if (!IsScalar(node)) return MismatchError("text", node);
  if (node.text.find('\0') != node.text.npos) return Invalid("the text holds a NUL character");
  return node.text;
}

Result<bool> ReadBoolean(const Node& node) {
  if (IsScalar(node) && !node.quoted && LookAt(node.text) == Look::kBoolean) {
    return node.text[0] == 't' || node.text[0] == 'T';
  }
  Error error = MismatchError("true or false", node);
  if (IsScalar(node)) {
    for (const std::string_view yes : {"yes", "Yes", "on", "On", "y"}) {
      if (node.text == yes) error.message += "; write true";
    }
    for (const std::string_view no : {"no", "No", "off", "Off", "n"}) {
      if (node.text == no) error.message += "; write false";
    }
    if (node.quoted && LookAt(node.text) == Look::kBoolean) error.message += "; remove the quotes";
  }
  return error;
}

Result<Value> ReadNumber(const Node& node) { return ReadNumeric("a number", node); }

Result<int64_t> ReadInteger(const Node& node) {
  const Result<Value> number = ReadNumeric("an integer", node);
  if (!number.ok()) return number.error();
  if (const auto* integer = std::get_if<int64_t>(&*number)) return *integer;
  const double real = std::get<double>(*number);
  if (real != std::floor(real) || std::abs(real) > kMaxExactReal) {
    return MismatchError("an integer", node);
  }
  return static_cast<int64_t>(real);
}

Result<double> ReadReal(const Node& node) {
  const Result<Value> number = ReadNumber(node);
  if (!number.ok()) return number.error();
  if (const auto* integer = std::get_if<int64_t>(&*number)) return static_cast<double>(*integer);
  return std::get<double>(*number);
}

Result<Seconds> ReadDuration(const Node& node) {
  constexpr std::string_view kWhat = "a duration such as 90s, 10m or 2h";
  if (!IsScalar(node)) return MismatchError(kWhat, node);
  std::string_view rest = node.text;
  const std::optional<double> number = TakeNumber(rest);
  if (number && rest.empty()) {
    return Invalid("expected " + std::string(kWhat) + ", found " + Describe(node) +
                   " without a unit; write " + node.text + "s for seconds");
  }
  for (const Unit& unit : kDurationUnits) {
    // A division gives the nearest double. The factor 0.001 itself would be rounded.
    if (number && rest == unit.name) {
      const double seconds = unit.factor < 1 ? *number / 1000 : *number * unit.factor;
      if (std::isfinite(seconds)) return Seconds{seconds};
    }
  }
  return Invalid(MismatchError(kWhat, node).message + "; units are ms, s, m, h and d");
}

Result<int64_t> ReadSize(const Node& node) {
  constexpr std::string_view kWhat = "a size such as 512MiB or 16GiB";
  if (!IsScalar(node)) return MismatchError(kWhat, node);
  std::string_view rest = node.text;
  // Whole numbers are read as integers, because a double cannot represent 2^63 - 1.
  int64_t whole = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), whole);
  const auto whole_digits = static_cast<size_t>(end - rest.data());
  const bool is_whole =
      error == std::errc() && whole >= 0 && whole_digits > 0 && IsDigit(rest[0]) &&
      (whole_digits == rest.size() || (rest[whole_digits] != '.' && rest[whole_digits] != 'e'));
  const std::optional<double> number = TakeNumber(rest);
  if (number && rest.empty()) {
    return Invalid("expected " + std::string(kWhat) + ", found " + Describe(node) +
                   " without a unit; write " + node.text + "GiB, " + node.text + "MiB or " +
                   node.text + "B");
  }
  for (const SizeUnit& unit : kSizeUnits) {
    if (!number || rest != unit.name) continue;
    if (is_whole) {
      if (whole > std::numeric_limits<int64_t>::max() / unit.bytes) break;
      return whole * unit.bytes;
    }
    const double bytes = *number * static_cast<double>(unit.bytes);
    if (bytes != std::floor(bytes) || bytes > kMaxExactReal) break;
    return static_cast<int64_t>(bytes);
  }
  return Invalid(MismatchError(kWhat, node).message +
                 "; a whole number of bytes with a unit: B, KiB, MiB, GiB, TiB, kB, MB, GB or TB");
}

std::string FormatDuration(Seconds duration) {
  const double seconds = duration.value;
  if (seconds == 0) return "0s";
  for (const Unit& unit : kDurationUnits) {
    if (seconds >= unit.factor && seconds <= kMaxExactReal &&
        std::fmod(seconds, unit.factor) == 0 && unit.factor >= 1) {
      return std::to_string(static_cast<int64_t>(seconds / unit.factor)) + std::string(unit.name);
    }
  }
  return FormatReal(seconds) + "s";
}

std::string FormatSize(int64_t bytes) {
  for (const SizeUnit& unit : kSizeUnits) {
    const bool binary = unit.name.find('i') != unit.name.npos;
    if (binary && bytes != 0 && bytes % unit.bytes == 0) {
      return std::to_string(bytes / unit.bytes) + std::string(unit.name);
    }
  }
  return std::to_string(bytes) + "B";
}

bool LooksLikeText(std::string_view plain) { return LookAt(plain) == Look::kText; }

}  // namespace attune::sweepfile
