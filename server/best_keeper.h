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

// The sweep whose best checkpoints this event may have changed, once it has led to this state.
std::optional<SweepId> SweepWithOtherBest(const Event& event, const State& state);

// Brings the checkpoints of each sweep's best reports to the storage, whatever becomes of the
// executors that hold them, and drops copies that are of the best no more, once the better ones are
// there, and those of sweeps that are deleted. On a thread of its own; what fails is tried again,
// less and less often until an executor joins, and what a server that died has left undone is done
// by the next.
class BestKeeper final : public Listener {
 public:
  // All outlive the object.
  BestKeeper(const CheckpointStorage& storage, CheckpointSource& source, Reader& reader);
  ~BestKeeper() override;  // leaves off

  void OnStarted(const Brain& brain) override;
  void OnDurable(std::span<const Event> events, const Brain& brain) override;

 private:
  using Clock = std::chrono::steady_clock;

  void LookAt(SweepId sweep, Clock::time_point at);
  void Tidy(std::unique_lock<std::mutex>& lock);
  void Run();
  bool Keep(SweepId sweep);  // false: something could not be brought now
  bool Bring(const CheckpointId& id, const std::string& digest);
  bool Stopping();
  bool FailedBefore(SweepId sweep);

  const CheckpointStorage& storage_;
  CheckpointSource& source_;
  Reader& reader_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_:
  std::map<SweepId, Clock::time_point> due_;       // sweeps to look at, and when
  std::map<SweepId, std::chrono::seconds> again_;  // those that failed, and how long they wait
  std::set<SweepId> deleted_;                      // of which no copy is to stay
  bool tidy_ = true;                               // whether what they had left was deleted
  bool stop_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attune::server
