#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/result.h"
#include "cli/algorithms.h"
#include "core/brain/brain.h"
#include "core/state/snapshot.h"
#include "tests/conformance/seed.h"

namespace attune::conformance {

using cli::AllAlgorithms;

inline std::vector<std::string> SchedulerNames() {
  std::vector<std::string> names;
  for (const auto& entry : AllAlgorithms().schedulers()) names.push_back(entry.name);
  return names;
}

// Describes a sweep.
struct Plan {
  using Curve = std::function<double(uint32_t trial, int64_t step, const Config& config)>;

  std::string scheduler;
  std::map<std::string, Value, std::less<>> options = {};  // instead of the defaults
  int64_t max = 27;
  int trials = 12;
  int slots = 2;
  Curve loss;
  int64_t stride = 1;                                    // steps between two reports
  std::set<std::pair<uint32_t, int64_t>> failures = {};  // trial and step; each happens once
  std::set<std::pair<uint32_t, int64_t>> kills =
      {};                 // by a user; trial and step; each happens once
  bool saves = true;      // saves a checkpoint where it waits
  int restart_every = 0;  // number of reports between restarts of the server; 0: no restarts
  int others = 0;         // number of other sweeps at the same time
  uint64_t seed = 1;

  SweepSpec Spec() const {
    SweepSpec spec{.name = "whole",
                   .program = {.command = {"/bin/true"}},
                   .objectives = {Minimise("loss")},
                   .space = SearchSpace({{.name = "x", .domain = FloatDomain{.min = 1, .max = 2}}}),
                   .searcher = {.name = "random"},
                   .seed = seed,
                   .max_step = Step(max)};
    spec.scheduler = WithFallbacks(scheduler, AllAlgorithms().FindScheduler(scheduler)->options);
    for (const auto& [name, value] : options) spec.scheduler.options[name] = value;
    spec.failure = {.max_failed_trials = trials, .backoff = Seconds(0)};
    spec.checkpoint.keep_best = 0;  // so that only needed checkpoints are kept
    spec.stop.max_trials = trials;
    return spec;
  }
  std::vector<Step> Rungs() const { return (*AllAlgorithms().MakeScheduler(Spec()))->Rungs(); }
};

// Runs a sweep from start to end with the real brain and real algorithms. Gangs have one rank,
// follow their orders, and report one after another. Equal plans give equal logs.
class WholeSweep {
 public:
  explicit WholeSweep(Plan plan) : plan_(std::move(plan)) { Run(); }

  // Whether the sweep has not ended although nothing runs and nothing is due.
  bool hangs() const { return hangs_; }
  const std::vector<Event>& log() const { return log_; }
  // The log, including events of executors and of other sweeps.
  const std::vector<Event>& whole_log() const { return whole_log_; }

  template <class F>
  std::vector<F> FactsOf() const {
    std::vector<F> facts;
    for (const Event& event : log_) {
      if (const F* fact = std::get_if<F>(&event.fact)) facts.push_back(*fact);
    }
    return facts;
  }
  // The final states of the trials, by number.
  std::map<uint32_t, TrialState> Ends() const {
    std::map<uint32_t, TrialState> ends;
    for (const auto& fact : FactsOf<TrialEnded>()) ends[fact.trial.number.value] = fact.state;
    return ends;
  }
  int Count(TrialState state) const {
    int count = 0;
    for (const auto& [trial, end] : Ends()) count += end == state ? 1 : 0;
    return count;
  }
  // The furthest step of a trial.
  int64_t Furthest(uint32_t trial) const {
    int64_t furthest = 0;
    for (const auto& fact : FactsOf<TrialReported>()) {
      if (fact.attempt.trial.number.value == trial)
        furthest = std::max(furthest, fact.report.step.value);
    }
    return furthest;
  }
  // Describes every verdict and promotion of the sweep.
  std::vector<std::string> Decisions() const {
    std::vector<std::string> words;
    for (const Event& event : log_) {
      if (const auto* decided = std::get_if<TrialDecided>(&event.fact))
        words.push_back(ToString(decided->attempt.trial) + " " + decided->verdict.reason.text);
      if (const auto* promoted = std::get_if<TrialPromoted>(&event.fact))
        words.push_back(ToString(promoted->trial) + " " + promoted->reason.text);
      if (const auto* ended = std::get_if<SweepEnded>(&event.fact)) words.push_back(ended->reason);
    }
    return words;
  }

 private:
  static constexpr SweepId kId{1};

  void Run() {
    Execute(JoinExecutor{"box", "a", "", {.cpus = plan_.slots}});
    for (int sweep = 0; sweep <= plan_.others; ++sweep) {
      Plan other = plan_;
      other.seed += static_cast<uint64_t>(sweep);
      Execute(CreateSweep{.spec = other.Spec(), .source = ""});
    }
    while (brain_->state().Find(kId) != nullptr && !hangs_) {
      if (Turn()) continue;
      const auto due = brain_->Due(now_);
      hangs_ = !due;
      if (due) now_ = *due;
      Follow();
    }
  }

  // Lets each running gang take its next step. Returns false if no gang runs.
  bool Turn() {
    std::vector<TrialId> running;
    for (const auto& [sweep, state] : brain_->state().sweeps) {
      for (const TrialNumber trial : state.live) running.push_back({sweep, trial});
    }
    for (const TrialId& trial : running) ActOn(trial);
    return !running.empty();
  }

  void ActOn(const TrialId& which) {
    const Trial* trial = brain_->state().Find(which);
    if (trial == nullptr || !trial->live) return;
    const Attempt live = *trial->live;
    if (trial->state != TrialState::kRunning || live.verdict != VerdictKind::kContinue)
      return Tell(live, AttemptEnded{live.id, Outcome::kFinished, {}});
    const int64_t begin = live.resume ? live.resume->step.value : 0;
    const int64_t step = at_.try_emplace(live.epoch, begin).first->second += plan_.stride;
    const std::pair<uint32_t, int64_t> moment(which.number.value, step);
    if (which.sweep == kId && plan_.failures.erase(moment) > 0)
      return Tell(live, AttemptEnded{live.id, Outcome::kFailed, {.message = "it broke"}});
    if (which.sweep == kId && plan_.kills.erase(moment) > 0) return Execute(KillTrial{which});
    const bool waits =
        trial->yield_verdict || (trial->milestone.value > 0 && Step(step) >= trial->milestone);
    if (waits && plan_.saves)
      Tell(live, CheckpointSaved{live.id,
                                 {Step(step), ToString(live.id) + "/" + std::to_string(step), ""}});
    const double value = plan_.loss(which.number.value, step, trial->config);
    Tell(live, TrialReported{live.id, {Step(step), {{"loss", value}}, Seconds(0), waits}});
    if (plan_.restart_every > 0 && ++reports_ % plan_.restart_every == 0) Restart();
  }

  template <class F>
  void Tell(const Attempt& live, F fact) {
    Execute(RecordFact{live.epoch, std::move(fact)});
  }

  void Execute(const Command& command) {
    auto events = brain_->Execute(command, Tick());
    ASSERT_TRUE(events.ok()) << events.error().message;
    Keep(*std::move(events));
    Follow();
  }
  void Follow() { Keep(brain_->Advance(Tick())); }
  void Keep(std::vector<Event> events) {
    for (Event& event : events) {
      whole_log_.push_back(event);
      if (SweepOf(event.fact) == kId) log_.push_back(std::move(event));
    }
  }
  Time Tick() { return now_ = Time{now_.us + 1}; }

  void Restart() {
    auto again = MakeBrain();
    const Status loaded = again->Load(SaveState(brain_->state()));
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    brain_ = std::move(again);
  }
  static std::unique_ptr<Brain> MakeBrain() {
    return std::make_unique<Brain>(AllAlgorithms(), [](const std::string&) { return true; });
  }

  Plan plan_;
  std::vector<Event> log_;  // events of the sweep
  std::vector<Event> whole_log_;
  bool hangs_ = false;
  std::unique_ptr<Brain> brain_ = MakeBrain();
  std::map<Epoch, int64_t> at_;  // the current step of each gang
  Time now_;
  int reports_ = 0;
};

}  // namespace attune::conformance
