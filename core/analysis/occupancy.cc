#include "core/analysis/occupancy.h"

#include <algorithm>

namespace attune {

Occupancy OccupancyOf(const std::vector<HeldSlots>& held, int cpus, int gpus, Time from, Time to) {
  Occupancy occupancy;
  for (int gpu = 0; gpu < gpus; ++gpu) occupancy.gpus.emplace(gpu, 0);
  const auto period_us = static_cast<double>(to.us - from.us);
  if (period_us <= 0) return occupancy;
  double cpu_share = 0;
  for (const HeldSlots& slots : held) {
    const auto held_us =
        static_cast<double>(std::min(slots.end, to).us - std::max(slots.begin, from).us);
    if (held_us <= 0) continue;
    for (const int gpu : slots.gpus) {
      if (const auto known = occupancy.gpus.find(gpu); known != occupancy.gpus.end())
        known->second += slots.gpu_share * held_us / period_us;
    }
    if (cpus > 0) cpu_share += slots.cpus * held_us / period_us / cpus;
  }
  double gpu_sum = 0;
  for (auto& [gpu, share] : occupancy.gpus) {
    share = std::min(share, 1.0);  // attempts of a process that has ended may overlap later ones
    gpu_sum += share;
  }
  occupancy.share = gpus > 0 ? gpu_sum / gpus : std::min(cpu_share, 1.0);
  return occupancy;
}

}  // namespace attune
