#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/brain/decide.h"
#include "core/state/placement.h"
#include "core/state/state.h"

namespace attune {

// The largest of the shares of all CPUs, GPUs and memory (core/brain/contention.h).
double DominantShare(const Occupied& used, const Occupied& total);

// Adds resources to a total, with sign 1, or takes them away, with sign -1.
void Add(const Occupied& more, int sign, Occupied& total);

// All of these resources, as an amount that gangs can hold.
Occupied AllOf(const Resources& resources);

// Executors with a limited lifetime that are not lost, in the order of their ends.
using ExecutorEnds = std::set<std::pair<Time, std::string>>;

// When the executor ends; nullopt if its lifetime is not limited.
std::optional<Time> EndTimeOf(const Executor& executor);

// Remembers what Advance must look at again, so that its cost depends only on what has changed. An
// agenda is derived from the state, its changes (State::touched) and the time. With a new agenda,
// Advance gives the same result, but is slower.
class Agenda {
 public:
  // Updates the agenda after these changes. REQUIRES: the state stays at the same address.
  void Update(const State& state, const ChangedParts& changed);

  // The set of reachable executors may have changed, so the next pass asks for it again.
  void RecheckReachable() { recheck_reachable_ = true; }
  // Answers about reachable executors from an earlier pass may be out of date.
  void BeginPass() { asked_ = false; }

  // ---- sweeps, and the consequences of each alone ------------------------------------------

  // The sweeps to look at now.
  std::vector<SweepId> Sweeps(Time now);
  // Nothing follows from the sweep alone until it changes or becomes due.
  void SetIdle(const State& state, const Sweep& sweep, Time now);
  void RemoveSweep(SweepId sweep);  // the sweep has ended

  // Like Due of the state (core/brain/decide.h).
  std::optional<Time> Due(const State& state, Time now) const;

  // ---- gangs -------------------------------------------------------------------------------

  // The order of an owner's sweeps: the highest priority first, then the sweep with a reservation,
  // then the smallest dominant share, then the oldest.
  using Turn = std::tuple<int, bool, double, SweepId>;

  // The sweeps that have something to start, in the order in which they are served: by their turns,
  // except that the dominant share of the owner counts before that of the sweep.
  class Line {
   public:
    std::optional<SweepId> Next();  // nullopt at the end

   private:
    friend class Agenda;
    struct OwnerTurns {
      double share = 0;  // of the owner
      std::set<Turn>::const_iterator next, end;
    };
    void Add(const OwnerTurns& turns);

    // The next turns of each owner, by the first of them.
    std::map<std::tuple<int, bool, double, double, SweepId>, OwnerTurns> owners_;
  };
  // REQUIRES: no turn changes while the line is in use.
  Line MakeLine(const State& state);
  bool HasTurn(SweepId sweep) const { return turn_of_.contains(sweep); }

  // The searcher of the sweep waits, so the sweep starts nothing before its next event.
  void MarkWaiting(SweepId sweep) { waiting_.insert(sweep); }
  bool IsWaiting(SweepId sweep) const { return waiting_.contains(sweep); }
  // A trial of the sweep cannot start on every executor: it waits for some of them, or avoids some.
  void MarkHostLimits(SweepId sweep) { host_limited_.insert(sweep); }

  // The reachable executors that take gangs, without masks.
  Hosts& UpdateHosts(const State& state, const Reachable& reachable);
  // False if nothing has changed since a round found that no gang can start.
  bool MayStartGang() const { return may_start_; }
  void NoteNothingStarts() { may_start_ = false; }

  // Kinds of gangs that did not fit, and whether some executor is large enough for them. Any
  // relevant change clears this map.
  struct Kind {
    int workers = 0;
    Resources per_worker;
    int gpu_percent = 100;
    PlacementPolicy placement = PlacementPolicy::kPack;
    bool masked = false;  // the gang must not use reserved slots
    Requirements required;
    double min_runtime = 0;  // GangRequest::min_runtime
    std::set<std::string> avoided;
    auto Key() const {
      return std::tie(workers, per_worker.cpus, per_worker.gpus, per_worker.memory_bytes,
                      gpu_percent, placement, masked, required, min_runtime, avoided);
    }
    bool operator<(const Kind& other) const { return Key() < other.Key(); }
  };
  std::map<Kind, bool> without_room;

  // The sweeps with gangs that have fewer workers than they ask for.
  const std::set<SweepId>& SweepsWithSmallGangs() const { return small_; }
  // Gangs that have no room for more workers. Any relevant change clears this set.
  std::set<Epoch> without_growth;

  // ---- executors ---------------------------------------------------------------------------

  // Lost executors that can be forgotten, by the time of the loss.
  const std::set<std::pair<Time, std::string>>& LostExecutors() const { return lost_; }

  // Quarantined executors, with the ends of their quarantines.
  const std::map<std::string, Time>& QuarantinedExecutors() const { return quarantined_; }

 private:
  void UpdateAll(const State& state);
  void UpdateExecutor(const State& state, const std::string& name);
  void UpdateReservation(const State& state);
  void UpdateUse(const State& state, SweepId id);
  void UpdateSmallGangs(const State& state, SweepId id);
  void SetTurn(const State& state, const Sweep& sweep);
  void RemoveTurn(SweepId sweep);
  void Forget(SweepId sweep);
  void UpdateHost(const State& state, const Reachable& reachable, const std::string& name);
  void NoteMoreRoom();
  void NoteMinRuntime(const State& state, const Sweep& sweep);

  std::set<SweepId> sweeps_;  // to look at
  std::set<std::pair<Time, SweepId>> due_;
  std::map<SweepId, Time> due_of_;

  struct Owner {
    Occupied used;  // by all sweeps of the owner
    std::set<Turn> turns;
  };
  struct Use {
    std::string owner;
    Occupied used;
  };
  std::map<std::string, Owner> owners_;
  std::map<SweepId, Use> use_of_;
  std::map<SweepId, Turn> turn_of_;
  std::set<SweepId> waiting_;
  std::set<SweepId> host_limited_;
  std::map<SweepId, Seconds> min_runtime_of_;  // how long its gangs must be able to run
  std::set<SweepId> small_;
  std::optional<SweepId> reserver_;

  struct Present {
    Resources total;
    Incarnation incarnation;
    bool closed = false;
    std::optional<Time> end_time;
    bool operator==(const Present&) const = default;
  };
  std::map<std::string, Present> present_;  // executors that are not lost
  ExecutorEnds ends_;                       // the ends of the executors in present_
  Occupied total_;                          // the sum of their resources
  bool shares_stale_ = false;               // total_ has changed since turns were made

  bool may_start_ = true;
  bool recheck_reachable_ = true;
  bool asked_ = false;              // this pass has asked which executors are reachable
  std::set<std::string> outdated_;  // executors that have changed and are not yet updated in hosts_
  std::set<std::string> senders_;   // executors that can send checkpoints, drained ones included
  Hosts hosts_;

  std::set<std::pair<Time, std::string>> lost_;
  std::map<std::string, Time> lost_at_;
  std::map<std::string, Time> quarantined_;
};

// Like Advance without an agenda, but its cost depends only on the changes. REQUIRES: the agenda
// was updated after all changes.
std::vector<Fact> Advance(const State& state, const Reachable& reachable, Time now, Agenda& agenda);

// The first time after `now` when something follows from the sweep even without an event. From some
// time on, an executor ends too soon for the sweep's gangs: a trial that waited for it may then
// start on an executor that it avoids, and a gang no longer grows there.
std::optional<Time> DueOf(const Sweep& sweep, const ExecutorEnds& ends, Time now);

// A lost executor is forgotten after this time, or earlier if there are too many, so that old names
// do not accumulate. It can join again later.
inline constexpr int64_t kForgetLostAfterUs = int64_t{7} * 24 * 3600 * 1'000'000;
inline constexpr size_t kLostExecutors = 1'000;

}  // namespace attune
