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
  for (const Host& host : hosts) Put(host);
}

bool Hosts::Put(const Host& host) {
  const Resources free = host.Free();
  int most = free.gpus > 0 ? 100 : 0;
  for (const auto& [gpu, percent] : host.shared) most = std::max(most, percent);
  Room room{free.gpus, free.cpus, free.memory_bytes, host.name};
  if (host.spans) {
    spanning_.insert(host.name);
  } else {
    spanning_.erase(host.name);
  }
  const auto found = entries_.find(host.name);
  if (found == entries_.end()) {
    rooms_.insert(room);
    entries_.emplace(host.name, Entry{&host, std::move(room), most});
    return true;
  }
  const Room before = std::exchange(found->second.room, room);
  const int most_before = std::exchange(found->second.most_of_a_gpu, most);
  found->second.host = &host;
  if (before == room) return most > most_before;
  rooms_.erase(before);
  rooms_.insert(room);
  return most > most_before || std::get<0>(room) > std::get<0>(before) ||
         std::get<1>(room) > std::get<1>(before) || std::get<2>(room) > std::get<2>(before);
}

bool Hosts::Remove(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return false;
  rooms_.erase(found->second.room);
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

std::vector<const Host*> Hosts::All() const {
  std::vector<const Host*> all;
  for (const auto& [name, entry] : entries_) all.push_back(Find(name));
  return all;
}

std::vector<const Host*> Hosts::Spanning() const {
  std::vector<const Host*> spanning;
  for (const std::string& name : spanning_) spanning.push_back(Find(name));
  return spanning;
}

// rooms_ is sorted by the free resources, so the search skips whole groups that lack one of them.
Hosts::Place Hosts::Tightest(const Resources& need) const {
  auto at = rooms_.lower_bound({need.gpus, need.cpus, need.memory_bytes, ""});
  while (at != rooms_.end()) {
    const auto& [gpus, cpus, memory, name] = *at;
    if (cpus < need.cpus) {
      at = rooms_.lower_bound({gpus, need.cpus, need.memory_bytes, ""});
    } else if (memory < need.memory_bytes) {
      at = rooms_.lower_bound({gpus, cpus, need.memory_bytes, ""});
    } else if (masks_.contains(name)) {
      ++at;
    } else {
      return at;
    }
  }
  return rooms_.end();
}

Hosts::Place Hosts::Roomiest(const Resources& need) const {
  auto end = rooms_.end();
  while (end != rooms_.begin()) {
    const auto& [gpus, cpus, memory, name] = *std::prev(end);
    if (gpus < need.gpus) break;
    if (cpus < need.cpus) {
      end = rooms_.lower_bound({gpus, kNone, kNoMemory, ""});
    } else if (memory < need.memory_bytes) {
      end = rooms_.lower_bound({gpus, cpus, kNoMemory, ""});
    } else {
      const auto begin = rooms_.lower_bound({gpus, cpus, memory, ""});
      for (auto at = begin; at != end; ++at) {  // among equals, the first name
        if (!masks_.contains(std::get<3>(*at))) return at;
      }
      end = begin;
    }
  }
  return rooms_.end();
}

const Host* Hosts::Best(const Resources& need, PlacementPolicy placement) const {
  const bool pack = placement != PlacementPolicy::kSpread;
  const auto at = pack ? Tightest(need) : Roomiest(need);
  const Host* best = at == rooms_.end() ? nullptr : Find(std::get<3>(*at));
  const int64_t sign = pack ? 1 : -1;
  const auto left_over = [&](const Host& host) {
    return std::tuple(sign * std::ssize(host.gpus_free), sign * host.cpus_free,
                      sign * host.memory_free, std::string_view(host.name));
  };
  for (const auto& [name, host] : masks_) {
    if (IsWithin(need, host.Free()) && (best == nullptr || left_over(host) < left_over(*best)))
      best = &host;
  }
  return best;
}

}  // namespace attune
