#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>

#include "server/checkpoint_source.h"
#include "server/checkpoint_storage.h"
#include "server/conductor/submissions.h"
#include "server/store/reader.h"

namespace attune::server {

// The sweep whose best checkpoints may have changed with this event. `state` is the state after it.
std::optional<SweepId> SweepWithChangedBest(const Event& event, const State& state);

// Copies the checkpoints of each sweep's best reports to the storage, so that they outlive the
// executors that hold them. Removes a copy once the copies of better checkpoints exist, or when its
// sweep is deleted.
//
// Works on its own thread. Retries failures with growing delays, or as soon as an executor joins. A
// new server completes the work that an earlier one left.
class BestKeeper final : public Listener {
 public:
  // All arguments must outlive the object.
  BestKeeper(const CheckpointStorage& storage, CheckpointSource& source, Reader& reader);
  ~BestKeeper() override;  // stops copying

  void OnStarted(const Brain& brain) override;
  void OnDurable(std::span<const Event> events, const Brain& brain) override;

 private:
  using Clock = std::chrono::steady_clock;

  void Schedule(SweepId sweep, Clock::time_point at);
  void RemoveDeletedSweeps(std::unique_lock<std::mutex>& lock);
  void Run();
  bool CopyBest(SweepId sweep);  // false: a checkpoint could not be copied now
  bool CopyCheckpoint(const CheckpointId& id, const std::string& digest);
  bool IsStopping();
  bool HasFailedBefore(SweepId sweep);

  const CheckpointStorage& storage_;
  CheckpointSource& source_;
  Reader& reader_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_:
  std::map<SweepId, Clock::time_point> due_;              // sweeps to check, and when
  std::map<SweepId, std::chrono::seconds> retry_delays_;  // failed sweeps with their delays
  std::set<SweepId> deleted_;                             // sweeps whose copies must be removed
  bool removed_deleted_ = true;  // false: the copies of deleted_ must be removed first
  bool stop_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attune::server
