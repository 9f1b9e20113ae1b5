#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "core/algorithms/scheduler.h"

namespace attune::schedulers {

// A sweep as a scheduler sees it, in memory: each report is judged and then observed, as the brain
// does.
class SchedulerHarness {
 public:
  struct At {
    uint32_t trial;
    int64_t step;
  };

  template <class S>
  explicit SchedulerHarness(S scheduler, std::string metric = "accuracy")
      : scheduler_(std::make_unique<S>(std::move(scheduler))), metric_(std::move(metric)) {}

  SchedulerHarness& Report(At at, double value) { return Report(at, Metrics{{metric_, value}}); }

  SchedulerHarness& Report(At at, Metrics metrics) {
    const attune::Report report{.step = Step(at.step), .metrics = std::move(metrics)};
    const TrialId id(SweepId(1), TrialNumber(at.trial));
    Create(at.trial);
    verdict_ = scheduler_->Judge({id, config_}, report);
    Observe(TrialReported{{id, 1}, report});
    Observe(TrialDecided{{id, 1}, report.step, verdict_, Step(0)});
    if (verdict_.kind == VerdictKind::kPause) {
      Observe(AttemptEnded{{id, 1}, Outcome::kPaused, {}});
      paused_[id.number] = report.step;
    }
    return *this;
  }

  // Creates this trial and the trials before it, unless they exist.
  SchedulerHarness& Create(uint32_t trial) { return Create(trial, config_); }
  SchedulerHarness& Create(uint32_t trial, const Config& config) {
    for (; created_ <= trial; ++created_)
      Observe(TrialCreated{.trial = {SweepId(1), TrialNumber(created_)}, .config = config});
    return *this;
  }
  SchedulerHarness& Exhaust() {
    Observe(SearchExhausted{SweepId(1)});
    return *this;
  }
  SchedulerHarness& Save(At at, uint32_t attempt = 1) {
    const TrialId id(SweepId(1), TrialNumber(at.trial));
    Observe(CheckpointSaved{.attempt = {id, attempt}, .checkpoint = {.step = Step(at.step)}});
    return *this;
  }
  SchedulerHarness& Drop(const CheckpointId& checkpoint) {
    Observe(CheckpointDropped{.checkpoint = checkpoint});
    return *this;
  }

  // Asks what a free slot should do, and carries out a promotion.
  NextMove Next(bool may_create = true, int running = 0) {
    const NextMove move = scheduler_->Next({.paused = paused_,
                                            .running = running,
                                            .created = static_cast<int>(created_),
                                            .may_create = may_create});
    if (const auto* promote = std::get_if<Promote>(&move)) {
      EXPECT_EQ(paused_.erase(promote->trial), 1u) << "the trial is not paused";
      const TrialId id(SweepId(1), promote->trial);
      Observe(TrialPromoted{.trial = id,
                            .reason = promote->reason,
                            .config = promote->config,
                            .donor = promote->donor});
      Observe(AttemptAssigned{.attempt = {id, 2}});
    }
    return move;
  }
  // The trial that a free slot promotes; nullopt: none.
  std::optional<uint32_t> Promoted(bool may_create = true) {
    const NextMove move = Next(may_create);
    const auto* promote = std::get_if<Promote>(&move);
    if (promote == nullptr) return std::nullopt;
    promotion_ = promote->reason;
    return promote->trial.value;
  }
  const Reason& promotion() const { return promotion_; }

  // Ends the trial, as if a user had killed it.
  void End(uint32_t trial, TrialState state = TrialState::kKilled) {
    Create(trial);
    paused_.erase(TrialNumber(trial));
    Observe(TrialEnded{TrialId(SweepId(1), TrialNumber(trial)), state, "ended"});
  }
  void Adapt(const SweepSpec& spec) { scheduler_->Adapt(spec); }
  // Saves the scheduler, and loads the bytes into a new instance with the same options.
  template <class S>
  void Restore(S fresh) {
    ArchiveWriter bytes;
    scheduler_->Save(bytes);
    const std::string saved = bytes.Take();
    scheduler_ = std::make_unique<S>(std::move(fresh));
    ArchiveReader archive(saved);
    scheduler_->Load(archive);
    EXPECT_TRUE(archive.AtEnd());
  }

  // The size of the saved state.
  size_t Bytes() const {
    ArchiveWriter bytes;
    scheduler_->Save(bytes);
    return bytes.Take().size();
  }

  // The verdict on the last report.
  const Verdict& verdict() const { return verdict_; }
  const std::string& text() const { return verdict_.reason.text; }

  // The next milestone; 0: none.
  int64_t NextMilestone(At at) const {
    const TrialId id(SweepId(1), TrialNumber(at.trial));
    return scheduler_->NextMilestone({id, config_}, Step(at.step)).value_or(Step(0)).value;
  }

  std::vector<int64_t> Rungs() const {
    std::vector<int64_t> steps;
    for (const Step step : scheduler_->Rungs()) steps.push_back(step.value);
    return steps;
  }

 private:
  void Observe(Fact fact) {
    scheduler_->Observe(Event{EventSeq(++seq_), Time{static_cast<int64_t>(seq_)}, std::move(fact)});
  }

  std::unique_ptr<Scheduler> scheduler_;
  std::string metric_;
  Config config_;
  Verdict verdict_;
  std::map<TrialNumber, Step> paused_;
  Reason promotion_;
  uint32_t created_ = 0;
  uint64_t seq_ = 0;
};

inline auto Continues() { return ::testing::Field("kind", &Verdict::kind, VerdictKind::kContinue); }

inline auto Pauses() { return ::testing::Field("kind", &Verdict::kind, VerdictKind::kPause); }

// Matches a stop by this rule, in any bracket.
inline auto Stops(const std::string& rule) {
  return ::testing::AllOf(
      ::testing::Field("kind", &Verdict::kind, VerdictKind::kStop),
      ::testing::Field("reason", &Verdict::reason,
                       ::testing::Field("rule", &Reason::rule, ::testing::StartsWith(rule))));
}

}  // namespace attune::schedulers
