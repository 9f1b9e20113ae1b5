#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <thread>

#include "server/conductor/submissions.h"
#include "server/storage/store_jobs.h"
#include "server/storage/stored_sweeps.h"
#include "server/storage/stores.h"

namespace attune::server {

// Does the work of the server on object stores (StoreJobs) when events call for it. Repeats it with
// growing delays while a store fails, and at once when the credentials change.
//
// Works on its own thread. A new server completes the work that an earlier one left.
class StoreKeeper final : public Listener {
 public:
  struct Delays {
    // Before the work for new events begins, because more may follow.
    std::chrono::milliseconds settle{500};
    // Between two listings of a sweep's copies, until it ends.
    std::chrono::milliseconds clean{60'000};
    // Between two uploads of the results of a sweep that runs.
    std::chrono::milliseconds results{600'000};
    // Before the files of a deleted sweep are deleted, because executors must end their uploads.
    std::chrono::milliseconds deletion{10'000};
    // Between two checks of the credentials while a store fails.
    std::chrono::milliseconds check{10'000};
  };

  // All arguments must outlive the object.
  StoreKeeper(StoreJobs& jobs, Stores& stores, StoredSweeps& stored, Delays delays);
  StoreKeeper(StoreJobs& jobs, Stores& stores, StoredSweeps& stored)
      : StoreKeeper(jobs, stores, stored, Delays()) {}
  ~StoreKeeper() override;

  void OnStarted(const Brain& brain) override;
  void OnDurable(std::span<const Event> events, const Brain& brain) override;

  // Whether work for the sweep is due or in progress. Any thread, like the next function.
  bool IsBusy(SweepId sweep) const;
  // Why work for the sweep has failed and is tried again; empty: it has not.
  std::string ProblemOf(SweepId sweep) const;

 private:
  using Clock = std::chrono::steady_clock;

  enum class Kind { kParts, kDelete, kCode, kClean, kResults };
  struct Job {
    Kind kind = Kind::kParts;
    SweepInStore in;  // for kParts only the address

    auto operator<=>(const Job&) const = default;
  };
  struct Failure {
    std::chrono::seconds delay{0};
    std::string message;
  };
  struct Pause {
    std::chrono::seconds delay{0};
    Clock::time_point until;
  };

  // REQUIRES for these: mutex_ is locked.
  void Note(const SweepInStore& in, Clock::time_point now);
  void OnEvent(const Event& event, const State& state, Clock::time_point now);
  void OnChange(const Fact& fact, const SweepInStore& in, bool has_ended, Clock::time_point now);
  void Schedule(const Job& job, Clock::time_point at);
  Clock::time_point ReadyAt(const std::pair<const Job, Clock::time_point>& due) const;
  void Finish(const Job& job, const Status& done);

  void Run();
  Status Do(const Job& job);
  void ResumeWithNewVariables(std::unique_lock<std::mutex>& lock);

  StoreJobs& jobs_;
  Stores& stores_;
  StoredSweeps& stored_;
  const Delays delays_;
  std::stop_source stop_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_:
  std::map<SweepId, SweepInStore> sweeps_;
  std::map<SweepId, std::set<std::string>> patched_;  // digests of the code of patched trials
  std::set<SweepId> dropped_;  // sweeps that dropped checkpoints since the last listing
  std::map<Job, Clock::time_point> due_;
  std::optional<Job> current_;
  std::map<Job, Clock::time_point> done_at_;  // of kClean and kResults
  std::map<Job, Failure> failures_;
  std::map<std::string, Pause> pauses_;  // by address of a store that failed

  Variables variables_;  // at the last failure; used only by the thread

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace attune::server
