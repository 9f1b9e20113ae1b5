#include "schedulers/fifo.h"

#include "base/result.h"

namespace attune::schedulers {

Verdict Fifo::Judge(const TrialView&, const Report& report) const {
  return Verdict::Continue(Reason{.rule = "fifo",
                                  .step = report.step,
                                  .text = "continues at step " + std::to_string(report.step.value) +
                                          ": fifo runs every trial to its end"});
}

Entry<Scheduler> FifoEntry(std::string name) {
  return {.name = std::move(name),
          .help = "Runs every trial to its end",
          .options = {},
          .make = [](const SweepSpec&) -> Result<std::unique_ptr<Scheduler>> {
            return {std::make_unique<Fifo>()};
          }};
}

}  // namespace attune::schedulers
