#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/log/command.h"
#include "sweepfile/sweepfile.h"

// The bodies of requests that control a sweep, a trial or an executor. They are JSON or YAML, read
// like a sweep file, and all faults are reported at once. An empty body counts as an empty map.
namespace attune::server {

template <class T>
struct Body {
  std::optional<T> value;  // nullopt if there are faults
  std::vector<sweepfile::Fault> faults;
};

// {"max_trials": 40, "max_step": 27, "max_time": "2h", "max_gpu_hours": 50}
Body<ExtendSweep> ReadExtension(std::string_view text, SweepId sweep);

// {"config": {"lr": 0.1}, "patch": "--- a/train.py\n…"}
struct NewTrial {
  Config config;
  std::string patch;  // empty: none
};
Body<NewTrial> ReadNewTrial(std::string_view text, const SearchSpace& space);

// {"note": "uses the new loader", "add_tags": ["best"], "remove_tags": ["slow"]}
// {"tags": ["best", "lr"]}
// The changes that the body makes to this note and these tags. Tags that are there already stay
// whatever their form is, because those of a sweep file may have any.
Body<Annotation> ReadAnnotation(std::string_view text, const std::string& note,
                                const std::vector<std::string>& tags);

// Reads the body of a verb without arguments; the value is true.
Body<bool> ReadNothing(std::string_view text);

Body<bool> ReadRetry(std::string_view text);     // {"from_start": true}
Body<Step> ReadContinue(std::string_view text);  // {"until": 81}

// {"reason": "a new disk", "now": true}
Body<DrainExecutor> ReadDrain(std::string_view text, const std::string& executor);

Body<Seconds> ReadAsk(std::string_view text);  // {"lease": "10m"}; 0 if it is absent

// {"epoch": 12, "step": 3, "metrics": {"loss": 0.5}, "seconds": 8.5}
// {"epoch": 12, "step": 9, "metrics": {"loss": 0.5}, "ask": true, "lease": "10m"}
// {"epoch": 12, "state": "failed", "message": "out of memory"}
// {"epoch": 12, "state": "released"}
// {"epoch": 12, "state": "running"}
struct TellBody {
  Epoch epoch;
  std::optional<Report> report;  // nullopt: the attempt has ended or still runs
  bool running = false;
  Outcome outcome = Outcome::kFinished;
  std::string message;
  // lease of the next trial, if it is requested as well; see ReadAsk
  std::optional<Seconds> next_lease;
};
// Reads a tell. `metrics` are the sweep's metrics, which a report must contain. If `time_attr` is
// one of them, it gives the step of the report, and the body need not contain `step`.
Body<TellBody> ReadTell(std::string_view text, const std::vector<std::string>& metrics,
                        const std::string& time_attr);

}  // namespace attune::server
