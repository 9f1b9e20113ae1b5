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

// What may follow from a state, so that Advance looks at nothing that cannot have changed since it
// looked last. It is made of the state, of what has changed in it (State::touched) and of time
// alone: with a fresh agenda the same follows, only later.
class Agenda {
 public:
  // Takes in what has changed; then nothing counts as changed. The state stays where it is.
  void Take(const State& state, const Touched& touched);

  // What is reachable may have changed: it is asked again, even if nothing else has changed.
  void LookAgain() { look_again_ = true; }
  // What was asked before may be out of date.
  void BeginPass() { asked_ = false; }

  // ---- sweeps, and what follows from each alone --------------------------------------------

  // The sweeps to look at, by now.
  std::vector<SweepId> Sweeps(Time now);
  // Nothing follows from the sweep alone: it rests until it is touched, or due.
  void Rest(const State& state, const Sweep& sweep, Time now);
  void Drop(SweepId sweep);  // it has ended

  // As Due of the state (core/brain/decide.h).
  std::optional<Time> Due(const State& state, Time now) const;

  // ---- gangs -------------------------------------------------------------------------------

  // Whose turn comes first among an owner's sweeps: of the highest priority, then the one for which
  // slots are reserved, then of the smallest dominant share, then the oldest.
  using Turn = std::tuple<int, bool, double, SweepId>;

  // Walks the sweeps that have something to start, in the order in which they are served: that of
  // their turns, but that before a sweep's own share its owner's counts.
  class Line {
   public:
    std::optional<SweepId> Next();  // nullopt: that was the last

   private:
    friend class Agenda;
    struct Rest {
      double share = 0;  // of the owner
      std::set<Turn>::const_iterator next, end;
    };
    void Add(const Rest& rest);

    std::map<std::tuple<int, bool, double, double, SweepId>, Rest> first_;  // of each owner
  };
  // REQUIRES: no turn changes while it is walked.
  Line InLine(const State& state);
  bool HasTurn(SweepId sweep) const { return turn_of_.contains(sweep); }

  // Its searcher waits: it starts nothing before something happens to it.
  void LetWait(SweepId sweep) { waiting_.insert(sweep); }
  bool Waits(SweepId sweep) const { return waiting_.contains(sweep); }
  // It may not start just anywhere: a trial of it waits for executors of its own, or avoids some.
  void MarkChoosy(SweepId sweep) { choosy_.insert(sweep); }

  // The executors that can be reached, unmasked.
  Hosts& HostsToTry(const State& state, const Reachable& reachable);
  // False: no gang can start there that could not before.
  bool MayStartGang() const { return may_start_; }
  void NothingStarts() { may_start_ = false; }

  // A kind of gang that has found no room, and whether some executor is large enough for it. There
  // is none until something changes.
  struct Kind {
    int workers = 0;
    Resources per_worker;
    int gpu_percent = 100;
    PlacementPolicy placement = PlacementPolicy::kPack;
    bool masked = false;  // slots are reserved before it
    Requirements required;
    double needs = 0;
    std::set<std::string> avoided;
    auto Key() const {
      return std::tie(workers, per_worker.cpus, per_worker.gpus, per_worker.memory_bytes,
                      gpu_percent, placement, masked, required, needs, avoided);
    }
    bool operator<(const Kind& other) const { return Key() < other.Key(); }
  };
  std::map<Kind, bool> without_room;

  // The sweeps with gangs below their full size.
  const std::set<SweepId>& WithSmallGangs() const { return small_; }
  // The gangs of which it is known that there is no room for more workers, until something changes.
  std::set<Epoch> without_growth;

  // ---- executors that are lost -------------------------------------------------------------

  // Since when, and which: those lost first come first.
  const std::set<std::pair<Time, std::string>>& Lost() const { return lost_; }

  // ---- executors in quarantine ----------------------------------------------------------------

  // Until when.
  const std::map<std::string, Time>& Quarantined() const { return quarantined_; }

 private:
  void TakeAll(const State& state);
  void TakeExecutor(const State& state, const std::string& name);
  void TakeReservation(const State& state);
  void TakeUse(const State& state, SweepId id);
  void TakeSmall(const State& state, SweepId id);
  void SetTurn(const State& state, const Sweep& sweep);
  void NoTurn(SweepId sweep);
  void Forget(SweepId sweep);
  void PutHost(const State& state, const Reachable& reachable, const std::string& name);
  void MoreRoom();
  void NoteNeeds(const State& state, const Sweep& sweep);

  std::set<SweepId> sweeps_;  // to look at
  std::set<std::pair<Time, SweepId>> due_;
  std::map<SweepId, Time> due_of_;

  struct Owner {
    Occupied used;  // by its sweeps together
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
  std::set<SweepId> choosy_;
  std::map<SweepId, Seconds> needs_of_;  // how long its gangs must be able to run
  std::set<SweepId> small_;
  std::optional<SweepId> reserver_;

  struct Present {
    Resources total;
    Incarnation incarnation;
    bool closed = false;
    bool operator==(const Present&) const = default;
  };
  std::map<std::string, Present> present_;  // executors that are not lost
  Occupied total_;                          // of these
  bool shares_stale_ = false;               // total_ has changed since turns were made

  bool may_start_ = true;
  bool look_again_ = true;
  bool asked_ = false;              // in this pass, who can be reached
  std::set<std::string> unplaced_;  // executors that hosts_ has as they were
  std::set<std::string> seen_;      // executors that could be reached, drained ones too
  Hosts hosts_;

  std::set<std::pair<Time, std::string>> lost_;
  std::map<std::string, Time> lost_at_;
  std::map<std::string, Time> quarantined_;
};

// As Advance of a state alone, and at no greater cost than what has changed. REQUIRES: the agenda
// has taken in all that has changed.
std::vector<Fact> Advance(const State& state, const Reachable& reachable, Time now, Agenda& agenda);

// When, after `now`, time alone makes something follow from the sweep.
std::optional<Time> DueOf(const Sweep& sweep, Time now);

// An executor that has been lost for so long is forgotten, and the earlier ones of more than so
// many: names are cheap, and would pile up. It had nothing left; if it comes back, it joins anew.
inline constexpr int64_t kForgetLostAfterUs = int64_t{7} * 24 * 3600 * 1'000'000;
inline constexpr size_t kLostExecutors = 1'000;

}  // namespace attune
