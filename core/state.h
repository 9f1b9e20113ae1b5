#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/algorithms.h"
#include "core/event.h"
#include "core/placement.h"

namespace attune {

// The run of a trial that holds slots now.
struct Attempt {
  AttemptId id;
  Epoch epoch;
  AttemptState state = AttemptState::kAssigned;
  std::vector<RankSlot> ranks;
  std::optional<CheckpointRef> resume;
  Time decided;

  // What rank 0 is told: go on to the trial's milestone, or leave at the step it waits at.
  VerdictKind verdict = VerdictKind::kContinue;
  Step verdict_step{0};  // of the report it answers; 0: none was judged yet
};

struct Trial {
  TrialId id;
  Config config;
  TrialState state = TrialState::kPending;
  uint32_t attempts = 0;
  int failures = 0;                         // attempts that failed by the trial's own doing
  Step last_step{0};                        // of its newest report
  Step milestone{0};                        // the step of the next decision; 0: none
  std::optional<CheckpointRef> checkpoint;  // the newest
  std::optional<Attempt> live;              // holds slots until its end is reported
};

struct Sweep {
  SweepId id;
  SweepSpec spec;
  std::string idempotency_key;
  SweepState state = SweepState::kRunning;
  std::optional<SweepState> stopping_as;  // no new trials; how it will have ended
  std::string reason;
  bool exhausted = false;  // the searcher has no more
  bool reported = false;   // some trial has reported something
  std::unique_ptr<Searcher> searcher;
  std::unique_ptr<Scheduler> scheduler;
  std::vector<Trial> trials;  // by number; given up when the sweep ends

  int created = 0;                // trials so far
  std::set<TrialNumber> live;     // whose attempt holds slots
  std::array<int, 7> by_state{};  // trials, indexed by TrialState

  int Count(TrialState which) const { return by_state[static_cast<size_t>(which)]; }
  Trial* Find(TrialNumber number);
  const Trial* Find(TrialNumber number) const;
};

struct Executor {
  std::string name;
  std::string instance;
  Incarnation incarnation;
  std::string address;
  bool lost = false;
  Host host;  // what is free of it
};

// Everything the brain knows. Changed by Apply only; replaying the log rebuilds it.
struct State {
  // `known` outlives the state.
  explicit State(const Algorithms& known) : algorithms(&known) {}

  const Algorithms* algorithms;
  std::map<SweepId, Sweep> sweeps;
  std::map<std::string, Executor> executors;
  EventSeq last_seq{0};
  SweepId last_sweep{0};
  Epoch last_epoch{0};
  Incarnation last_incarnation{0};

  const Sweep* Find(SweepId id) const;
  const Trial* Find(const TrialId& id) const;
  const Sweep* FindByKey(const std::string& idempotency_key) const;
};

// Whether the executor should run this trial's live attempt (to its end, or to the step at which it
// leaves). REQUIRES: trial.live.
bool Wanted(const Trial& trial);

// Every attempt that an executor should run, in order of epoch.
std::vector<const Trial*> WantedOn(const State& state, const std::string& executor);

// The seed a trial's ranks get, below 2^53; the same for every attempt.
uint64_t SeedOf(const SweepSpec& spec, TrialNumber trial);

// Changes the state by one event. Cannot fail: events were checked before they were written.
// REQUIRES: event.seq follows state.last_seq.
void Apply(State& state, const Event& event);

}  // namespace attune
