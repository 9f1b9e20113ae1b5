#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/algorithms/scheduler.h"
#include "core/space/objective.h"

namespace attune::sim {

// Successive halving that pauses: at every power of two a trial is paused, and whoever is in the
// better half of those that came as far may go on.
class Halving final : public Scheduler {
 public:
  explicit Halving(Objective objective) : objective_(std::move(objective)) {}

  Verdict Judge(const TrialView&, const Report& report) const override {
    return Verdict::Pause(Reason{.rule = "halving",
                                 .step = report.step,
                                 .rung = RungOf(report.step),
                                 .value = ValueOf(report),
                                 .text = "waits until it is in the better half"});
  }
  std::optional<Step> NextMilestone(const TrialView&, Step after) const override {
    return Step(RungOf(after).value * 2);
  }
  // Of the furthest first.
  std::optional<TrialNumber> Promote() const override {
    for (auto rung = rungs_.rbegin(); rung != rungs_.rend(); ++rung) {
      const auto& [step, values] = *rung;
      for (const auto& [trial, value] : values) {
        if (!paused_.contains({step, trial})) continue;
        size_t better = 0;
        for (const auto& [other, others] : values) better += objective_.Better(others, value);
        if (better < (values.size() + 1) / 2) return trial;
      }
    }
    return std::nullopt;
  }
  void Observe(const Event& event) override {
    if (const auto* decided = std::get_if<TrialDecided>(&event.fact)) {
      const Reason& reason = decided->verdict.reason;
      if (reason.rule != "halving") return;
      const TrialNumber trial = decided->attempt.trial.number;
      rungs_[reason.rung][trial] = reason.value;
      paused_.insert({reason.rung, trial});
    }
    if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact))
      Forget(assigned->attempt.trial.number);
    if (const auto* ended = std::get_if<TrialEnded>(&event.fact)) Forget(ended->trial.number);
  }
  void Save(ArchiveWriter& archive) const override { archive(rungs_, paused_); }
  void Load(ArchiveReader& archive) override { archive(rungs_, paused_); }

 private:
  static Step RungOf(Step step) {  // the last power of two at or before it
    int64_t rung = 1;
    while (rung * 2 <= step.value) rung *= 2;
    return Step(rung);
  }
  double ValueOf(const Report& report) const {
    const auto found = report.metrics.find(objective_.metric);
    return found == report.metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  }
  void Forget(TrialNumber trial) {
    std::erase_if(paused_, [trial](const auto& entry) { return entry.second == trial; });
  }

  Objective objective_;
  std::map<Step, std::map<TrialNumber, double>> rungs_;
  std::set<std::pair<Step, TrialNumber>> paused_;
};

// Population-based training without its perturbation: every second step, the worst of the trials
// takes over the checkpoint and the configuration of the best. That may lie behind it, so each does
// it a few times only.
class Exploiting final : public Scheduler {
 public:
  static constexpr int kMostFollowed = 3;

  explicit Exploiting(Objective objective) : objective_(std::move(objective)) {}

  Verdict Judge(const TrialView& trial, const Report& report) const override {
    const auto metric = report.metrics.find(objective_.metric);
    Reason reason{.rule = "exploiting",
                  .step = report.step,
                  .value = metric == report.metrics.end() ? std::numeric_limits<double>::quiet_NaN()
                                                          : metric->second,
                  .peers = std::ssize(values_),
                  .text = "goes on"};
    const std::map<TrialNumber, double>::value_type* best = nullptr;
    bool worst = true;
    for (const auto& entry : values_) {
      if (entry.first == trial.id.number) continue;
      if (best == nullptr || objective_.Better(entry.second, best->second)) best = &entry;
      if (objective_.Worse(entry.second, reason.value)) worst = false;
    }
    const auto followed = followed_.find(trial.id.number);
    const bool tired = followed != followed_.end() && followed->second == kMostFollowed;
    const bool follows = best != nullptr && worst && !tired && values_.size() > 2 &&
                         objective_.Better(best->second, reason.value) &&
                         std::isfinite(best->second);
    if (!follows) return Verdict::Continue(reason);
    reason.text = "follows trial " + std::to_string(best->first.value);
    return Verdict::Exploit(best->first, configs_.at(best->first), reason);
  }
  std::optional<Step> NextMilestone(const TrialView&, Step after) const override {
    return Step(after.value / 2 * 2 + 2);
  }
  void Observe(const Event& event) override {
    if (const auto* created = std::get_if<TrialCreated>(&event.fact))
      configs_[created->trial.number] = created->config;
    if (const auto* saved = std::get_if<CheckpointSaved>(&event.fact))
      saved_.insert(saved->attempt.trial.number);
    if (const auto* decided = std::get_if<TrialDecided>(&event.fact)) {
      const TrialNumber trial = decided->attempt.trial.number;
      if (decided->verdict.kind == VerdictKind::kExploit) {
        configs_[trial] = decided->verdict.config;
        ++followed_[trial];
      }
      if (decided->verdict.reason.rule == "exploiting" && saved_.contains(trial))
        values_[trial] = decided->verdict.reason.value;
    }
  }
  void Save(ArchiveWriter& archive) const override {
    archive(values_, saved_, followed_, configs_.size());
    for (const auto& [trial, config] : configs_) archive(trial, config.entries());
  }
  void Load(ArchiveReader& archive) override {
    size_t count = 0;
    archive(values_, saved_, followed_, count);
    for (; archive.ok() && count > 0; --count) {
      TrialNumber trial;
      std::vector<Config::Entry> entries;
      archive(trial, entries);
      for (auto& [name, value] : entries) configs_[trial].Set(name, value);
    }
  }

 private:
  Objective objective_;
  std::map<TrialNumber, double> values_;  // at their newest decision
  std::set<TrialNumber> saved_;           // those with a checkpoint
  std::map<TrialNumber, int> followed_;   // how often
  std::map<TrialNumber, Config> configs_;
};

}  // namespace attune::sim
