#pragma once

#include <functional>
#include <map>
#include <string>

#include "executor/agent/machine.h"
#include "executor/transfer/checkpoint_fetcher.h"

namespace attune::agent {

// Gangs whose checkpoint lies elsewhere wait in here until it has come; then they, as all others at
// once, are the supervisor's. Used by one thread.
class FetchingGangs final : public Gangs {
 public:
  // What begins the transfer of a checkpoint, and what lets go of its copy: CheckpointFetcher.
  struct Fetches {
    std::function<void(const gang::AttemptId&, const gang::FarCheckpoint&,
                       const std::string& digest)>
        fetch;
    std::function<void(const gang::AttemptId&)> release;
  };

  // The gangs outlive this. `ended` is told of those that end while they wait; it must not call the
  // machine before it has returned.
  FetchingGangs(Gangs& gangs, Fetches fetches,
                std::function<void(const gang::AttemptId&, gang::Ended)> ended)
      : gangs_(gangs), fetches_(std::move(fetches)), ended_(std::move(ended)) {}

  void OnFetched(const gang::AttemptId& attempt, const Fetched& fetched);
  void OnEnded(const gang::AttemptId& attempt) { fetches_.release(attempt); }

  void Run(gang::GangSpec spec) override;
  void Cancel(const gang::AttemptId& attempt, gang::CancelReason reason) override;
  void Yield(const gang::AttemptId& attempt) override;
  void Tell(const gang::AttemptId& attempt, const gang::Verdict& verdict) override {
    gangs_.Tell(attempt, verdict);
  }
  void Finish(const gang::AttemptId& attempt) override { gangs_.Finish(attempt); }
  void Meet(const gang::AttemptId& attempt, const channel::Rendezvous& rank_zero) override {
    gangs_.Meet(attempt, rank_zero);
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
