#include "core/space/domain.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "base/check.h"
#include "base/message_limits.h"
#include "base/result.h"

namespace attune {
namespace {

constexpr double kStepTolerance = 1e-6;  // rounding error that is allowed, as a fraction of a step

// Digits after the point in the shortest decimal that reads as `value`.
int Decimals(double value) {
  const std::string text = FormatReal(value);
  const size_t exponent = text.find('e');
  const size_t point = text.find('.');
  int decimals = 0;
  if (exponent != std::string::npos) decimals -= std::stoi(text.substr(exponent + 1));
  if (point != std::string::npos) {
    const std::string fraction = text.substr(point + 1, exponent - point - 1);
    if (fraction != "0") decimals += static_cast<int>(fraction.size());
  }
  return std::max(decimals, 0);
}

double RoundToDecimals(double value, int decimals) {
  std::array<char, 700> digits;  // the longest double before and after the point
  const auto printed = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                     std::chars_format::fixed, decimals);
  if (printed.ec != std::errc()) return value;
  double rounded = value;
  std::from_chars(digits.data(), printed.ptr, rounded);
  return rounded + 0.0;  // no -0.0
}

// The value for a message; a long text is cut.
std::string FormatForMessage(const Value& value) {
  constexpr size_t kShownBytes = 80;
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? CutEnd(*text, kShownBytes) : FormatValue(value);
}

int64_t LastStep(const FloatDomain& domain) {
  const double steps = (domain.max - domain.min) / *domain.step;
  const double nearest = std::round(steps);
  const bool meets_max = std::abs(steps - nearest) <= kStepTolerance;
  return static_cast<int64_t>(meets_max ? nearest : std::floor(steps));
}

double StepAt(const FloatDomain& domain, int64_t index) {
  const double value = RoundToDecimals(domain.min + static_cast<double>(index) * *domain.step,
                                       std::max(Decimals(domain.min), Decimals(*domain.step)));
  const bool meets_max = std::abs(domain.max - value) <= kStepTolerance * *domain.step;
  return meets_max ? domain.max : value;
}

Result<Value> AdmitTo(const FloatDomain& domain, const Value& value) {
  const auto number = AsNumber(value);
  if (!number) {
    return Invalid("'" + FormatForMessage(value) + "' is " + std::string(TypeName(value)) +
                   ", not a number");
  }
  if (!std::isfinite(*number)) return Invalid(FormatReal(*number) + " is not a finite number");
  if (*number < domain.min) {
    return Invalid(FormatReal(*number) + " is below min " + FormatReal(domain.min));
  }
  if (*number > domain.max) {
    return Invalid(FormatReal(*number) + " is above max " + FormatReal(domain.max));
  }
  if (!domain.step) return Value(*number);

  const auto index = static_cast<int64_t>(std::round((*number - domain.min) / *domain.step));
  const double nearest = StepAt(domain, std::min(index, LastStep(domain)));
  if (std::abs(*number - nearest) > kStepTolerance * *domain.step) {
    return Invalid(FormatReal(*number) + " is not on a step of " + FormatReal(*domain.step) +
                   " from min " + FormatReal(domain.min) + "; the nearest is " +
                   FormatReal(nearest));
  }
  return Value(nearest);
}

Result<Value> AdmitTo(const IntDomain& domain, const Value& value) {
  const int64_t* number = std::get_if<int64_t>(&value);
  if (!number) {
    return Invalid("'" + FormatForMessage(value) + "' is " + std::string(TypeName(value)) +
                   ", not an integer");
  }
  const std::string text = std::to_string(*number);
  if (*number < domain.min) return Invalid(text + " is below min " + std::to_string(domain.min));
  if (*number > domain.max) return Invalid(text + " is above max " + std::to_string(domain.max));
  if ((*number - domain.min) % domain.step != 0) {
    return Invalid(text + " is not on a step of " + std::to_string(domain.step) + " from min " +
                   std::to_string(domain.min));
  }
  return value;
}

Result<Value> AdmitTo(const CategoricalDomain& domain, const Value& value) {
  const auto found = std::find_if(domain.values.begin(), domain.values.end(),
                                  [&](const Value& listed) { return SameSetting(listed, value); });
  if (found != domain.values.end()) return *found;

  constexpr size_t kShown = 20;
  std::string known;
  for (size_t i = 0; i < domain.values.size() && i < kShown; ++i) {
    known += (i == 0 ? "" : ", ") + FormatForMessage(domain.values[i]);
  }
  if (domain.values.size() > kShown) known += ", …";
  return Invalid("'" + FormatForMessage(value) + "' is not one of its values: " + known);
}

Result<Value> AdmitTo(const ConstantDomain& domain, const Value& value) {
  if (SameSetting(domain.value, value)) return domain.value;
  return Invalid("'" + FormatForMessage(value) + "' is not its only value, " +
                 FormatForMessage(domain.value));
}

}  // namespace

std::optional<double> AsNumber(const Value& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

bool SameSetting(const Value& a, const Value& b) {
  if (a.index() == b.index()) return a == b;
  const auto number_a = AsNumber(a);
  const auto number_b = AsNumber(b);
  return number_a && number_b && *number_a == *number_b;
}

SettingSet::SettingSet(const std::vector<Value>& values) {
  for (const Value& value : values) Insert(value);
}

bool SettingSet::Insert(const Value& value) {
  const auto key = KeyOf(value);
  return !key || keys_.insert(*key).second;
}

bool SettingSet::Contains(const Value& value) const {
  const auto key = KeyOf(value);
  return key && keys_.contains(*key);
}

// Integers that are not exact as a double stay integers, so that each remains distinct.
std::optional<Value> SettingSet::KeyOf(const Value& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const auto* integer = std::get_if<int64_t>(&value);
  if (integer != nullptr && std::abs(static_cast<double>(*integer)) >= 0x1p53) return *integer;
  const double number = *AsNumber(value);
  if (std::isnan(number)) return std::nullopt;
  return number;
}

std::optional<int64_t> CountValues(const Domain& domain) {
  struct {
    std::optional<int64_t> operator()(const FloatDomain& d) const {
      if (!d.step) return std::nullopt;
      return LastStep(d) + 1;
    }
    std::optional<int64_t> operator()(const IntDomain& d) const {
      return (d.max - d.min) / d.step + 1;
    }
    std::optional<int64_t> operator()(const CategoricalDomain& d) const {
      return std::ssize(d.values);
    }
    std::optional<int64_t> operator()(const ConstantDomain&) const { return 1; }
  } count;
  return std::visit(count, domain);
}

Value ValueAt(const Domain& domain, int64_t index) {
  const auto count = CountValues(domain);
  ATTUNE_CHECK(count && index >= 0 && index < *count);
  struct {
    int64_t index;
    Value operator()(const FloatDomain& d) const { return StepAt(d, index); }
    Value operator()(const IntDomain& d) const { return d.min + index * d.step; }
    Value operator()(const CategoricalDomain& d) const { return d.values[index]; }
    Value operator()(const ConstantDomain& d) const { return d.value; }
  } at{index};
  return std::visit(at, domain);
}

Result<Value> Admit(const Domain& domain, const Value& value) {
  return std::visit([&](const auto& d) { return AdmitTo(d, value); }, domain);
}

}  // namespace attune
