#include "core/space/objective.h"

#include <cmath>

namespace attune {

bool Objective::Better(double a, double b) const {
  if (!std::isfinite(a)) return false;
  if (!std::isfinite(b)) return true;
  return mode == Mode::kMax ? a > b : a < b;
}

}  // namespace attune
