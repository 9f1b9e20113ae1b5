#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/algorithms/scheduler.h"
#include "core/log/fields.h"
#include "core/space/objective.h"
#include "searchers/random.h"

namespace attune::sim {

// Successive halving with pauses: pauses each trial at every power of two, and promotes the trials
// in the better half of those that reached the same rung.
class PausingHalving final : public Scheduler {
 public:
  explicit PausingHalving(Objective objective) : objective_(std::move(objective)) {}

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
  // Promotes from the highest rung first.
  NextMove Next(const SweepView& view) const override {
    for (auto rung = rungs_.rbegin(); rung != rungs_.rend(); ++rung) {
      const auto& [step, values] = *rung;
      for (const auto& [trial, value] : values) {
        if (!paused_.contains({step, trial}) || !view.paused.contains(trial)) continue;
        int64_t better = 0;
        for (const auto& [other, other_value] : values)
          better += objective_.Better(other_value, value);
        if (better >= (std::ssize(values) + 1) / 2) continue;
        return Promote{.trial = trial,
                       .reason = {.rule = "halving",
                                  .rung = step,
                                  .value = value,
                                  .rank = better + 1,
                                  .peers = std::ssize(values),
                                  .text = "is in the better half"}};
      }
    }
    return StartNew{};
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
  void Adapt(const SweepSpec& spec) override { objective_ = spec.objective(); }
  void Save(ArchiveWriter& archive) const override { archive(rungs_, paused_); }
  void Load(ArchiveReader& archive) override { archive(rungs_, paused_); }

 private:
  static Step RungOf(Step step) {  // the largest power of two up to this step
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

// Population-based training without perturbation: at every second step, the worst trial takes over
// the newest checkpoint and the configuration of the best trial. That checkpoint may be from an
// earlier step, so each trial does this only a few times.
class ExploitScheduler final : public Scheduler {
 public:
  static constexpr int kMaxCopies = 3;

  explicit ExploitScheduler(Objective objective) : objective_(std::move(objective)) {}

  Verdict Judge(const TrialView& trial, const Report& report) const override {
    const auto metric = report.metrics.find(objective_.metric);
    Reason reason{.rule = "exploiting",
                  .step = report.step,
                  .value = metric == report.metrics.end() ? std::numeric_limits<double>::quiet_NaN()
                                                          : metric->second,
                  .peers = std::ssize(values_),
                  .text = "continues"};
    bool worst = true;
    for (const auto& [other, value] : values_) {
      if (other != trial.id.number && objective_.Worse(value, reason.value)) worst = false;
    }
    const auto best = Best(trial.id.number);
    const auto copies = copies_.find(trial.id.number);
    const bool exhausted = copies != copies_.end() && copies->second == kMaxCopies;
    const bool copy = best && worst && !exhausted && values_.size() > 2 &&
                      objective_.Better(values_.at(*best), reason.value);
    if (!copy) return Verdict::Continue(reason);
    reason.text = "copies trial " + std::to_string(best->value);
    return Verdict::Exploit(newest_.at(*best), configs_.at(*best), reason);
  }
  std::optional<Step> NextMilestone(const TrialView&, Step after) const override {
    return Step(after.value / 2 * 2 + 2);
  }
  const std::set<CheckpointId>& Retained() const override { return retained_; }
  void Observe(const Event& event) override {
    if (const auto* created = std::get_if<TrialCreated>(&event.fact))
      configs_[created->trial.number] = created->config;
    if (const auto* saved = std::get_if<CheckpointSaved>(&event.fact))
      newest_[saved->attempt.trial.number] = {saved->attempt.trial, saved->attempt.number,
                                              saved->checkpoint.step};
    if (const auto* dropped = std::get_if<CheckpointDropped>(&event.fact)) {
      const auto newest = newest_.find(dropped->checkpoint.trial.number);
      if (newest != newest_.end() && newest->second == dropped->checkpoint) newest_.erase(newest);
    }
    if (const auto* decided = std::get_if<TrialDecided>(&event.fact)) {
      const TrialNumber trial = decided->attempt.trial.number;
      if (decided->verdict.kind == VerdictKind::kExploit) {
        configs_[trial] = decided->verdict.config;
        ++copies_[trial];
      }
      if (decided->verdict.reason.rule == "exploiting")
        values_[trial] = decided->verdict.reason.value;
    }
    if (std::holds_alternative<TrialReported>(event.fact)) return;
    retained_.clear();
    if (const auto best = Best(std::nullopt)) retained_.insert(newest_.at(*best));
  }
  void Adapt(const SweepSpec& spec) override { objective_ = spec.objective(); }
  void Save(ArchiveWriter& archive) const override {
    archive(values_, newest_, retained_, copies_, configs_);
  }
  void Load(ArchiveReader& archive) override {
    archive(values_, newest_, retained_, copies_, configs_);
  }

 private:
  // The best trial with a checkpoint and a finite value, except `except`.
  std::optional<TrialNumber> Best(std::optional<TrialNumber> except) const {
    std::optional<TrialNumber> best;
    for (const auto& [trial, value] : values_) {
      if (trial == except || !newest_.contains(trial) || !std::isfinite(value)) continue;
      if (!best || objective_.Better(value, values_.at(*best))) best = trial;
    }
    return best;
  }

  Objective objective_;
  std::map<TrialNumber, double> values_;        // value of each trial at its newest decision
  std::map<TrialNumber, CheckpointId> newest_;  // newest checkpoint of each trial
  std::set<CheckpointId> retained_;             // the best trial's newest checkpoint
  std::map<TrialNumber, int> copies_;           // number of copies of each trial
  std::map<TrialNumber, Config> configs_;
};

// A searcher whose proposals take time and depend on the number of reports and ended trials that it
// has observed. Some proposals wait for the next report.
class SlowSearcher final : public Searcher {
 public:
  explicit SlowSearcher(const SweepSpec& spec) : random_(spec.space, spec.seed) {}

  bool NeedsThread() const override { return true; }
  Suggestion Suggest(ProposalNumber proposal) const override {
    if ((proposal.value + observed_) % 5 == 4) return Wait{"waits for more reports"};
    return random_.Suggest(ProposalNumber(proposal.value + 1'000 * observed_));
  }
  void Observe(const Event& event) override {
    observed_ += std::holds_alternative<TrialReported>(event.fact) ||
                 std::holds_alternative<TrialEnded>(event.fact);
  }
  void Adapt(const SweepSpec& spec) override { random_.Adapt(spec); }
  void Save(ArchiveWriter& archive) const override { archive(observed_); }
  void Load(ArchiveReader& archive) override { archive(observed_); }

 private:
  searchers::Random random_;
  uint32_t observed_ = 0;
};

}  // namespace attune::sim
