#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "core/base/ids.h"
#include "core/log/verdict.h"

// Texts that schedulers share.
namespace attune::schedulers {

inline std::string Text(int64_t number) { return std::to_string(number); }
inline std::string Text(Step step) { return std::to_string(step.value); }
inline std::string Text(TrialNumber trial) { return std::to_string(trial.value); }

// The verdict on a report at which nothing is decided. `next` is the next milestone, a `kind`;
// `end` is the text if there is none.
inline Verdict NothingDecided(std::string rule, Step step, std::optional<Step> next,
                              const std::string& kind, const std::string& end) {
  return Verdict::Continue(
      {.rule = std::move(rule),
       .step = step,
       .text = "continues at step " + Text(step) + ": " +
               (next ? "nothing is decided before " + kind + " " + Text(*next) : end)});
}

inline Error MissingMax(const std::string& scheduler) {
  return {ErrorCode::kInvalid,
          "scheduler.max: " + scheduler + " needs max, the step at which a trial is complete"};
}

}  // namespace attune::schedulers
