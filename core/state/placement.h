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

// What one executor has left.
struct Host {
  std::string name;
  Resources total;
  int cpus_free = 0;
  int64_t memory_free = 0;
  std::vector<int> gpus_free;  // indices of those of which nothing is taken, ascending
  std::map<int, int> shared;   // of GPUs of which some shares are taken: what is free, in percent
  bool spans = false;          // gangs can have ranks here and elsewhere
  Labels labels;
  Seconds lives{0};  // from when it joined until it has to end; 0: as long as it likes
  Time ends;         // that end, if it lives for so long only

  Resources Free() const { return {cpus_free, static_cast<int>(gpus_free.size()), memory_free}; }
};

// What a rank occupies is taken, or given back. REQUIRES: it is there.
void Take(const RankSlot& slot, Host& host);
void GiveBack(const RankSlot& slot, Host& host);

// What the next gang of a sweep needs.
struct GangRequest {
  int min_workers = 1;
  int max_workers = 1;
  Resources per_worker;
  int gpu_percent = 100;  // GangSpec
  PlacementPolicy placement = PlacementPolicy::kPack;
  std::string preferred;  // executor that is taken where it has room
  // Rank 0 can be on these executors only; the others where it is, or beside it.
  std::optional<std::set<std::string>> only;
  // Of places for as many workers, one with rank 0 on these executors is taken before another.
  std::optional<std::set<std::string>> near;
  Requirements required;          // of every executor that it runs on
  std::set<std::string> avoided;  // executors that it does not run on, whatever room they have
  // So long it has to run at least: no executor is taken that ends earlier, unless that one has
  // never had so much time.
  Seconds needs{0};
  Time now;
  bool choosy = false;  // where it finds no room, others of its sweep may
};

inline int MinWorkers(const GangSpec& gang) {
  return gang.min_workers > 0 ? gang.min_workers : gang.workers;
}

// A gang that goes anywhere.
GangRequest RequestFor(const GangSpec& gang);

// What so many ranks occupy together; the largest number there is, where that is more.
Resources Times(const Resources& per_worker, int workers);

// Whether each amount of the one is within the other's.
bool IsWithin(const Resources& need, const Resources& room);

// The executors that gangs can be placed on, found by what is free on them.
class Hosts {
 public:
  Hosts() = default;
  explicit Hosts(const std::vector<Host>& hosts);  // which outlive this

  // Adds the host or takes in how it has changed; true: it has more room than before. It outlives
  // this, or is removed before.
  bool Put(const Host& host);
  bool Remove(const std::string& name);  // whether it was there

  // From now on this host is seen as it stands here, until Unmask.
  void Mask(Host host);
  void Unmask() { masks_.clear(); }

  const Host* Find(const std::string& name) const;  // null: it is not there
  std::vector<const Host*> All() const;             // by name
  std::vector<const Host*> Spanning() const;        // that gangs can have a part on, by name

  // The one that would have least left over after this (kPack, kOneHost), or most (kSpread): GPUs
  // before CPUs before memory; ties go to the name that sorts first. Null: none has room.
  const Host* Best(const Resources& need, PlacementPolicy placement) const;

 private:
  using Room = std::tuple<int, int, int64_t, std::string>;  // GPUs, CPUs, memory, name
  struct Entry {
    const Host* host;
    Room room;
    int most_of_a_gpu;  // that is free, in percent
  };
  using Place = std::set<Room>::const_iterator;

  Place Tightest(const Resources& need) const;
  Place Roomiest(const Resources& need) const;

  std::map<std::string, Entry> entries_;
  std::set<Room> rooms_;
  std::set<std::string> spanning_;
  std::map<std::string, Host> masks_;
};

// Slots for every rank of a gang, in order of rank; none: there is no room now.
//
// All or nothing. As many ranks as there is room for, up to max_workers; of so many, on a single
// executor if they fit on one (Hosts::Best), else, but for kOneHost, over as few as they need of
// those that span: full ones and a last one that they fill best (kPack), or evenly (kSpread). Where
// rank 0 is bound (GangRequest::only, or near), the roomiest of its executors comes first, and the
// others beside it. Ranks of one executor are consecutive, and local_rank counts within it. GPUs
// are whole and of one rank only, but for shares (GangRequest::gpu_percent): these fill the GPU of
// which least is left first, or the one of which most is (kSpread). Executors that lack a label
// that is asked for (GangRequest::required) end too soon (GangRequest::needs) or are to be avoided
// are as good as none.
std::vector<RankSlot> Place(const GangRequest& request, const Hosts& hosts);

// Whether it lasts for so long, or never has.
bool Lasts(const Host& host, Seconds needs, Time now);

// How many workers there is room for on all executors together, whichever gangs they are of.
int WorkersThatFit(const GangRequest& request, const Hosts& hosts);

// Why it has no room: "needs 8 GPUs: n3 has 6 free, n5 has 2 free", those with most first.
std::string Shortage(const GangRequest& request, const Hosts& hosts);

// So many executors are named in a sentence at most.
inline constexpr size_t kHostsNamed = 8;
inline constexpr size_t kLabelsNamed = 16;

// Where the gang, at its smallest, is nearest to having room: one executor, or several of those
// that span, which are large enough for it. Empty: there are none.
std::vector<GangPart> Nearest(const GangRequest& request, const Hosts& hosts);

}  // namespace attune
