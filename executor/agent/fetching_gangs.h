#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "executor/agent/machine.h"
#include "executor/environments/environment_builder.h"
#include "executor/transfer/fetcher.h"

namespace attune::agent {

// Delays gangs until the files that they need have been fetched: their code, their data, and the
// checkpoint from which rank 0 resumes if it is on another host. A gang also waits for its
// environment, whose build begins when the code is here. Passes all other gangs to the supervisor
// immediately. Not thread-safe.
class FetchingGangs final : public Gangs {
 public:
  // Functions that begin transfers, and that release all copies of an attempt.
  struct Fetches {
    std::function<void(const gang::AttemptId&, const gang::RemoteFiles&, const std::string& digest)>
        checkpoint;                                          // OnCheckpoint() follows
    std::function<void(const gang::GangSpec&)> code;         // OnCode() follows
    std::function<void(const gang::GangSpec&)> data;         // OnData() follows for each file
    std::function<void(const gang::GangSpec&)> environment;  // OnEnvironment() follows
    std::function<void(const gang::AttemptId&)> release;
  };

  // `gangs` must outlive this object. `ended` is called for gangs that end while they wait; it must
  // not call the machine synchronously.
  FetchingGangs(Gangs& gangs, Fetches fetches,
                std::function<void(const gang::AttemptId&, gang::Ended)> ended)
      : gangs_(gangs), fetches_(std::move(fetches)), ended_(std::move(ended)) {}

  void OnCheckpoint(const gang::AttemptId& attempt, const Fetched& fetched);
  void OnCode(const gang::AttemptId& attempt, const Fetched& fetched);
  void OnData(const gang::AttemptId& attempt, const Fetched& fetched);
  void OnEnvironment(const gang::AttemptId& attempt, const BuiltEnvironment& built);
  void OnEnded(const gang::AttemptId& attempt) { fetches_.release(attempt); }

  void Run(gang::GangSpec spec) override;
  void Cancel(const gang::AttemptId& attempt, gang::CancelReason reason) override;
  void Yield(const gang::AttemptId& attempt) override;
  void SetVerdict(const gang::AttemptId& attempt, const gang::Verdict& verdict) override;
  void OnPeersFinished(const gang::AttemptId& attempt) override;
  void SetRendezvous(const gang::AttemptId& attempt, const channel::Rendezvous& rank_zero) override;
  void SetDeadline(gang::BootClock::time_point deadline) override { gangs_.SetDeadline(deadline); }

 private:
  struct Waiting {
    gang::GangSpec spec;
    int fetches = 0;                    // that have not finished
    std::filesystem::path environment;  // in which the program runs; empty: that of the executor
    // Calls for the gang when it runs. The newest of each kind replaces the earlier ones.
    bool yields = false;
    bool peers_finished = false;
    std::optional<gang::Verdict> verdict;
    std::optional<channel::Rendezvous> rank_zero;
  };

  // Runs the gang if nothing is left to fetch. `use` adds the fetched folder to its specification.
  template <typename Use>
  void OnFetched(const gang::AttemptId& attempt, const Fetched& fetched, Use use);
  void RunNow(const gang::AttemptId& attempt, Waiting waiting);
  void End(const gang::AttemptId& attempt, gang::Ended ended);
  Waiting* FindWaiting(const gang::AttemptId& attempt);  // null: it does not wait

  Gangs& gangs_;
  const Fetches fetches_;
  const std::function<void(const gang::AttemptId&, gang::Ended)> ended_;
  std::map<gang::AttemptId, Waiting> waiting_;
};

}  // namespace attune::agent
