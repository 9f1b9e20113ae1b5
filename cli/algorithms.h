#pragma once

#include "core/algorithms/algorithms.h"
#include "schedulers/register.h"
#include "searchers/register.h"

namespace attune::cli {

// The searchers and schedulers that come with Attune. They live as long as the process.
inline const Algorithms& AllAlgorithms() {
  static const Algorithms algorithms = [] {
    Algorithms all;
    searchers::RegisterSearchers(all);
    schedulers::RegisterSchedulers(all);
    return all;
  }();
  return algorithms;
}

}  // namespace attune::cli
