#include "core/brain/placement.h"

#include <algorithm>
#include <tuple>

namespace attune {
namespace {

std::string Count(int64_t n, const char* unit) {
  return std::to_string(n) + " " + unit + (n == 1 ? "" : "s");
}

std::string Gibibytes(int64_t bytes) {
  const int64_t tenths = bytes * 10 / (int64_t{1} << 30);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

// "needs 8 GPUs: n3 has 6 free, n5 has 2", naming the resource that is short.
std::string Shortage(const Resources& need, const std::vector<Host>& hosts) {
  if (hosts.empty()) return "no executor is connected";
  const auto all = [&](auto short_of) { return std::ranges::all_of(hosts, short_of); };
  std::string text;
  const auto list = [&](auto free) {
    const char* separator = ": ";
    for (const Host& host : hosts) {
      text += separator + host.name + " has " + free(host) + " free";
      separator = ", ";
    }
  };
  if (need.gpus > 0 && all([&](const Host& h) { return need.gpus > std::ssize(h.gpus_free); })) {
    text = "needs " + Count(need.gpus, "GPU");
    list([](const Host& h) { return std::to_string(h.gpus_free.size()); });
  } else if (all([&](const Host& h) { return need.memory_bytes > h.memory_free; })) {
    text = "needs " + Gibibytes(need.memory_bytes) + " of memory";
    list([](const Host& h) { return Gibibytes(h.memory_free); });
  } else {
    text = "needs " + Count(need.cpus, "CPU");
    list([](const Host& h) { return std::to_string(h.cpus_free); });
  }
  if (std::ranges::none_of(hosts, [&](const Host& h) { return Within(need, h.total); }))
    text += "; no executor is large enough for this gang";
  return text;
}

}  // namespace

Resources TotalOf(const GangSpec& gang) {
  return {.cpus = gang.workers * gang.per_worker.cpus,
          .gpus = gang.workers * gang.per_worker.gpus,
          .memory_bytes = gang.workers * gang.per_worker.memory_bytes};
}

bool Within(const Resources& need, const Resources& room) {
  return need.cpus <= room.cpus && need.gpus <= room.gpus && need.memory_bytes <= room.memory_bytes;
}

std::variant<std::vector<RankSlot>, std::string> Place(const GangSpec& gang,
                                                       const std::vector<Host>& hosts) {
  const Resources need = TotalOf(gang);
  const int64_t sign = gang.placement == PlacementPolicy::kPack ? 1 : -1;
  const auto left_over = [&](const Host& host) {
    return std::tuple(sign * (std::ssize(host.gpus_free) - need.gpus),
                      sign * (host.cpus_free - need.cpus),
                      sign * (host.memory_free - need.memory_bytes), std::string_view(host.name));
  };
  const Host* best = nullptr;
  for (const Host& host : hosts) {
    if (Within(need, host.Free()) && (best == nullptr || left_over(host) < left_over(*best)))
      best = &host;
  }
  if (best == nullptr) return Shortage(need, hosts);

  std::vector<RankSlot> ranks;
  auto gpu = best->gpus_free.begin();
  for (int rank = 0; rank < gang.workers; ++rank) {
    RankSlot slot{.executor = best->name,
                  .local_rank = rank,
                  .cpus = gang.per_worker.cpus,
                  .gpus = {gpu, gpu + gang.per_worker.gpus},
                  .memory_bytes = gang.per_worker.memory_bytes};
    gpu += gang.per_worker.gpus;
    ranks.push_back(std::move(slot));
  }
  return ranks;
}

const Host* Nearest(const GangSpec& gang, const std::vector<Host>& hosts) {
  const Resources need = TotalOf(gang);
  const auto shortage = [&](const Host& host) {
    const Resources free = host.Free();
    return std::tuple(std::max(need.gpus - free.gpus, 0), std::max(need.cpus - free.cpus, 0),
                      std::max<int64_t>(need.memory_bytes - free.memory_bytes, 0),
                      std::string_view(host.name));
  };
  const Host* nearest = nullptr;
  for (const Host& host : hosts) {
    if (Within(need, host.total) && (nearest == nullptr || shortage(host) < shortage(*nearest)))
      nearest = &host;
  }
  return nearest;
}

}  // namespace attune
