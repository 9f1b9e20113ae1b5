#pragma once

#include <string>
#include <vector>

#include "server/conductor/conductor.h"
#include "server/http/backend.h"
#include "server/rpc/executor_service.h"
#include "server/store/reader.h"

namespace attune::server {

// What HTTP asks, answered by the conductor, the executors' service and the store, all of which
// outlive it.
class ServerBackend final : public Backend {
 public:
  ServerBackend(Conductor& conductor, ExecutorService& executors, Reader& reader)
      : conductor_(conductor), executors_(executors), reader_(reader) {}

  Result<SweepId> CreateSweep(NewSweep sweep) override;
  Status StopSweep(SweepId sweep) override;
  Status KillSweep(SweepId sweep) override;
  std::string Waiting(SweepId sweep) override;
  std::vector<ExecutorStatus> Executors() override;
  Result<LogSlice> ReadLog(const AttemptId& attempt, int rank, int64_t offset,
                           uint32_t limit_bytes) override;
  Status Ready() override { return conductor_.Ready(); }
  EventSeq WaitForEvents(EventSeq seq, int timeout_ms) override {
    return conductor_.WaitForEvents(seq, timeout_ms);
  }

 private:
  Conductor& conductor_;
  ExecutorService& executors_;
  Reader& reader_;
};

}  // namespace attune::server
