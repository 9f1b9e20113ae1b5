#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/brain/brain.h"
#include "tests/support/toy_algorithms.h"

namespace attune {

// A brain with a manual clock, one executor with two CPUs, and a log to replay.
class BrainTest : public ::testing::Test {
 protected:
  BrainTest();
  ~BrainTest() override;

  // Executes a command and returns its facts. The command must succeed.
  std::vector<Event> Do(const Command& command);
  // Returns the error of a command that must be refused.
  Error RefusalOf(const Command& command);
  // Lets time pass and returns the facts that follow.
  std::vector<Event> Wait(double seconds);

  std::vector<Event> Join(const std::string& executor, Resources resources,
                          const std::string& instance = "a");
  // Adds an executor that gangs can span. By default it has a separate data folder.
  std::vector<Event> JoinSpanning(const std::string& executor, Resources resources,
                                  const std::string& folder = "");
  std::vector<Event> JoinWithFolder(const std::string& executor, Resources resources,
                                    const std::string& folder);
  std::vector<Event> Lose(const std::string& executor);
  SweepId Create(SweepSpec spec);

  const Sweep& sweep() const { return sweep(brain.state().last_sweep); }
  const Sweep& sweep(SweepId id) const { return *brain.state().Find(id); }
  const Trial& trial(uint32_t number) const { return *sweep().Find(TrialNumber(number)); }
  SweepId id() const { return brain.state().last_sweep; }
  TrialId Id(uint32_t number) const { return {id(), TrialNumber(number)}; }

  // Also counts trials that have left the state.
  SweepState StateOf(SweepId id) const;
  TrialState StateOf(uint32_t number) const;
  // Returns the SweepEnded event of the newest sweep.
  SweepEnded DescribeEnding() const;

  // A message of an executor about the trial's live attempt.
  template <class F>
  std::vector<Event> Tell(uint32_t number, F fact, const std::string& executor = "") {
    const Attempt& live = *trial(number).live;
    fact.attempt = live.id;
    return Do(RecordFact{.epoch = live.epoch, .fact = fact, .executor = executor});
  }
  std::vector<Event> Report(uint32_t number, int64_t step, double score, bool waits = false);
  std::vector<Event> Save(uint32_t number, int64_t step);
  // Saves a checkpoint and reports its step.
  std::vector<Event> SaveAndReport(uint32_t number, int64_t step);
  std::string Path(uint32_t number, int64_t step) const;
  std::vector<Event> Fail(uint32_t number, FailureKind kind = FailureKind::kExit);
  std::vector<Event> Finish(uint32_t number);

  // Makes the record of an ended trial, like the store.
  TrialRecord RecordOf(uint32_t number, Step last_step,
                       std::vector<KeptCheckpoint> checkpoints = {}) const;

  Time Tick() { return Time{++now}; }

  template <class F>
  static const F* Find(const std::vector<Event>& events) {
    for (const Event& event : events) {
      if (const F* fact = std::get_if<F>(&event.fact)) return fact;
    }
    return nullptr;
  }
  template <class F, class Which>
  F Last(const Which& which) const {
    for (auto event = log.rbegin(); event != log.rend(); ++event) {
      if (const F* fact = std::get_if<F>(&event->fact); fact != nullptr && which(*fact))
        return *fact;
    }
    ADD_FAILURE() << "there is no such fact in the log";
    return {};
  }

  int64_t now = 0;
  const Algorithms algorithms = testing::ToyAlgorithms();
  bool connected = true;
  Reachable reachable;  // null: all executors are reachable
  Brain brain{algorithms, [this](const std::string& executor) {
                if (!connected) return Reach(false);
                return reachable ? reachable(executor) : Reach(true);
              }};
  std::vector<Event> log;
};

}  // namespace attune
