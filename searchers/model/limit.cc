#include "searchers/model/limit.h"

#include <string>

#include "base/result.h"
#include "searchers/model/cube.h"

namespace attune::searchers {

std::optional<Error> CheckHasEnd(const SweepSpec& spec, std::string_view what) {
  const StopPolicy& stop = spec.stop;
  const bool uses_gpus = spec.gang.per_worker.gpus > 0;
  if (spec.External() || stop.max_trials > 0 || stop.max_time.value > 0 ||
      (stop.max_gpu_hours > 0 && uses_gpus) || stop.patience > 0 || !stop.targets.empty()) {
    return std::nullopt;
  }
  return Error{
      ErrorCode::kInvalid,
      "stop: " + std::string(what) +
          " never ends by itself; set max_trials, max_time, max_gpu_hours (if workers have "
          "GPUs) or patience, or metric.target"};
}

std::optional<Error> CheckHasEndIfInfinite(const SweepSpec& spec, std::string_view what) {
  if (Cube(spec.space).IsFinite()) return std::nullopt;
  return CheckHasEnd(spec, what);
}

std::optional<Error> CheckNoWarmStart(const SweepSpec& spec, std::string_view name) {
  if (spec.warm_start.empty()) return std::nullopt;
  return Error{ErrorCode::kInvalid,
               "warm_start: " + std::string(name) +
                   " learns nothing from earlier sweeps; use a searcher that learns, such as auto, "
                   "or remove warm_start"};
}

std::optional<Error> CheckOneMetric(const SweepSpec& spec, std::string_view name) {
  if (spec.objectives.size() <= 1) return std::nullopt;
  return Error{ErrorCode::kInvalid,
               "searcher.name: " + std::string(name) + " supports one metric, but the sweep has " +
                   std::to_string(spec.objectives.size()) +
                   "; turn the others into constraints, or use gp, tpe or nsga2"};
}

}  // namespace attune::searchers
