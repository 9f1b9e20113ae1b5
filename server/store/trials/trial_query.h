#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "core/base/ids.h"
#include "server/store/trials/trial_filter.h"

namespace attune::server {

// An order of trials. Trials without a value come last in both directions, and equal values are
// ordered by number.
struct TrialOrder {
  std::string column = "number";  // or config.NAME or metrics.NAME
  bool reversed = false;

  bool operator==(const TrialOrder&) const = default;
};

// Parses an order such as best, -step or config.lr; empty: by number. kInvalid lists the columns.
Result<TrialOrder> ParseTrialOrder(std::string_view text);

// The place in an order after a trial: its value in the order's column, and its number.
struct TrialPosition {
  using Value = std::variant<int64_t, double, std::string>;

  std::optional<Value> value;  // nullopt: the trial has none
  TrialNumber number;

  bool operator==(const TrialPosition&) const = default;
};

// Which trials of a sweep a page contains.
struct TrialQuery {
  TrialOrder order = {};
  std::optional<TrialFilter> filter = {};   // nullopt: all trials
  std::optional<TrialPosition> after = {};  // nullopt: from the first
  int limit = 1'000;
};

}  // namespace attune::server
