#pragma once

#include "core/algorithms/algorithms.h"
#include "schedulers/register.h"
#include "searchers/register.h"

namespace attune::benchmarks {

// The searchers and schedulers of Attune.
inline const Algorithms& AllAlgorithms() {
  static const Algorithms algorithms = [] {
    Algorithms all;
    searchers::RegisterSearchers(all);
    schedulers::RegisterSchedulers(all);
    return all;
  }();
  return algorithms;
}

}  // namespace attune::benchmarks
