#include "searchers/model/limit.h"

#include <string>

namespace attune::searchers {

std::optional<Error> WithoutEnd(const SweepSpec& spec, std::string_view what) {
  const StopPolicy& stop = spec.stop;
  const bool uses_gpus = spec.gang.per_worker.gpus > 0;
  if (spec.External() || stop.max_trials > 0 || stop.max_time.value > 0 ||
      (stop.max_gpu_hours > 0 && uses_gpus) || stop.patience > 0 || !stop.targets.empty()) {
    return std::nullopt;
  }
  return Error{ErrorCode::kInvalid,
               "stop: " + std::string(what) +
                   " never ends by itself; set max_trials, max_time, max_gpu_hours (where workers "
                   "have GPUs) or patience, or metric.target"};
}

}  // namespace attune::searchers
