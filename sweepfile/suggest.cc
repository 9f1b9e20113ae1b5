#include "sweepfile/suggest.h"

#include <algorithm>
#include <numeric>

namespace attune::sweepfile {
namespace {

// Longer words are not compared, because that takes time.
constexpr size_t kMaxWordBytes = 64;

}  // namespace

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> before_last(b.size() + 1);
  std::vector<int> last(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string Suggest(std::string_view word, const std::vector<std::string>& known) {
  if (word.size() > kMaxWordBytes) return "";
  std::string nearest;
  int nearest_distance = 0;
  for (const std::string& candidate : known) {
    const int distance = EditDistance(word, candidate);
    const int allowed = std::max<int>(1, static_cast<int>(candidate.size()) / 3);
    // Words without a common letter are not similar.
    if (distance > allowed || distance >= static_cast<int>(candidate.size())) continue;
    if (nearest.empty() || distance < nearest_distance) {
      nearest = candidate;
      nearest_distance = distance;
    }
  }
  return nearest;
}

}  // namespace attune::sweepfile
