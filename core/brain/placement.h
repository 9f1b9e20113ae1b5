#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/log/event.h"
#include "core/log/sweep_spec.h"

namespace attune {

// What one executor has left.
struct Host {
  std::string name;
  Resources total;
  int cpus_free = 0;
  int64_t memory_free = 0;
  std::vector<int> gpus_free;  // indices, ascending

  Resources Free() const { return {cpus_free, static_cast<int>(gpus_free.size()), memory_free}; }
};

// What all ranks of a gang occupy together.
Resources TotalOf(const GangSpec& gang);

// Whether each amount of the one is within the other's.
bool Within(const Resources& need, const Resources& room);

// Slots for every rank of a gang, or the reason why there are none now: "needs 8 GPUs: n3 has 6
// free, n5 has 2 free".
//
// All or nothing, on a single executor: the one that it fills best (kPack) or the one with most
// left (kSpread), GPUs before CPUs before memory; ties go to the name that sorts first. GPUs are
// whole and of one rank only.
std::variant<std::vector<RankSlot>, std::string> Place(const GangSpec& gang,
                                                       const std::vector<Host>& hosts);

// The executor that is nearest to having room for a gang that does not fit now; null when none is
// large enough for it.
const Host* Nearest(const GangSpec& gang, const std::vector<Host>& hosts);

}  // namespace attune
