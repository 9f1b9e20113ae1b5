#pragma once

#include <optional>

#include "core/base/ids.h"
#include "core/state/state.h"

namespace attune::simulate {

// What a gang is told beside its configuration: the fields of the same names in
// proto/attune/v1/executor.proto.
struct Orders {
  Step milestone{0};  // 0: none
  Step last{0};       // 0: the program ends itself
  Step every{0};      // between checkpoints; 0: at milestones and at the end
  bool yields = false;
  Step verdict_step{0};  // of the report that `verdict` answers
  VerdictKind verdict = VerdictKind::kContinue;
  bool operator==(const Orders&) const = default;
};

// REQUIRES: trial.live, and the trial is of this sweep.
Orders OrdersFor(const Sweep& sweep, const Trial& trial);

// What rank 0 does at each step and at each word from the server, as the SDK does it
// (docs/reference/worker-channel.md).
class Worker {
 public:
  struct Said {
    Step step;
    bool checkpoint = false;  // saved before the report
    bool waits = false;
  };

  // `from` is the step of the checkpoint it goes on from; 0: none.
  explicit Worker(Step from = {}) : step_(from) {}

  // Trains as far as its next report, one more step or up to `to`. REQUIRES: it neither waits nor
  // has left, and `to` lies behind its step.
  Said Train(const Orders& orders) { return Train(orders, Step(step_.value + 1)); }
  Said Train(const Orders& orders, Step to);

  // Whether it trains on now. It leaves at a verdict that is not continue.
  bool Obey(const Orders& orders);

  Step step() const { return step_; }
  bool waits() const { return waits_; }
  bool left() const { return left_; }

 private:
  Step step_;
  bool waits_ = false;
  bool left_ = false;
};

}  // namespace attune::simulate
