#pragma once

#include <map>
#include <vector>

#include "core/base/ids.h"

namespace attune {

// A time in which a gang held slots of one executor.
struct HeldSlots {
  Time begin;
  Time end;  // now, if the gang still holds them
  int cpus = 0;
  std::vector<int> gpus;  // indices of the executor's GPUs
  double gpu_share = 1;   // the share of each GPU: 0.25 is a quarter
};

// How busy an executor was: the share of a time in which gangs held its slots, from 0 to 1.
struct Occupancy {
  double share = 0;            // of all its slots
  std::map<int, double> gpus;  // of each GPU, by index
};

// The occupancy of an executor with this many CPUs and GPUs between two times. With GPUs, its slots
// are the GPUs; else they are its CPUs. A gang with a part of a GPU holds only that part. An empty
// period has the share 0.
Occupancy OccupancyOf(const std::vector<HeldSlots>& held, int cpus, int gpus, Time from, Time to);

}  // namespace attune
