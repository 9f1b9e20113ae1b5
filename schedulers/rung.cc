#include "schedulers/rung.h"

#include <algorithm>

namespace attune::schedulers {

size_t Rung::IndexOf(const Key& key) const {
  const auto found = std::ranges::lower_bound(marks_, key, {}, &Entry::key);
  return static_cast<size_t>(found - marks_.begin());
}

void Rung::Record(const Mark& mark) {
  marks_.insert(marks_.begin() + static_cast<ptrdiff_t>(IndexOf(mark.key)), {mark.key, mark.value});
}

void Rung::Sort() { std::ranges::sort(marks_, {}, &Entry::key); }

bool Rung::IsAmongBest(const Key& key, int64_t reduction_factor) const {
  return IndexOf(key) < marks_.size() / static_cast<size_t>(reduction_factor);
}

Rung::Standing Rung::StandingOf(const Mark& mark, int64_t reduction_factor) const {
  const size_t index = IndexOf(mark.key);
  const bool recorded = mark.key.order < marks_.size();
  const size_t peers = marks_.size() + (recorded ? 0 : 1);
  const size_t continuing = peers / static_cast<size_t>(reduction_factor);
  Standing standing{.rank = static_cast<int64_t>(index) + 1,
                    .peers = static_cast<int64_t>(peers),
                    .continuing = static_cast<int64_t>(continuing)};
  if (continuing == 0) return standing;
  const size_t last = continuing - 1;
  standing.cutoff =
      last == index ? mark.value : marks_[last - (!recorded && last > index ? 1 : 0)].value;
  return standing;
}

}  // namespace attune::schedulers
