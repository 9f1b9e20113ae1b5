#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/sweep_spec.h"

namespace attune::server {

// What HTTP needs from the rest of the server; the server implements it. Every call may be made
// from any thread and blocks until what it did is durable.
class Backend {
 public:
  virtual ~Backend() = default;

  struct NewSweep {
    SweepSpec spec;
    std::string source;
    std::string idempotency_key;
  };
  virtual Result<SweepId> CreateSweep(NewSweep sweep) = 0;  // the earlier one for a key seen before
  virtual Status StopSweep(SweepId sweep) = 0;
  virtual Status KillSweep(SweepId sweep) = 0;

  // Why the sweep's next gang cannot start; empty when nothing waits.
  virtual std::string Waiting(SweepId sweep) = 0;

  struct ExecutorStatus {
    std::string name;
    std::string state;  // online, lost
    std::string address;
    Resources total;
    Resources free;
  };
  virtual std::vector<ExecutorStatus> Executors() = 0;

  struct LogSlice {
    std::string data;
    uint64_t offset = 0;      // of data's first byte
    uint64_t file_bytes = 0;  // size of the log now
  };
  // kUnavailable when the executor that holds it is not connected.
  virtual Result<LogSlice> ReadLog(const AttemptId& attempt, int rank, int64_t offset,
                                   uint32_t limit_bytes) = 0;

  virtual Status Ready() = 0;  // why it cannot decide or write, for /readyz

  // Blocks until an event after `seq` is durable or `timeout_ms` has passed or the server stops;
  // returns the last durable one.
  virtual EventSeq WaitForEvents(EventSeq seq, int timeout_ms) = 0;
};

}  // namespace attune::server
