#include "core/state/placement.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

namespace attune {
namespace {

std::string Count(int64_t n, const char* unit) {
  return std::to_string(n) + " " + unit + (n == 1 ? "" : "s");
}

std::string Gibibytes(int64_t bytes) {
  constexpr int64_t kGibibyte = int64_t{1} << 30;
  const int64_t tenths = bytes % kGibibyte * 10 / kGibibyte;
  return std::to_string(bytes / kGibibyte) + "." + std::to_string(tenths) + " GiB";
}

// "2 GPUs", or "2 shares of 25 % of a GPU" if the request is for shares.
std::string Gpus(const GangRequest& request, int64_t n) {
  if (request.gpu_percent == 100) return Count(n, "GPU");
  return Count(n, "share") + " of " + std::to_string(request.gpu_percent) + " % of a GPU";
}

// The product of two numbers >= 0, or the largest number of the type if that overflows.
template <class T>
T Product(T each, T count) {
  constexpr T kMost = std::numeric_limits<T>::max();
  return count > 0 && each > kMost / count ? kMost : each * count;
}

// How many workers fit into these resources.
int Capacity(const Resources& per_worker, const Resources& room) {
  int64_t capacity = std::numeric_limits<int>::max();
  const auto bound = [&](int64_t each, int64_t free) {
    if (each > 0) capacity = std::min(capacity, std::max<int64_t>(free, 0) / each);
  };
  bound(per_worker.gpus, room.gpus);
  bound(per_worker.cpus, room.cpus);
  bound(per_worker.memory_bytes, room.memory_bytes);
  return static_cast<int>(capacity);
}

// The hosts for a gang whose one worker takes a share of a GPU: each free share of this size counts
// as one GPU.
class SharedGpuHosts {
 public:
  SharedGpuHosts(const GangRequest& request, const Hosts& whole) {
    for (const Host* host : whole.List()) Add(request, *host);
    for (const Host& host : copies_) hosts_.Update(host);
  }
  const Hosts& hosts() const { return hosts_; }

 private:
  void Add(const GangRequest& request, const Host& whole) {
    std::vector<std::pair<int, int>> gpus;  // (free percent, index)
    for (const auto& [gpu, percent] : whole.shared) gpus.emplace_back(percent, gpu);
    for (const int gpu : whole.gpus_free) gpus.emplace_back(100, gpu);
    if (request.placement == PlacementPolicy::kSpread)
      std::ranges::stable_sort(gpus, std::ranges::greater(), &std::pair<int, int>::first);
    else
      std::ranges::sort(gpus);
    Host& host = copies_.emplace_back(whole);
    host.gpus_free.clear();
    for (const auto& [percent, gpu] : gpus)
      host.gpus_free.insert(host.gpus_free.end(),
                            static_cast<size_t>(percent / request.gpu_percent), gpu);
    host.total.gpus = Product(host.total.gpus, 100 / request.gpu_percent);
  }

  std::deque<Host> copies_;
  Hosts hosts_;
};

// Null if the gang uses whole GPUs or none.
std::unique_ptr<SharedGpuHosts> MakeSharedGpuHosts(const GangRequest& request, const Hosts& whole) {
  return request.gpu_percent < 100 ? std::make_unique<SharedGpuHosts>(request, whole) : nullptr;
}

bool IsAllowed(const GangRequest& request, const Host& host) {
  return Matches(request.required, host.labels) &&
         LivesLongEnough(host, request.min_runtime, request.now) &&
         !request.avoided.contains(host.name);
}

std::vector<const Host*> HostsForRankZero(const GangRequest& request, const Hosts& hosts) {
  std::vector<const Host*> chosen;
  if (!request.rank_zero_hosts) {
    chosen = hosts.List();
  } else {
    for (const std::string& name : *request.rank_zero_hosts) {
      if (const Host* host = hosts.Find(name)) chosen.push_back(host);
    }
  }
  std::erase_if(chosen, [&](const Host* host) { return !IsAllowed(request, *host); });
  return chosen;
}

// The hosts that the gang can span; empty if rank 0 cannot be on any of them.
std::vector<const Host*> HostsToSpan(const GangRequest& request, const Hosts& hosts) {
  if (request.placement == PlacementPolicy::kOneHost) return {};
  std::vector<const Host*> spanning = hosts.ListSpanning();
  std::erase_if(spanning, [&](const Host* host) { return !IsAllowed(request, *host); });
  if (request.rank_zero_hosts && std::ranges::none_of(spanning, [&](const Host* host) {
        return request.rank_zero_hosts->contains(host->name);
      }))
    return {};
  return spanning;
}

// Appends the slots of the gang's next ranks, all on this host.
void AddRanks(const GangRequest& request, const Host& host, int workers,
              std::vector<RankSlot>& ranks) {
  const Resources& per_worker = request.per_worker;
  auto gpu = host.gpus_free.begin();
  for (int local_rank = 0; local_rank < workers; ++local_rank) {
    ranks.push_back({.executor = host.name,
                     .local_rank = local_rank,
                     .cpus = per_worker.cpus,
                     .gpus = {gpu, gpu + per_worker.gpus},
                     .memory_bytes = per_worker.memory_bytes,
                     .gpu_percent = request.gpu_percent});
    gpu += per_worker.gpus;
  }
}

const Host* FindSingleHost(const GangRequest& request, int workers, const Hosts& hosts) {
  const Resources need = ResourcesOf(request.per_worker, workers);
  const auto allowed = [&](const std::string& name) {
    return !request.rank_zero_hosts || request.rank_zero_hosts->contains(name);
  };
  if (!request.preferred.empty() && allowed(request.preferred)) {
    const Host* host = hosts.Find(request.preferred);
    if (host != nullptr && IsAllowed(request, *host) && IsWithin(need, host->FreeResources()))
      return host;
  }
  if (!request.rank_zero_hosts && request.required.empty() && request.min_runtime.value == 0 &&
      request.avoided.empty())
    return hosts.FindBest(need, request.placement);
  Hosts few;
  for (const Host* host : HostsForRankZero(request, hosts)) few.Update(*host);
  return few.FindBest(need, request.placement);
}

struct Share {
  const Host* host;
  int capacity;
  int workers = 0;
};

// REQUIRES: the shares have enough capacity in total.
void DivideEvenly(std::vector<Share>& shares, int workers) {
  for (Share& share : shares) share.workers = 0;
  for (int left = workers; left > 0;) {
    for (Share& share : shares) {
      if (left == 0 || share.workers == share.capacity) continue;
      ++share.workers;
      --left;
    }
  }
}

// Selects as few shares as possible and sets their workers; empty if their capacity is too small.
std::vector<Share> Divide(std::vector<Share> shares, int workers, PlacementPolicy placement) {
  std::ranges::stable_sort(shares, std::ranges::greater(), &Share::capacity);
  size_t used = 0;
  int64_t room = 0;
  while (used < shares.size() && room < workers && shares[used].capacity > 0)
    room += shares[used++].capacity;
  if (room < workers) return {};
  if (placement == PlacementPolicy::kSpread) {
    shares.resize(used);
    DivideEvenly(shares, workers);
    return shares;
  }
  int left = workers;
  for (size_t i = 0; i + 1 < used; ++i) {
    shares[i].workers = shares[i].capacity;
    left -= shares[i].workers;
  }
  size_t last = used - 1;  // the smallest share with enough capacity for the rest
  for (size_t i = used; i < shares.size() && shares[i].capacity >= left; ++i) {
    if (shares[i].capacity < shares[last].capacity) last = i;
  }
  shares[used - 1] = shares[last];
  shares[used - 1].workers = left;
  shares.resize(used);
  return shares;
}

// Like Divide, but the first share is the largest one on an executor that may have rank 0.
std::vector<Share> DivideAfterRankZero(const std::set<std::string>& rank_zero,
                                       std::vector<Share> shares, int workers,
                                       PlacementPolicy placement) {
  std::ranges::stable_partition(
      shares, [&](const Share& share) { return rank_zero.contains(share.host->name); });
  const auto others = std::ranges::find_if(
      shares, [&](const Share& share) { return !rank_zero.contains(share.host->name); });
  const auto roomiest = std::ranges::max_element(shares.begin(), others, {}, &Share::capacity);
  if (roomiest == others || roomiest->capacity == 0) return {};
  Share first = *roomiest;
  shares.erase(roomiest);
  first.workers = std::min(first.capacity, workers);
  if (first.workers == workers) return {first};
  std::vector<Share> all =
      Divide(std::move(shares), workers - first.workers, PlacementPolicy::kPack);
  if (all.empty()) return {};
  all.insert(all.begin(), first);
  if (placement == PlacementPolicy::kSpread) DivideEvenly(all, workers);
  return all;
}

std::vector<Share> DivideFor(const GangRequest& request, std::vector<Share> shares, int workers,
                             PlacementPolicy placement) {
  return request.rank_zero_hosts
             ? DivideAfterRankZero(*request.rank_zero_hosts, std::move(shares), workers, placement)
             : Divide(std::move(shares), workers, placement);
}

std::vector<Share> DivideOverHosts(const GangRequest& request, int workers, const Hosts& hosts) {
  std::vector<Share> shares;
  for (const Host* host : HostsToSpan(request, hosts))
    shares.push_back({host, Capacity(request.per_worker, host->FreeResources())});
  return DivideFor(request, std::move(shares), workers, request.placement);
}

// Slots for exactly this many workers; empty if they do not fit.
std::vector<RankSlot> PlaceAll(const GangRequest& request, int workers, const Hosts& hosts) {
  std::vector<RankSlot> ranks;
  if (const Host* host = FindSingleHost(request, workers, hosts)) {
    AddRanks(request, *host, workers, ranks);
    return ranks;
  }
  for (const Share& share : DivideOverHosts(request, workers, hosts))
    AddRanks(request, *share.host, share.workers, ranks);
  return ranks;
}

// Why no executor can have rank 0: the allowed ones are not connected, or lack the labels.
std::string DescribeNoHostForRankZero(const GangRequest& request, const Hosts& hosts) {
  for (const std::string& name : *request.rank_zero_hosts) {
    if (hosts.Find(name) != nullptr)
      return "its checkpoint is on executor " + name + ", which does not have " +
             ToString(request.required);
  }
  return "its checkpoint is on executor " + *request.rank_zero_hosts->begin() +
         ", which is not connected";
}

// The distinct labels of all executors: "gpu=a100, gpu=h100, zone=a".
std::string ListLabels(const Hosts& hosts) {
  std::set<std::string> labels;
  for (const Host* host : hosts.List()) {
    for (const auto& [name, value] : host->labels) labels.insert(name + "=" + value);
  }
  std::string text;
  size_t named = 0;
  for (const std::string& label : labels) {
    if (named++ == kLabelsNamed) return text + ", …";
    text += (text.empty() ? "" : ", ") + label;
  }
  return text.empty() ? "none" : text;
}

}  // namespace

GangRequest RequestFor(const GangSpec& gang) {
  return {.min_workers = MinWorkers(gang),
          .max_workers = gang.workers,
          .per_worker = gang.per_worker,
          .gpu_percent = gang.gpu_percent,
          .placement = gang.placement,
          .required = gang.required};
}

bool LivesLongEnough(const Host& host, Seconds min_runtime, Time now) {
  if (host.lifetime.value == 0 || host.lifetime.value < min_runtime.value) return true;
  return static_cast<double>(host.end_time.us - now.us) >= min_runtime.value * 1e6;
}

void OccupySlot(const RankSlot& slot, Host& host) {
  host.cpus_free -= slot.cpus;
  host.memory_free -= slot.memory_bytes;
  for (const int gpu : slot.gpus) {
    const auto shared = host.shared.find(gpu);
    if (shared != host.shared.end()) {
      shared->second -= slot.gpu_percent;
      continue;
    }
    std::erase(host.gpus_free, gpu);
    if (slot.gpu_percent < 100) host.shared.emplace(gpu, 100 - slot.gpu_percent);
  }
}

void ReleaseSlot(const RankSlot& slot, Host& host) {
  host.cpus_free += slot.cpus;
  host.memory_free += slot.memory_bytes;
  for (const int gpu : slot.gpus) {
    const auto shared = host.shared.find(gpu);
    if (shared != host.shared.end()) {
      shared->second += slot.gpu_percent;
      if (shared->second < 100) continue;
      host.shared.erase(shared);
    }
    host.gpus_free.insert(std::ranges::upper_bound(host.gpus_free, gpu), gpu);
  }
}

int CountWorkersThatFit(const GangRequest& request, const Hosts& whole) {
  const auto shared_gpu_hosts = MakeSharedGpuHosts(request, whole);
  const Hosts& hosts = shared_gpu_hosts ? shared_gpu_hosts->hosts() : whole;
  int64_t workers = 0;
  for (const Host* host : hosts.List()) {
    if (IsAllowed(request, *host)) workers += Capacity(request.per_worker, host->FreeResources());
  }
  return static_cast<int>(std::min<int64_t>(workers, std::numeric_limits<int>::max()));
}

Resources ResourcesOf(const Resources& per_worker, int workers) {
  return {.cpus = Product(per_worker.cpus, workers),
          .gpus = Product(per_worker.gpus, workers),
          .memory_bytes = Product<int64_t>(per_worker.memory_bytes, workers)};
}

bool IsWithin(const Resources& need, const Resources& room) {
  return need.cpus <= room.cpus && need.gpus <= room.gpus && need.memory_bytes <= room.memory_bytes;
}

std::vector<RankSlot> Place(const GangRequest& request, const Hosts& whole) {
  const auto shared_gpu_hosts = MakeSharedGpuHosts(request, whole);
  const Hosts& hosts = shared_gpu_hosts ? shared_gpu_hosts->hosts() : whole;
  std::optional<GangRequest> preferred;
  if (request.preferred_rank_zero_hosts) {
    preferred = request;
    preferred->rank_zero_hosts = request.preferred_rank_zero_hosts;
  }
  for (int workers = request.max_workers; workers >= request.min_workers; --workers) {
    if (preferred) {
      if (auto ranks = PlaceAll(*preferred, workers, hosts); !ranks.empty()) return ranks;
    }
    if (auto ranks = PlaceAll(request, workers, hosts); !ranks.empty()) return ranks;
  }
  return {};
}

std::string DescribeShortage(const GangRequest& request, const Hosts& whole) {
  const auto shared_gpu_hosts = MakeSharedGpuHosts(request, whole);
  const Hosts& all = shared_gpu_hosts ? shared_gpu_hosts->hosts() : whole;
  std::vector<const Host*> hosts = HostsForRankZero(request, all);
  if (hosts.empty() && request.rank_zero_hosts) return DescribeNoHostForRankZero(request, all);
  const std::string with = request.required.empty() ? "" : " with " + ToString(request.required);
  if (all.List().empty()) return "no executor" + with + " is connected";
  if (hosts.empty())
    return "needs an executor" + with + ", but none has it (known labels: " + ListLabels(all) + ")";
  const Resources need = ResourcesOf(request.per_worker, request.min_workers);
  const std::vector<const Host*> spanning = HostsToSpan(request, all);
  for (const Host* host : spanning) {
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
  }
  // Whether no single executor has enough, nor those that the gang can span together.
  const auto short_of = [&](int64_t needed, auto free) {
    int64_t together = 0;
    for (const Host* host : spanning) together += free(*host);
    return together < needed &&
           std::ranges::all_of(hosts, [&](const Host* host) { return free(*host) < needed; });
  };
  const auto list = [&](auto free, auto in_words) {
    std::ranges::stable_sort(hosts, std::ranges::greater(),
                             [&](const Host* host) { return free(*host); });
    std::string text;
    for (size_t i = 0; i < std::min(hosts.size(), kHostsNamed); ++i)
      text +=
          (i == 0 ? ": " : ", ") + hosts[i]->name + " has " + in_words(free(*hosts[i])) + " free";
    if (hosts.size() > kHostsNamed)
      text += ", and " + std::to_string(hosts.size() - kHostsNamed) + " others have no more free";
    return text;
  };
  const auto gpus = [](const Host& host) { return std::ssize(host.gpus_free); };
  const auto cpus = [](const Host& host) { return static_cast<int64_t>(host.cpus_free); };
  const auto memory = [](const Host& host) { return host.memory_free; };
  const auto plain = [](int64_t n) { return std::to_string(n); };
  const std::string where = with.empty() ? "" : " on executors" + with;
  std::string text;
  if (need.gpus > 0 && short_of(need.gpus, gpus)) {
    text = "needs " + Gpus(request, need.gpus) + where + list(gpus, plain);
  } else if (short_of(need.memory_bytes, memory)) {
    text = "needs " + Gibibytes(need.memory_bytes) + " of memory" + where + list(memory, Gibibytes);
  } else {
    text = "needs " + Count(need.cpus, "CPU") + where + list(cpus, plain);
  }
  if (FindNearest(request, all).empty())
    text +=
        "; no executor is large enough for this gang: lower resources.workers or the resources of "
        "each worker, or start a larger executor";
  return text;
}

std::vector<GangPart> FindNearest(const GangRequest& request, const Hosts& whole) {
  const auto shared_gpu_hosts = MakeSharedGpuHosts(request, whole);
  const Hosts& hosts = shared_gpu_hosts ? shared_gpu_hosts->hosts() : whole;
  const int workers = request.min_workers;
  const Resources need = ResourcesOf(request.per_worker, workers);
  const auto shortage = [&](const Host& host) {
    const Resources free = host.FreeResources();
    const auto missing = [](int64_t needed, int64_t there) {
      return needed - std::clamp<int64_t>(there, 0, needed);
    };
    return std::tuple(missing(need.gpus, free.gpus), missing(need.cpus, free.cpus),
                      missing(need.memory_bytes, free.memory_bytes));
  };
  const Host* nearest = nullptr;
  for (const Host* host : HostsForRankZero(request, hosts)) {
    if (IsWithin(need, host->total) && (nearest == nullptr || shortage(*host) < shortage(*nearest)))
      nearest = host;
  }
  if (nearest != nullptr) return {{nearest->name, workers}};
  // Divide prefers large executors, so that it needs few. Among equals, it takes the first ones.
  std::vector<Share> shares;
  for (const Host* host : HostsToSpan(request, hosts))
    shares.push_back({host, Capacity(request.per_worker, host->total)});
  std::ranges::stable_sort(shares, std::ranges::greater(), [&](const Share& share) {
    return Capacity(request.per_worker, share.host->FreeResources());
  });
  std::vector<GangPart> parts;
  for (const Share& share : DivideFor(request, std::move(shares), workers, PlacementPolicy::kPack))
    parts.push_back({share.host->name, share.workers});
  return parts;
}

}  // namespace attune
