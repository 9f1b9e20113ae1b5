#pragma once

#include <functional>
#include <map>
#include <string>

#include "executor/agent/machine.h"
#include "executor/transfer/checkpoint_fetcher.h"

namespace attune::agent {

// Delays gangs whose checkpoint is on another host until the checkpoint has been fetched. Passes
// all other gangs to the supervisor immediately. Not thread-safe.
class FetchingGangs final : public Gangs {
 public:
  // Functions of CheckpointFetcher: begin a transfer, and release its copy.
  struct Fetches {
    std::function<void(const gang::AttemptId&, const gang::RemoteCheckpoint&,
                       const std::string& digest)>
        fetch;
    std::function<void(const gang::AttemptId&)> release;
  };

  // `gangs` must outlive this object. `ended` is called for gangs that end while they wait; it must
  // not call the machine synchronously.
  FetchingGangs(Gangs& gangs, Fetches fetches,
                std::function<void(const gang::AttemptId&, gang::Ended)> ended)
      : gangs_(gangs), fetches_(std::move(fetches)), ended_(std::move(ended)) {}

  void OnFetched(const gang::AttemptId& attempt, const Fetched& fetched);
  void OnEnded(const gang::AttemptId& attempt) { fetches_.release(attempt); }

  void Run(gang::GangSpec spec) override;
  void Cancel(const gang::AttemptId& attempt, gang::CancelReason reason) override;
  void Yield(const gang::AttemptId& attempt) override;
  void SetVerdict(const gang::AttemptId& attempt, const gang::Verdict& verdict) override {
    gangs_.SetVerdict(attempt, verdict);
  }
  void OnPeersFinished(const gang::AttemptId& attempt) override { gangs_.OnPeersFinished(attempt); }
  void SetRendezvous(const gang::AttemptId& attempt,
                     const channel::Rendezvous& rank_zero) override {
    gangs_.SetRendezvous(attempt, rank_zero);
  }
  void SetDeadline(gang::BootClock::time_point deadline) override { gangs_.SetDeadline(deadline); }

 private:
  struct Waiting {
    gang::GangSpec spec;
    bool yields = false;
  };

  void End(const gang::AttemptId& attempt, gang::Ended ended);

  Gangs& gangs_;
  const Fetches fetches_;
  const std::function<void(const gang::AttemptId&, gang::Ended)> ended_;
  std::map<gang::AttemptId, Waiting> waiting_;
};

}  // namespace attune::agent
