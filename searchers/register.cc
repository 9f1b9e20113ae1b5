#include "searchers/register.h"

#include "searchers/auto.h"
#include "searchers/bohb.h"
#include "searchers/cmaes.h"
#include "searchers/evolution.h"
#include "searchers/gp.h"
#include "searchers/grid.h"
#include "searchers/nsga2.h"
#include "searchers/random.h"
#include "searchers/sobol.h"
#include "searchers/tpe.h"

namespace attune::searchers {

void RegisterSearchers(Algorithms& algorithms) {
  algorithms.Add(AutoEntry());
  algorithms.Add(RandomEntry());
  algorithms.Add(GridEntry());
  algorithms.Add(SobolEntry());
  algorithms.Add(TpeEntry());
  algorithms.Add(BohbEntry());
  algorithms.Add(CmaesEntry());
  algorithms.Add(EvolutionEntry());
  algorithms.Add(GpEntry());
  algorithms.Add(Nsga2Entry());
}

}  // namespace attune::searchers
