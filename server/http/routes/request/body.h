#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/log/command.h"
#include "sweepfile/sweepfile.h"

// The bodies of requests that steer a sweep, a trial or an executor: JSON or YAML, read like a
// sweep file, with every fault at once. An empty body is an empty map.
namespace attune::server {

template <class T>
struct Body {
  std::optional<T> value;  // absent when there are faults
  std::vector<sweepfile::Fault> faults;
};

// {"max_trials": 40, "max_step": 27, "max_time": "2h", "max_gpu_hours": 50}
Body<ExtendSweep> ReadExtension(std::string_view text, SweepId sweep);

// {"config": {"lr": 0.1}}
Body<Config> ReadNewTrial(std::string_view text, const SearchSpace& space);

// Of a verb that takes nothing; its value is true.
Body<bool> ReadNothing(std::string_view text);

Body<bool> ReadRetry(std::string_view text);     // {"from_start": true}
Body<Step> ReadContinue(std::string_view text);  // {"until": 81}

// {"reason": "a new disk", "now": true}
Body<DrainExecutor> ReadDrain(std::string_view text, const std::string& executor);

Body<Seconds> ReadAsk(std::string_view text);  // {"lease": "10m"}; 0 where it says nothing

// {"epoch": 12, "step": 3, "metrics": {"loss": 0.5}, "seconds": 8.5}
// {"epoch": 12, "step": 9, "metrics": {"loss": 0.5}, "ask": true, "lease": "10m"}
// {"epoch": 12, "state": "failed", "message": "out of memory"}
// {"epoch": 12, "state": "released"}
// {"epoch": 12, "state": "running"}
struct TellBody {
  Epoch epoch;
  std::optional<Report> report;  // absent: the attempt has ended, or is still there
  bool running = false;
  Outcome outcome = Outcome::kFinished;
  std::string message;
  std::optional<Seconds> next_lease;  // the next trial is asked for as well; as ReadAsk has it
};
// A report has these metrics, the sweep's. Where `time_attr` is one of them it says which step the
// report is of; the body need not.
Body<TellBody> ReadTell(std::string_view text, const std::vector<std::string>& metrics,
                        const std::string& time_attr);

}  // namespace attune::server
