#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "core/base/ids.h"

namespace attune::schedulers {

// The trials of one bracket that were recorded at one rung, and those of them that are paused
// there. The best ⌊n/η⌋ of the n recorded trials may continue.
class Rung {
 public:
  // The place in the order: least cost first, then the trial that was recorded first.
  struct Key {
    double cost = 0;     // infinite for a value that is not finite
    uint32_t order = 0;  // the number of trials recorded before it
    auto operator<=>(const Key&) const = default;
  };
  // A recorded trial.
  struct Mark {
    Key key;
    double value = 0;                   // by which it is ranked: reported, or forecast
    std::optional<double> spread = {};  // of a forecast
  };
  // The position of a trial at the rung, itself included.
  struct Standing {
    int64_t rank = 0;  // from 1
    int64_t peers = 0;
    int64_t continuing = 0;                                    // the number that may continue
    double cutoff = std::numeric_limits<double>::quiet_NaN();  // NaN while none may continue
  };

  explicit Rung(Step step) : step_(step) {}

  Step step() const { return step_; }
  uint32_t size() const { return static_cast<uint32_t>(marks_.size()); }

  void Record(const Mark& mark);
  // Records many, in any order.
  void Append(const Mark& mark) { marks_.push_back({mark.key, mark.value}); }
  void Sort();

  // REQUIRES: the mark is recorded, or its order is size().
  Standing StandingOf(const Mark& mark, int64_t reduction_factor) const;

  void Pause(const Key& key, TrialNumber trial) { paused_.emplace(key, trial); }
  void Resume(const Key& key) { paused_.erase(key); }
  // The paused trials, the best first.
  const std::map<Key, TrialNumber>& paused() const { return paused_; }
  // Whether the recorded trial is among those that may continue.
  bool IsAmongBest(const Key& key, int64_t reduction_factor) const;

 private:
  // What the rung keeps of a mark. It is small because each insertion moves many of them.
  struct Entry {
    Key key;
    double value = 0;
  };

  size_t IndexOf(const Key& key) const;

  Step step_;
  std::vector<Entry> marks_;  // by key
  std::map<Key, TrialNumber> paused_;
};

}  // namespace attune::schedulers
