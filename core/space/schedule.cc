#include "core/space/schedule.h"

#include <charconv>
#include <optional>
#include <utility>

#include "base/result.h"

namespace attune {
namespace {

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_.+-/").find(c) != std::string_view::npos;
}

std::string Word(const std::string& text) {
  bool plain = !text.empty();
  for (const char c : text) plain = plain && IsWordCharacter(c);
  if (plain) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

template <class Number>
std::optional<Value> Parse(std::string_view text) {
  Number number{};
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stopped != text.data() + text.size()) return std::nullopt;
  return Value(number);
}

// The value of the parameter's domain that the text spells. If there is none, the text itself,
// which Resolve then refuses.
Value ValueOf(const std::string& text, const Domain& domain) {
  std::optional<Value> value;
  if (std::holds_alternative<FloatDomain>(domain)) value = Parse<double>(text);
  if (std::holds_alternative<IntDomain>(domain)) value = Parse<int64_t>(text);
  if (const auto* choice = std::get_if<CategoricalDomain>(&domain)) {
    for (const Value& listed : choice->values) {
      if (FormatValue(listed) == text) value = listed;
    }
  }
  if (const auto* constant = std::get_if<ConstantDomain>(&domain);
      constant != nullptr && FormatValue(constant->value) == text)
    value = constant->value;
  return value.value_or(Value(text));
}

class Reader {
 public:
  Reader(std::string_view text, const SearchSpace& space) : text_(text), space_(space) {}

  Result<ConfigSchedule> Read() {
    ConfigSchedule schedule;
    while (!fault_ && Peek() != 0) {
      const auto number = Parse<int64_t>(Take("a step"));
      const Step step(number ? std::get<int64_t>(*number) : 0);
      if (step < Step(1) || (!schedule.empty() && step <= schedule.rbegin()->first))
        Fail("expected a step, a whole number above the one before");
      Expect(':');
      const Config config = ReadConfig();
      if (fault_) break;
      auto resolved = space_.Resolve(config);
      if (!resolved.ok())
        return Error{ErrorCode::kInvalid,
                     "at step " + std::to_string(step.value) + ", " + resolved.error().message};
      schedule.emplace(step, *std::move(resolved));
      if (Peek() != 0) Expect(';');
    }
    if (fault_) return *fault_;
    return schedule;
  }

 private:
  Config ReadConfig() {
    Config config;
    do {
      const std::string name = Take("a parameter");
      Expect('=');
      const std::string value = Take("a value");
      if (fault_) return config;
      const Parameter* parameter = space_.Find(name);
      if (parameter == nullptr) {
        Fail("unknown parameter " + name);
      } else {
        config.Set(name, ValueOf(value, parameter->domain));
      }
    } while (!fault_ && TakeIf(','));
    return config;
  }

  // The next character that is not white space; 0 at the end.
  char Peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool TakeIf(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  void Expect(char c) {
    if (!fault_ && !TakeIf(c)) Fail(std::string("expected `") + c + "`");
  }

  std::string Take(const char* what) {
    std::string word;
    if (fault_) return word;
    const bool quoted = TakeIf('"');
    while (at_ < text_.size() && (quoted ? text_[at_] != '"' : IsWordCharacter(text_[at_]))) {
      if (quoted && text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      word += text_[at_++];
    }
    if (quoted ? !TakeIf('"') : word.empty())
      Fail(quoted ? "a quote is not closed" : std::string("expected ") + what);
    return word;
  }

  void Fail(const std::string& what) {
    if (fault_) return;
    fault_ = Error{ErrorCode::kInvalid,
                   "at character " + std::to_string(at_ + 1) + ": " + what +
                       "; write such as `8: lr=0.12, width=32; 16: lr=0.1, width=32`"};
  }

  const std::string_view text_;
  const SearchSpace& space_;
  size_t at_ = 0;
  std::optional<Error> fault_;
};

}  // namespace

std::string FormatSchedule(const ConfigSchedule& schedule) {
  std::string text;
  for (const auto& [step, config] : schedule) {
    text += (text.empty() ? "" : "; ") + std::to_string(step.value) + ":";
    const char* before = " ";
    for (const auto& [name, value] : config.entries()) {
      text += before + Word(name) + "=" + Word(FormatValue(value));
      before = ", ";
    }
  }
  return text;
}

Result<ConfigSchedule> ParseSchedule(std::string_view text, const SearchSpace& space) {
  return Reader(text, space).Read();
}

}  // namespace attune
