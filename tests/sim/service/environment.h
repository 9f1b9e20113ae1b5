#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "attune/v1/executor.pb.h"
#include "core/base/random.h"
#include "core/space/value.h"
#include "simulator/timeline.h"
#include "tests/sim/checkers/reality.h"
#include "tests/sim/endings.h"
#include "tests/sim/plan.h"
#include "tests/sim/service/network.h"
#include "tests/sim/variant.h"

namespace attune::sim {

// Observes when an executor relies on an answer of the server, to check the answer.
class Witness {
 public:
  virtual ~Witness() = default;
  virtual void OnAcknowledged(const std::string& executor, const v1::Fact& fact) = 0;
  virtual void OnAssigned(const v1::Assignment& assignment) = 0;
};

// The parts of the world that a host uses.
struct Environment {
  simulate::Timeline& timeline;
  RandomStream& random;
  Network& network;
  Reality& reality;
  Witness& witness;
  const FaultRates& faults;
  int64_t step_us;
  std::function<double(const TrialId&, const Config&, Step)> value;
  std::function<std::optional<Ending>(const TrialId&)> ending;
  Variant variant;

  bool Happens(double probability) const {
    return probability > 0 && random.Uniform() < probability;
  }
};

}  // namespace attune::sim
