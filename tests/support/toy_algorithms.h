#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/algorithms/algorithms.h"

namespace attune::testing {

// Proposes x = trial number, up to a limit.
class CountingSearcher final : public Searcher {
 public:
  explicit CountingSearcher(uint32_t limit) : limit_(limit) {}
  std::optional<Config> Suggest(TrialNumber trial) const override {
    if (trial.value >= limit_) return std::nullopt;
    return Config{{"x", static_cast<int64_t>(trial.value)}};
  }
  void Observe(const Event&) override {}
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}

 private:
  uint32_t limit_;
};

// Judges every second step: stops below 0.5, pauses at exactly 0.5, and promotes the paused trial
// with the smallest number.
class EverySecondStep final : public Scheduler {
 public:
  Verdict Judge(const TrialView&, const Report& report) const override {
    const double value = report.metrics.begin()->second;
    Reason reason{.rule = "toy", .step = report.step, .value = value, .text = "judged"};
    if (value == 0.5) return Verdict::Pause(reason);
    return value < 0.5 ? Verdict::Stop(reason) : Verdict::Continue(reason);
  }
  std::optional<Step> NextMilestone(const TrialView&, Step after) const override {
    return Step(after.value / 2 * 2 + 2);
  }
  std::optional<TrialNumber> Promote() const override {
    if (paused_.empty()) return std::nullopt;
    return *paused_.begin();
  }
  void Observe(const Event& event) override {
    if (const auto* decided = std::get_if<TrialDecided>(&event.fact)) {
      if (decided->verdict.kind == VerdictKind::kPause && decided->verdict.reason.rule == "toy")
        paused_.insert(decided->attempt.trial.number);
    }
    if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact))
      paused_.erase(assigned->attempt.trial.number);
  }
  void Save(ArchiveWriter& archive) const override { archive(paused_); }
  void Load(ArchiveReader& archive) override { archive(paused_); }

 private:
  std::set<TrialNumber> paused_;
};

// Whoever waits with less than 1 becomes a clone of trial 0, with x = 999.
class Cloner final : public Scheduler {
 public:
  Verdict Judge(const TrialView& trial, const Report& report) const override {
    const Reason reason{.rule = "cloner", .step = report.step, .text = "judged"};
    if (trial.id.number == TrialNumber(0) || report.metrics.begin()->second >= 1)
      return Verdict::Continue(reason);
    return Verdict::Exploit(TrialNumber(0), {{"x", int64_t{999}}}, reason);
  }
  std::optional<Step> NextMilestone(const TrialView&, Step after) const override {
    return Step(after.value / 4 * 4 + 4);
  }
  void Observe(const Event&) override {}
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}
};

// "counting" proposes 1000 configurations, "three" three; "toy" is EverySecondStep, "cloner"
// Cloner.
inline Algorithms ToyAlgorithms() {
  Algorithms algorithms;
  for (const auto& [name, limit] : {std::pair("counting", 1000u), std::pair("three", 3u)}) {
    algorithms.Add(Entry<Searcher>{
        .name = name,
        .make = [limit = limit](const SweepSpec&) -> Result<std::unique_ptr<Searcher>> {
          return std::unique_ptr<Searcher>(std::make_unique<CountingSearcher>(limit));
        }});
  }
  algorithms.Add(Entry<Scheduler>{
      .name = "toy", .make = [](const SweepSpec&) -> Result<std::unique_ptr<Scheduler>> {
        return std::unique_ptr<Scheduler>(std::make_unique<EverySecondStep>());
      }});
  algorithms.Add(Entry<Scheduler>{
      .name = "cloner", .make = [](const SweepSpec&) -> Result<std::unique_ptr<Scheduler>> {
        return std::unique_ptr<Scheduler>(std::make_unique<Cloner>());
      }});
  return algorithms;
}

// Four trials of one worker with one CPU, six steps each.
inline SweepSpec ToySpec() {
  SweepSpec spec;
  spec.name = "toy";
  spec.program.command = {"/bin/true"};
  spec.objective = Maximise("score");
  spec.space = SearchSpace({{.name = "x", .domain = IntDomain{.min = 0, .max = 999}}});
  spec.searcher.name = "counting";
  spec.scheduler.name = "toy";
  spec.max_step = Step(6);
  spec.stop.max_trials = 4;
  spec.failure.backoff = Seconds(0);
  return spec;
}

}  // namespace attune::testing
