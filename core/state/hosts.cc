#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "core/state/placement.h"

namespace attune {
namespace {

constexpr int kNone = std::numeric_limits<int>::min();
constexpr int64_t kNoMemory = std::numeric_limits<int64_t>::min();

}  // namespace

Hosts::Hosts(const std::vector<Host>& hosts) {
  for (const Host& host : hosts) Update(host);
}

bool Hosts::Update(const Host& host) {
  const Resources resources = host.FreeResources();
  int most = resources.gpus > 0 ? 100 : 0;
  for (const auto& [gpu, percent] : host.shared) most = std::max(most, percent);
  FreeAmounts free{resources.gpus, resources.cpus, resources.memory_bytes, host.name};
  if (host.spans) {
    spanning_.insert(host.name);
  } else {
    spanning_.erase(host.name);
  }
  const auto found = entries_.find(host.name);
  if (found == entries_.end()) {
    by_free_.insert(free);
    entries_.emplace(host.name, Entry{&host, std::move(free), most});
    return true;
  }
  const FreeAmounts before = std::exchange(found->second.free, free);
  const int most_before = std::exchange(found->second.most_of_a_gpu, most);
  found->second.host = &host;
  if (before == free) return most > most_before;
  by_free_.erase(before);
  by_free_.insert(free);
  return most > most_before || std::get<0>(free) > std::get<0>(before) ||
         std::get<1>(free) > std::get<1>(before) || std::get<2>(free) > std::get<2>(before);
}

bool Hosts::Remove(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return false;
  by_free_.erase(found->second.free);
  entries_.erase(found);
  spanning_.erase(name);
  masks_.erase(name);
  return true;
}

void Hosts::Mask(Host host) {
  if (entries_.contains(host.name)) masks_[host.name] = std::move(host);
}

const Host* Hosts::Find(const std::string& name) const {
  if (const auto mask = masks_.find(name); mask != masks_.end()) return &mask->second;
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second.host;
}

std::vector<const Host*> Hosts::List() const {
  std::vector<const Host*> all;
  for (const auto& [name, entry] : entries_) all.push_back(Find(name));
  return all;
}

std::vector<const Host*> Hosts::ListSpanning() const {
  std::vector<const Host*> spanning;
  for (const std::string& name : spanning_) spanning.push_back(Find(name));
  return spanning;
}

// by_free_ is sorted by the free resources, so the search skips whole groups that lack one of them.
Hosts::Place Hosts::FindLeastFree(const Resources& need) const {
  auto at = by_free_.lower_bound({need.gpus, need.cpus, need.memory_bytes, ""});
  while (at != by_free_.end()) {
    const auto& [gpus, cpus, memory, name] = *at;
    if (cpus < need.cpus) {
      at = by_free_.lower_bound({gpus, need.cpus, need.memory_bytes, ""});
    } else if (memory < need.memory_bytes) {
      at = by_free_.lower_bound({gpus, cpus, need.memory_bytes, ""});
    } else if (masks_.contains(name)) {
      ++at;
    } else {
      return at;
    }
  }
  return by_free_.end();
}

Hosts::Place Hosts::FindMostFree(const Resources& need) const {
  auto end = by_free_.end();
  while (end != by_free_.begin()) {
    const auto& [gpus, cpus, memory, name] = *std::prev(end);
    if (gpus < need.gpus) break;
    if (cpus < need.cpus) {
      end = by_free_.lower_bound({gpus, kNone, kNoMemory, ""});
    } else if (memory < need.memory_bytes) {
      end = by_free_.lower_bound({gpus, cpus, kNoMemory, ""});
    } else {
      const auto begin = by_free_.lower_bound({gpus, cpus, memory, ""});
      for (auto at = begin; at != end; ++at) {  // among equals, the first name
        if (!masks_.contains(std::get<3>(*at))) return at;
      }
      end = begin;
    }
  }
  return by_free_.end();
}

const Host* Hosts::FindBest(const Resources& need, PlacementPolicy placement) const {
  const bool pack = placement != PlacementPolicy::kSpread;
  const auto at = pack ? FindLeastFree(need) : FindMostFree(need);
  const Host* best = at == by_free_.end() ? nullptr : Find(std::get<3>(*at));
  const int64_t sign = pack ? 1 : -1;
  const auto left_over = [&](const Host& host) {
    return std::tuple(sign * std::ssize(host.gpus_free), sign * host.cpus_free,
                      sign * host.memory_free, std::string_view(host.name));
  };
  for (const auto& [name, host] : masks_) {
    if (IsWithin(need, host.FreeResources()) &&
        (best == nullptr || left_over(host) < left_over(*best)))
      best = &host;
  }
  return best;
}

}  // namespace attune
