#pragma once

#include "core/log/sweep_spec.h"

namespace attune {

// A sweep of two parameters with random search, no early stopping, and a last step that no
// benchmark reaches.
inline SweepSpec BenchSweep() {
  SweepSpec spec;
  spec.name = "bench";
  spec.program.command = {"/bin/true"};
  spec.objectives = {Minimise("loss")};
  spec.space = SearchSpace(
      {{.name = "lr", .domain = FloatDomain{.min = 1e-5, .max = 0.1, .scale = Scale::kLog}},
       {.name = "layers", .domain = IntDomain{.min = 2, .max = 8}}});
  spec.searcher.name = "random";
  spec.scheduler.name = "fifo";
  spec.max_step = Step(1'000'000'000);
  return spec;
}

}  // namespace attune
