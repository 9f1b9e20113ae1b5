#include "schedulers/register.h"

#include "schedulers/asha.h"
#include "schedulers/fifo.h"
#include "schedulers/hyperband.h"
#include "schedulers/pbt.h"
#include "schedulers/percentile.h"

namespace attune::schedulers {

void RegisterSchedulers(Algorithms& algorithms) {
  algorithms.Add(FifoEntry("fifo"));
  algorithms.Add(FifoEntry("none"));
  algorithms.Add(AshaEntry());
  algorithms.Add(HyperBandEntry());
  algorithms.Add(MedianEntry());
  algorithms.Add(PbtEntry());
  algorithms.Add(PercentileEntry());
}

}  // namespace attune::schedulers
