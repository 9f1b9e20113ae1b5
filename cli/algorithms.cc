#include "cli/algorithms.h"

#include "schedulers/register.h"
#include "searchers/register.h"

namespace attune::cli {

const Algorithms& AllAlgorithms() {
  static const Algorithms algorithms = [] {
    Algorithms all;
    searchers::RegisterSearchers(all);
    schedulers::RegisterSchedulers(all);
    return all;
  }();
  return algorithms;
}

}  // namespace attune::cli
