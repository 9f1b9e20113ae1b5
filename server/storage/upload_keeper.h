#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "attune/v1/executor.pb.h"
#include "server/conductor/submissions.h"
#include "server/rpc/sessions.h"
#include "server/storage/stored_sweeps.h"
#include "server/storage/uploads.h"
#include "server/storage/wanted.h"
#include "server/store/reader.h"

namespace attune::server {

// The sweep whose wanted copies may have changed with this event. `state` is the state after it.
std::optional<SweepId> SweepWithChangedCopies(const Event& event, const State& state);

// Sends each executor the list of checkpoints that it must upload, for all sweeps with a store.
// Sends it again when the credentials have changed. Notes each such sweep in StoredSweeps before.
//
// Works on its own thread, which uses no store. A new server completes the work that an earlier one
// left.
class UploadKeeper final : public Listener {
 public:
  struct Options {
    StateQuery query;
    // How an executor uses object stores; nullopt: it is not connected.
    std::function<std::optional<Sessions::StorageUse>(const std::string& executor)> use_of;
    // Sends the list now, and again after each reconnect.
    std::function<void(const std::string& executor, v1::Uploads uploads)> send;
    std::function<Variables()> variables;
    // Called when IsUploading() may have changed.
    std::function<void()> changed = [] {};
    uint64_t bytes_per_second_max = 0;  // of each executor; 0: no limit
    // How often credentials and connections are checked while copies are missing.
    std::chrono::milliseconds check_interval{10'000};
  };

  // All arguments must outlive the object.
  UploadKeeper(Options options, Reader& reader, StoredSweeps& stored);
  ~UploadKeeper() override;

  // Whether an executor must upload copies of the sweep, or that is not known yet. Any thread.
  bool IsBusy(SweepId sweep);
  // Whether this executor must upload copies, or that is not known yet. Any thread.
  bool IsUploading(const std::string& executor);
  // Whether an executor cannot upload the copy with this StoredPath(). Any thread.
  bool IsSkipped(const std::string& path);
  // The number of the sweep's wanted copies that are not stored. Any thread.
  size_t MissingCopies(SweepId sweep);

  void OnStarted(const Brain& brain) override;
  void OnDurable(std::span<const Event> events, const Brain& brain) override;

 private:
  using Clock = std::chrono::steady_clock;

  // The newest lists of executors.
  struct Orders {
    std::set<std::string> executors;    // those with a list
    std::set<SweepId> sweeps;           // those in the lists
    std::set<std::string> skipped;      // see IsSkipped
    std::map<SweepId, size_t> missing;  // see MissingCopies
  };

  void Schedule(SweepId sweep, Clock::time_point at);  // REQUIRES: mutex_ is locked
  void Run();
  std::vector<SweepId> TakeDue();
  bool Check(SweepId sweep);  // false: again later
  void SendLists();
  void Forget(SweepId sweep);

  const Options options_;
  Reader& reader_;
  StoredSweeps& stored_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_:
  std::set<SweepId> sweeps_;  // those that use a store, and perhaps others that have ended
  std::map<SweepId, Clock::time_point> due_;
  std::vector<SweepId> checking_;  // sweeps that the thread checks now
  Orders orders_;
  std::map<SweepId, std::chrono::seconds> retry_delays_;  // failed sweeps with their delays
  bool executors_changed_ = false;
  bool stop_ = false;

  // Used only by the thread:
  std::map<SweepId, WantedCopies> wanted_;   // of sweeps with missing copies
  std::map<std::string, std::string> sent_;  // lists that are not empty, by executor

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attune::server
