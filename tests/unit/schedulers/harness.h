#pragma once

#include <cstdint>
#include <memory>
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
    verdict_ = scheduler_->Judge({id, config_}, report);
    Observe(TrialReported{{id, 1}, report});
    Observe(TrialDecided{{id, 1}, report.step, verdict_, Step(0)});
    return *this;
  }

  // The verdict on the last report.
  const Verdict& verdict() const { return verdict_; }
  const std::string& text() const { return verdict_.reason.text; }

  // 0: none.
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
  uint64_t seq_ = 0;
};

inline auto Continues() { return ::testing::Field("kind", &Verdict::kind, VerdictKind::kContinue); }

inline auto Stops(const std::string& rule) {
  return ::testing::AllOf(
      ::testing::Field("kind", &Verdict::kind, VerdictKind::kStop),
      ::testing::Field("reason", &Verdict::reason,
                       ::testing::Field("rule", &Reason::rule, ::testing::Eq(rule))));
}

}  // namespace attune::schedulers
