#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/event.h"
#include "core/sweep_spec.h"

namespace attune {

// What one executor has left.
struct Host {
  std::string name;
  Resources total;
  int cpus_free = 0;
  int64_t memory_free = 0;
  std::vector<int> gpus_free;  // indices, ascending
};

// Slots for every rank of a gang, or the reason why there are none now.
//
// All or nothing. A gang is placed on a single executor, on the one that it fills best, so that
// large holes stay whole; ties go to the name that sorts first. GPUs are whole and of one rank
// only.
std::variant<std::vector<RankSlot>, std::string> Place(const GangSpec& gang,
                                                       const std::vector<Host>& hosts);

}  // namespace attune
