#include "searchers/register.h"

#include "searchers/grid.h"
#include "searchers/random.h"

namespace attune::searchers {

void RegisterSearchers(Algorithms& algorithms) {
  algorithms.Add(RandomEntry());
  algorithms.Add(GridEntry());
}

}  // namespace attune::searchers
