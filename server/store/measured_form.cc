#include "server/store/measured_form.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>

#include "base/check.h"
#include "server/store/json.h"

namespace attune::server {
namespace {

// Whether JSON can contain the text between quotes without escapes.
bool NeedsNoEscapes(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

// The maximum length of a number.
constexpr size_t kDigits = 32;

template <class Number>
void WriteNumber(Number number, std::string& out) {
  std::array<char, kDigits> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  ATTUNE_CHECK(error == std::errc());
  const std::string_view text(digits.data(), end);
  out += text;
  if constexpr (std::is_floating_point_v<Number>) {
    if (std::ranges::none_of(text, [](char c) { return c == '.' || c == 'e'; })) out += ".0";
  }
}

void WriteReal(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
    return;
  }
  WriteNumber(value, out);
}

void WriteFields(const AttemptId& attempt, int64_t count, double real, const Metrics& metrics,
                 std::string& out) {
  out.reserve(out.size() + (metrics.size() + 2) * 2 * kDigits);
  out += '[';
  WriteNumber(attempt.number, out);
  out += ',';
  WriteNumber(count, out);
  out += ',';
  WriteReal(real, out);
  out += ',';
  WriteMetrics(metrics, out);
}

}  // namespace

void WriteMetrics(const Metrics& metrics, std::string& out) {
  out += '{';
  for (const auto& [name, value] : metrics) {
    if (out.back() != '{') out += ',';
    if (NeedsNoEscapes(name)) {
      out += '"';
      out += name;
      out += '"';
    } else {
      out += Dump(Json(name));
    }
    out += ':';
    WriteReal(value, out);
  }
  out += '}';
}

void WriteMeasured(const TrialReported& fact, std::string& out) {
  const Report& report = fact.report;
  WriteFields(fact.attempt, report.step.value, report.seconds.value, report.metrics, out);
  out += report.waits ? ",true]" : "]";
}

void WriteMeasured(const MetricsLogged& fact, std::string& out) {
  WriteFields(fact.attempt, fact.number, fact.step, fact.metrics, out);
  out += ']';
}

MeasuredScanner::MeasuredScanner(std::string_view payload)
    : at_(payload.data()), end_(payload.data() + payload.size()) {
  ok_ = Take('[') && TakeNumber(attempt_) && Take(',') && TakeNumber(count_) && Take(',') &&
        TakeReal(real_) && Take(',') && Take('{');
}

bool MeasuredScanner::NextMetric() {
  if (!ok_) return false;
  if (Take('}')) {
    waits_ = Take(",true");
    ok_ = Take(']') && at_ == end_;
    return false;
  }
  if (!first_ && !Take(',')) return Fault();
  first_ = false;
  return (TakeName() && Take(':') && TakeReal(value_)) || Fault();
}

bool MeasuredScanner::Take(char expected) {
  if (at_ == end_ || *at_ != expected) return false;
  ++at_;
  return true;
}

bool MeasuredScanner::Take(std::string_view expected) {
  if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(expected)) return false;
  at_ += expected.size();
  return true;
}

template <class Number>
bool MeasuredScanner::TakeNumber(Number& number) {
  const auto [next, error] = std::from_chars(at_, end_, number);
  if (error != std::errc()) return false;
  at_ = next;
  return true;
}

bool MeasuredScanner::TakeReal(double& real) {
  if (at_ == end_ || *at_ != '"') return TakeNumber(real);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const auto& [word, value] : {std::pair<std::string_view, double>{"\"nan\"", std::nan("")},
                                    {"\"inf\"", kInfinity},
                                    {"\"-inf\"", -kInfinity}}) {
    real = value;
    if (Take(word)) return true;
  }
  return false;
}

bool MeasuredScanner::TakeName() {
  if (!Take('"')) return false;
  const char* const close = std::find(at_, end_, '"');
  name_ = {at_, static_cast<size_t>(close - at_)};
  at_ = close;
  return NeedsNoEscapes(name_) && Take('"');
}

bool MeasuredScanner::Fault() { return ok_ = false; }

}  // namespace attune::server
