#include "server/http/answers/curve_bytes.h"

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace attune::server {
namespace {

constexpr size_t kAlignment = 8;
constexpr uint32_t kMixed = 1;  // the flag of a trial with reports and logged values

// The numbers of the form are little-endian, as in memory.
static_assert(std::endian::native == std::endian::little);

// A row of each table of the form.
struct TrialEntry {
  uint32_t number = 0;
  uint32_t list = 0;
  uint32_t first_point = 0;
  uint32_t flags = 0;
};
// A segment (trial, attempt, first step) or a clone (trial, donor, step).
struct Mark {
  uint32_t trial = 0;
  uint32_t other = 0;
  double step = 0;
};
static_assert(sizeof(TrialEntry) == 16 && sizeof(Mark) == 16);

struct Header {
  std::array<char, 8> magic = {'A', 'T', 'C', 'U', 'R', 'V', 'E', '1'};
  uint64_t seq = 0;
  uint32_t trials = 0;
  uint32_t lists = 0;
  uint32_t points = 0;
  uint32_t steps = 0;
  uint32_t clones = 0;
  uint32_t segments = 0;
  uint32_t next = 0;  // the first trial of the next page plus 1; 0: last page
  uint32_t flags = 0;
  std::array<char, 16> zero = {};
};
static_assert(sizeof(Header) == 64);

template <class T>
void Append(std::string& bytes, const std::vector<T>& rows) {
  bytes.append(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(T));
  bytes.resize((bytes.size() + kAlignment - 1) / kAlignment * kAlignment, '\0');
}

// The lists of steps. Trials with equal steps share one.
class StepLists {
 public:
  // The number of the list with the steps of these points.
  uint32_t Add(const std::vector<CurvePoint>& points) {
    std::vector<double> list;
    list.reserve(points.size());
    for (const CurvePoint& point : points) list.push_back(point.step);
    const auto [entry, is_new] =
        numbers_.try_emplace(std::move(list), static_cast<uint32_t>(numbers_.size()));
    if (is_new) {
      steps_.insert(steps_.end(), entry->first.begin(), entry->first.end());
      offsets_.push_back(static_cast<uint32_t>(steps_.size()));
    }
    return entry->second;
  }

  uint32_t size() const { return static_cast<uint32_t>(numbers_.size()); }
  const std::vector<uint32_t>& offsets() const { return offsets_; }
  const std::vector<double>& steps() const { return steps_; }

 private:
  std::map<std::vector<double>, uint32_t> numbers_;
  std::vector<uint32_t> offsets_ = {0};
  std::vector<double> steps_;
};

}  // namespace

std::string CurvesToBytes(const ThinnedPage& page) {
  StepLists lists;
  std::vector<TrialEntry> trials;
  std::vector<float> values;
  std::vector<Mark> segments;
  std::vector<Mark> clones;
  for (const ThinnedTrial& trial : page.trials) {
    const uint32_t number = trial.trial.value;
    trials.push_back({number, lists.Add(trial.points), static_cast<uint32_t>(values.size()),
                      trial.mixed ? kMixed : 0});
    for (const CurvePoint& point : trial.points) values.push_back(point.value);
    for (const ThinnedSegment& segment : trial.segments)
      segments.push_back({number, segment.attempt, segment.first_step});
    for (const Clone& clone : trial.clones)
      clones.push_back({number, clone.donor.value, static_cast<double>(clone.step.value)});
  }
  const Header header{.seq = page.seq.value,
                      .trials = static_cast<uint32_t>(trials.size()),
                      .lists = lists.size(),
                      .points = static_cast<uint32_t>(values.size()),
                      .steps = static_cast<uint32_t>(lists.steps().size()),
                      .clones = static_cast<uint32_t>(clones.size()),
                      .segments = static_cast<uint32_t>(segments.size()),
                      .next = page.next ? page.next->value + 1 : 0};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  Append(bytes, lists.offsets());
  Append(bytes, lists.steps());
  Append(bytes, trials);
  Append(bytes, values);
  Append(bytes, segments);
  Append(bytes, clones);
  return bytes;
}

}  // namespace attune::server
