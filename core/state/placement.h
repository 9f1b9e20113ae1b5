#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/log/event.h"
#include "core/log/sweep_spec.h"

namespace attune {

// The resources of one executor, and how much of them is free.
struct Host {
  std::string name;
  Resources total;
  int cpus_free = 0;
  int64_t memory_free = 0;
  std::vector<int> gpus_free;  // indices of completely free GPUs, ascending
  std::map<int, int> shared;   // by index of a GPU that is used in part: its free share in percent
  bool spans = false;          // gangs can have ranks here and elsewhere
  Labels labels;
  Seconds lifetime{0};  // the time between its join and its end; 0: it has no end
  Time end_time;        // when it ends, if `lifetime` is not 0

  Resources FreeResources() const {
    return {cpus_free, static_cast<int>(gpus_free.size()), memory_free};
  }
};

// Takes the resources of a rank from the host, or gives them back. REQUIRES: the host has them
// free, or taken.
void OccupySlot(const RankSlot& slot, Host& host);
void ReleaseSlot(const RankSlot& slot, Host& host);

// The requirements of a gang on its executors.
struct GangRequest {
  int min_workers = 1;
  int max_workers = 1;
  Resources per_worker;
  int gpu_percent = 100;  // GangSpec
  PlacementPolicy placement = PlacementPolicy::kPack;
  std::string preferred;  // this executor is used if the gang fits there
  // Rank 0 must be on one of these executors. The other ranks have no such limit.
  std::optional<std::set<std::string>> rank_zero_hosts;
  // Among placements with the same number of workers, those with rank 0 on one of these executors
  // are preferred.
  std::optional<std::set<std::string>> preferred_rank_zero_hosts;
  Requirements required;          // labels that each of its executors must have
  std::set<std::string> avoided;  // executors that it must not use
  // The gang must be able to run for this long. Executors that end earlier are not used, unless
  // their whole lifetime is shorter than this.
  Seconds min_runtime{0};
  Time now;
  bool has_host_limits = false;  // other gangs of its sweep may fit where this one does not
};

inline int MinWorkers(const GangSpec& gang) {
  return gang.min_workers > 0 ? gang.min_workers : gang.workers;
}

// The request of a gang without limits on its executors.
GangRequest RequestFor(const GangSpec& gang);

// The resources of this many workers. An amount that overflows becomes the largest number.
Resources ResourcesOf(const Resources& per_worker, int workers);

// Whether every amount of `need` is at most that of `room`.
bool IsWithin(const Resources& need, const Resources& room);

// An index of the executors that gangs can be placed on, by their free resources.
class Hosts {
 public:
  Hosts() = default;
  explicit Hosts(const std::vector<Host>& hosts);  // REQUIRES: they outlive this object

  // Adds the host, or updates it after a change. Returns true if it has more free resources than
  // before. REQUIRES: the host outlives this object, or is removed first.
  bool Update(const Host& host);
  bool Remove(const std::string& name);  // returns whether the host was known

  // Until Unmask, this value replaces the host with the same name.
  void Mask(Host host);
  void Unmask() { masks_.clear(); }

  const Host* Find(const std::string& name) const;  // null if it is unknown
  std::vector<const Host*> List() const;            // by name
  std::vector<const Host*> ListSpanning() const;    // those that a gang can span, by name

  // The host with enough free resources that would have the least left (kPack, kOneHost) or the
  // most (kSpread). GPUs count before CPUs, and CPUs before memory. Ties go to the first name. Null
  // if no host has enough.
  const Host* FindBest(const Resources& need, PlacementPolicy placement) const;

 private:
  using FreeAmounts = std::tuple<int, int, int64_t, std::string>;  // free GPUs, CPUs, memory; name
  struct Entry {
    const Host* host;
    FreeAmounts free;
    int most_of_a_gpu;  // the largest free share of any of its GPUs, in percent
  };
  using Place = std::set<FreeAmounts>::const_iterator;

  Place FindLeastFree(const Resources& need) const;
  Place FindMostFree(const Resources& need) const;

  std::map<std::string, Entry> entries_;
  std::set<FreeAmounts> by_free_;
  std::set<std::string> spanning_;
  std::map<std::string, Host> masks_;
};

// Slots for every rank of a gang, in order of rank; empty if the gang does not fit now.
//
// - The gang gets as many workers as fit, from max_workers down to min_workers.
// - If they fit on one executor, Hosts::FindBest selects it. Otherwise, except with kOneHost, they
// go to
//   the smallest possible number of executors that gangs can span. With kPack, all of these are
//   full except the last one, which is chosen so that it has the least left. With kSpread, ranks
//   are spread evenly.
// - If rank 0 is limited to some executors (GangRequest::rank_zero_hosts or
//   preferred_rank_zero_hosts), the one of these with the most free resources comes first. The
//   other ranks go to other executors only if they do not fit there.
// - Ranks of one executor are consecutive, and local_rank counts within it.
// - A GPU belongs to one rank, except for shares (GangRequest::gpu_percent). A share goes to the
// GPU
//   with the smallest sufficient free share, or with kSpread to the one with the largest.
// - Executors are not used if they lack a label (required), end too soon (needs) or are avoided.
std::vector<RankSlot> Place(const GangRequest& request, const Hosts& hosts);

// Whether the host lives for at least `needs` from now on. A host whose whole lifetime is shorter
// counts as well.
bool LivesLongEnough(const Host& host, Seconds min_runtime, Time now);

// How many workers fit on all executors together, if they need not form gangs.
int CountWorkersThatFit(const GangRequest& request, const Hosts& hosts);

// Why the gang does not fit: "needs 8 GPUs: n3 has 6 free, n5 has 2 free", with the most free
// first.
std::string DescribeShortage(const GangRequest& request, const Hosts& hosts);

// Maximum numbers of names in one message.
inline constexpr size_t kHostsNamed = 8;
inline constexpr size_t kLabelsNamed = 16;

// The executors where the gang at its minimum size is closest to fitting: a single executor that is
// large enough, or several that it can span. Empty if it would not fit even on empty executors.
std::vector<GangPart> FindNearest(const GangRequest& request, const Hosts& hosts);

}  // namespace attune
