#include "searchers/model/rationale.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "searchers/model/nearest.h"

namespace attune::searchers {
namespace {

constexpr size_t kNamed = 2;         // changes with a name
constexpr size_t kMostBytes = 24;    // of a name or a value
constexpr double kUnchanged = 1e-9;  // share of a range; rounding errors are smaller
constexpr int kFewestDigits = 3;
constexpr int kMostDigits = 17;  // enough for any two different numbers

std::string Shorten(std::string text) {
  if (text.size() <= kMostBytes) return text;
  size_t end = kMostBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

std::string FormatBriefly(const Value& value, int most_digits) {
  const auto* real = std::get_if<double>(&value);
  if (real == nullptr) return Shorten(FormatValue(value));
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), *real,
                                 std::chars_format::general, most_digits);
  return {digits.data(), end.ptr};
}

std::string Change(const Cube& cube, size_t dimension, double from, double to) {
  const std::string name = Shorten(cube.Name(dimension));
  if (std::isnan(to)) return "without " + name;
  const Value now = cube.ToValue(dimension, to);
  if (std::isnan(from)) return name + ' ' + FormatBriefly(now, kFewestDigits) + " is new";
  const Value before = cube.ToValue(dimension, from);
  for (int digits = kFewestDigits; digits <= kMostDigits; ++digits) {
    const std::string was = FormatBriefly(before, digits);
    const std::string is = FormatBriefly(now, digits);
    if (was != is) return name + " from " + was + " to " + is;
  }
  return name + " from " + FormatValue(before) + " to " + FormatValue(now);  // long texts
}

}  // namespace

Rationale ExplainStartPoint(ProposalNumber proposal, int attempt, const std::string& until) {
  if (attempt > 0)
    return {.rule = "random", .text = "drawn at random: the point of the sequence was tried"};
  return {.rule = "sobol",
          .text = "point " + std::to_string(proposal.value + 1) + " of a Sobol sequence, " + until};
}

std::string DescribeChanges(const Record& record, uint32_t trial, const Config& config) {
  const Cube& cube = record.cube();
  const Point point = cube.Place(config).value();
  std::vector<std::pair<double, size_t>> changed;  // the negative distance, and the dimension
  for (size_t i = 0; i < cube.size(); ++i) {
    const double apart = Distance(cube.dimensions()[i], record.Coordinate(trial, i), point[i]);
    if (apart > kUnchanged) changed.emplace_back(-apart, i);
  }
  const size_t named = std::min(kNamed, changed.size());
  std::ranges::partial_sort(changed, changed.begin() + static_cast<ptrdiff_t>(named));
  std::string text;
  for (size_t i = 0; i < named; ++i) {
    const size_t dimension = changed[i].second;
    text += (i > 0 ? ", " : "") +
            Change(cube, dimension, record.Coordinate(trial, dimension), point[dimension]);
  }
  if (changed.size() > named) text += " and " + std::to_string(changed.size() - named) + " more";
  return text;
}

}  // namespace attune::searchers
