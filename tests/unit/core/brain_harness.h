#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/brain/brain.h"
#include "tests/support/toy_algorithms.h"

namespace attune {

// A brain with a hand-ticked clock, one executor of two CPUs, and a log to replay.
class BrainTest : public ::testing::Test {
 protected:
  BrainTest() { Join("box", {.cpus = 2}); }

  // What a command leads to at once; nothing may be refused.
  std::vector<Event> Do(const Command& command) {
    auto events = brain.Execute(command, Tick());
    EXPECT_TRUE(events.ok()) << events.error().message;
    auto following = brain.Advance(Tick());
    events->insert(events->end(), following.begin(), following.end());
    log.insert(log.end(), events->begin(), events->end());
    return *events;
  }
  // Why a command is refused.
  Error Refused(const Command& command) {
    const auto events = brain.Execute(command, Tick());
    EXPECT_FALSE(events.ok());
    return events.ok() ? Error{} : events.error();
  }
  // What follows from time alone.
  std::vector<Event> Wait(double seconds) {
    now += static_cast<int64_t>(seconds * 1e6);
    auto events = brain.Advance(Tick());
    log.insert(log.end(), events.begin(), events.end());
    return events;
  }

  std::vector<Event> Join(const std::string& executor, Resources resources,
                          const std::string& instance = "a") {
    return Do(JoinExecutor{executor, instance, "127.0.0.1", resources});
  }
  // One that gangs can have a part on, with a data folder of its own unless another is given.
  std::vector<Event> JoinSpanning(const std::string& executor, Resources resources,
                                  const std::string& folder = "") {
    return Do(JoinExecutor{executor, "a", "127.0.0.1", resources, true, folder});
  }
  std::vector<Event> JoinWithFolder(const std::string& executor, Resources resources,
                                    const std::string& folder) {
    return Do(JoinExecutor{executor, "a", "127.0.0.1", resources, false, folder});
  }
  std::vector<Event> Lose(const std::string& executor) {
    return Do(LoseExecutor{executor, brain.state().executors.at(executor).incarnation, "silent"});
  }
  SweepId Create(SweepSpec spec) {
    Do(CreateSweep{.spec = std::move(spec), .source = "text"});
    return brain.state().last_sweep;
  }

  const Sweep& sweep() const { return sweep(brain.state().last_sweep); }
  const Sweep& sweep(SweepId id) const { return *brain.state().Find(id); }
  const Trial& trial(uint32_t number) const { return *sweep().Find(TrialNumber(number)); }
  SweepId id() const { return brain.state().last_sweep; }
  TrialId Id(uint32_t number) const { return {id(), TrialNumber(number)}; }

  // Also of what has left the brain.
  SweepState StateOf(SweepId id) const {
    const Sweep* open = brain.state().Find(id);
    return open != nullptr ? open->state : brain.state().ended.at(id).state;
  }
  TrialState StateOf(uint32_t number) const {
    const Sweep* open = brain.state().Find(id());
    if (open != nullptr && open->Find(TrialNumber(number)) != nullptr) return trial(number).state;
    return Last<TrialEnded>([&](const TrialEnded& fact) { return fact.trial == Id(number); }).state;
  }
  // How the sweep created last has ended.
  SweepEnded Ending() const {
    return Last<SweepEnded>([&](const SweepEnded& fact) { return fact.sweep == id(); });
  }

  // An executor's word about the trial's live attempt.
  template <class F>
  std::vector<Event> Tell(uint32_t number, F fact, const std::string& executor = "") {
    const Attempt& live = *trial(number).live;
    fact.attempt = live.id;
    return Do(RecordFact{.epoch = live.epoch, .fact = fact, .executor = executor});
  }
  std::vector<Event> Report(uint32_t number, int64_t step, double score, bool waits = false) {
    return Tell(number,
                TrialReported{.report = {Step(step), {{"score", score}}, Seconds(0), waits}});
  }
  std::vector<Event> Save(uint32_t number, int64_t step) {
    return Tell(number, CheckpointSaved{.checkpoint = {Step(step), Path(number, step), "sha256:"}});
  }
  std::string Path(uint32_t number, int64_t step) const {
    return "/" + std::to_string(number) + "/" + std::to_string(step);
  }
  std::vector<Event> Fail(uint32_t number, FailureKind kind = FailureKind::kExit) {
    return Tell(number, AttemptEnded{.outcome = Outcome::kFailed,
                                     .failure = {.kind = kind, .rank = 1, .message = "it broke"}});
  }
  std::vector<Event> Finish(uint32_t number) {
    return Tell(number, AttemptEnded{.outcome = Outcome::kFinished});
  }

  // What the store would say of a trial that has ended.
  TrialRecord RecordOf(uint32_t number, Step last_step,
                       std::vector<KeptCheckpoint> checkpoints = {}) const {
    return {.id = Id(number),
            .config = {{"x", static_cast<int64_t>(number)}},
            .state = StateOf(number),
            .attempts = 1,
            .last_step = last_step,
            .checkpoints = std::move(checkpoints),
            .seen = brain.state().last_seq};
  }

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
  Reachable reachable;  // while they are connected; empty: all are
  Brain brain{algorithms, [this](const std::string& executor) {
                return connected && (!reachable || reachable(executor));
              }};
  std::vector<Event> log;
};

}  // namespace attune
