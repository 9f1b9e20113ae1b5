#include "schedulers/register.h"

#include "schedulers/asha.h"
#include "schedulers/fifo.h"
#include "schedulers/hyperband.h"
#include "schedulers/pbt.h"
#include "schedulers/pbt_replay.h"
#include "schedulers/percentile.h"

namespace attune::schedulers {

void RegisterSchedulers(Algorithms& algorithms) {
  algorithms.Add(FifoEntry("fifo"));
  algorithms.Add(FifoEntry("none"));
  algorithms.Add(AshaEntry());
  algorithms.Add(ExtrapolateEntry());
  algorithms.Add(HyperBandEntry());
  algorithms.Add(MedianEntry());
  algorithms.Add(PashaEntry());
  algorithms.Add(Pb2Entry());
  algorithms.Add(PbtEntry());
  algorithms.Add(PbtReplayEntry());
  algorithms.Add(PercentileEntry());
}

}  // namespace attune::schedulers
