#include "schedulers/register.h"

#include "schedulers/asha.h"
#include "schedulers/fifo.h"

namespace attune::schedulers {

void RegisterSchedulers(Algorithms& algorithms) {
  algorithms.Add(FifoEntry("fifo"));
  algorithms.Add(FifoEntry("none"));
  algorithms.Add(AshaEntry());
}

}  // namespace attune::schedulers
