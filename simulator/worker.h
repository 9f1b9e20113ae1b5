#pragma once

#include <optional>

#include "core/base/ids.h"
#include "core/state/state.h"

namespace attune::simulate {

// The orders for a gang, apart from its configuration. proto/attune/v1/executor.proto has fields of
// the same names.
struct Orders {
  Step milestone{0};  // 0: none
  Step last{0};       // 0: the program decides when it ends
  Step every{0};      // steps between checkpoints; 0: only at milestones and at the end
  bool yields = false;
  Step verdict_step{0};  // step of the report that `verdict` answers
  VerdictKind verdict = VerdictKind::kContinue;
  bool operator==(const Orders&) const = default;
};

// REQUIRES: trial.live is set, and the trial belongs to this sweep.
Orders OrdersFor(const Sweep& sweep, const Trial& trial);

// Simulates rank 0 of a gang: it trains, reports, waits for verdicts and follows orders like the
// SDK (docs/reference/worker-channel.md).
class Worker {
 public:
  struct Reported {
    Step step;
    bool checkpoint = false;  // saved before the report
    bool waits = false;       // for the verdict on this report
  };

  // `from` is the step of the checkpoint that the worker resumes from; 0: none.
  explicit Worker(Step from = {}) : step_(from) {}

  // Trains one step, or until step `to`, and reports. REQUIRES: the worker neither waits nor has
  // left, and `to` is greater than its step.
  Reported Train(const Orders& orders) { return Train(orders, Step(step_.value + 1)); }
  Reported Train(const Orders& orders, Step to);

  // Applies the newest orders and returns whether the worker continues to train. It leaves at every
  // verdict except kContinue.
  bool FollowOrders(const Orders& orders);

  Step step() const { return step_; }
  bool waits() const { return waits_; }
  bool left() const { return left_; }

 private:
  Step step_;
  bool waits_ = false;
  bool left_ = false;
};

}  // namespace attune::simulate
