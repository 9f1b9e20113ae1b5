#include "simulator/worker.h"

#include <utility>

#include "base/check.h"

namespace attune::simulate {

Orders OrdersFor(const Sweep& sweep, const Trial& trial) {
  return {.milestone = trial.milestone,
          .last = LastStep(sweep, trial),
          .every = sweep.spec.checkpoint.every,
          .yields = trial.yield_verdict.has_value(),
          .verdict_step = trial.live->verdict_step,
          .verdict = trial.live->verdict};
}

Worker::Reported Worker::Train(const Orders& orders, Step to) {
  ATTUNE_CHECK(!waits_ && !left_ && to > step_);
  const Step before = std::exchange(step_, to);
  const auto reached = [this](Step step) { return step.value > 0 && step_ >= step; };
  waits_ = orders.yields || reached(orders.milestone) || reached(orders.last);
  const int64_t every = orders.every.value;
  const bool due = every > 0 && step_.value / every > before.value / every;
  return {.step = step_, .checkpoint = waits_ || due, .waits = waits_};
}

bool Worker::FollowOrders(const Orders& orders) {
  if (!waits_ || orders.verdict_step != step_) return !waits_ && !left_;
  waits_ = false;
  left_ = orders.verdict != VerdictKind::kContinue;
  return !left_;
}

}  // namespace attune::simulate
