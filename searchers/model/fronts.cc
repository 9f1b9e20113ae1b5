#include "searchers/model/fronts.h"

#include <algorithm>

namespace attune::searchers {
namespace {

// Whether only the values decide which of the trials is better.
bool AreComparable(const Record& record, uint32_t a, uint32_t b) {
  const Trial& one = record.trial(a);
  const Trial& other = record.trial(b);
  return one.standing <= Standing::kCut && one.standing == other.standing &&
         (one.standing == Standing::kComplete || one.step == other.step);
}

}  // namespace

std::vector<uint32_t> BestOf(const Record& record, const std::vector<uint32_t>& sorted,
                             size_t count, FrontOrder order) {
  const size_t objectives = record.objectives();
  std::vector<uint32_t> best;
  for (auto begin = sorted.begin(); begin != sorted.end() && best.size() < count;) {
    const auto end = std::find_if(begin, sorted.end(), [&](uint32_t trial) {
      return objectives == 1 || !AreComparable(record, *begin, trial);
    });
    if (end == begin) {  // the trial has no values to compare
      best.push_back(*begin++);
      continue;
    }
    std::vector<double> losses;
    for (auto trial = begin; trial != end; ++trial) {
      for (size_t i = 0; i < objectives; ++i) losses.push_back(record.Result(*trial, i));
    }
    const size_t wanted = count - best.size();
    for (const uint32_t row : NondominatedSort(losses, objectives, wanted, order))
      best.push_back(begin[row]);
    begin = end;
  }
  return best;
}

}  // namespace attune::searchers
