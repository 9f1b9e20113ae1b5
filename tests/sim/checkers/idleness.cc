#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/scheduler.h"
#include "tests/sim/algorithms.h"
#include "tests/sim/checkers/checkers.h"

namespace attune::sim {
namespace {

// After so many minutes in which nothing has happened somebody has forgotten something.
constexpr int64_t kStillMinutes = 3;
constexpr int64_t kMinuteUs = 60'000'000;

// No slot is idle while there is something to run on it. Whenever a batch is decided, and as time
// goes by without one, no executor has room for a gang of a sweep that has
//   - a trial that waits and whose checkpoint can be had,
//   - a paused trial that its scheduler would promote,
//   - a new trial to begin;
// a sweep of which nothing runs, waits, or is to come has ended; and slots that are held are those
// of a gang that is there. What a scheduler would do is asked of one of the checker's own, which
// has seen the log and nothing else.
class Idleness final : public Checker {
 public:
  using Checker::Checker;

  void OnEvent(const Event& event) override {
    const auto id = SweepOf(event.fact);
    if (!id || std::holds_alternative<MetricsLogged>(event.fact)) return;  // that wakes nobody
    if (const auto* created = std::get_if<SweepCreated>(&event.fact)) Know(*created);
    const auto known = minds_.find(*id);
    if (known == minds_.end()) return;
    Mind& mind = known->second;
    if (const auto* ended = std::get_if<SweepEnded>(&event.fact); ended != nullptr) {
      mind.over = true;
      return;
    }
    if (std::holds_alternative<SweepReopened>(event.fact)) mind.over = false;
    if (mind.over) return;
    if (const auto* edited = std::get_if<SweepEdited>(&event.fact)) {
      mind.spec = *edited->spec;
      TestAlgorithms().Complete(mind.spec);
      mind.scheduler->Adapt(mind.spec);
    }
    mind.scheduler->Observe(event);
    mind.search_waits = std::holds_alternative<SearchWaits>(event.fact);
  }

  void OnBatch() override {
    still_ = 0;
    Look(books_.last_time);
  }

  void OnQuietMinute(Time now) override {
    FindTheGone();
    if (++still_ < kStillMinutes) return;
    undisturbed_since_ = Time{now.us - (kStillMinutes - 1) * kMinuteUs};
    Look(Time{books_.last_time.us + (kStillMinutes - 2) * kMinuteUs});
    undisturbed_since_.reset();
  }

 private:
  struct Mind {
    SweepSpec spec;
    std::unique_ptr<Scheduler> scheduler;
    bool search_waits = false;
    bool over = false;
  };
  struct Room {
    Resources free;
    const ExecutorBook* executor;
  };

  void Know(const SweepCreated& fact) {
    Mind& mind = minds_[fact.sweep];
    mind.spec = *fact.spec;
    TestAlgorithms().Complete(mind.spec);
    mind.scheduler = TestAlgorithms().MakeScheduler(mind.spec).value();
  }

  // ---- slots that nobody uses ----------------------------------------------------------------

  void Look(Time now) {
    std::optional<std::map<std::string, Room>> rooms;
    for (const auto& [id, sweep] : books_.sweeps) {
      if (sweep.state != SweepState::kRunning) continue;
      Rests(sweep);
      if (sweep.spec.External() || !MayStart(sweep)) continue;
      if (!rooms) rooms = Rooms();
      if (rooms->empty() || !HasRoom(sweep, *rooms)) continue;
      if (const std::string what = Could(sweep, now); !what.empty())
        Find("there is room for a gang of sweep " + ToString(id) + ", and " + what);
    }
  }

  bool MayStart(const SweepBook& sweep) const {
    const auto& reservation = books_.reservation;
    if (reservation && reservation->sweep != sweep.id) return false;
    const int most = sweep.spec.max_concurrent_trials;
    return most == 0 || sweep.Live() < most;
  }

  // Where a gang could start: on executors that can be reached and are closed to nobody.
  std::map<std::string, Room> Rooms() const {
    std::map<std::string, Room> rooms;
    for (const auto& [name, executor] : books_.executors) {
      const bool closed =
          executor.lost || executor.drained || executor.unhealthy || executor.quarantined;
      // One that is to end may have too little time left.
      if (!closed && !executor.ends && IsThere(name)) rooms[name] = {executor.resources, &executor};
    }
    for (const AttemptBook* attempt : books_.Live()) {
      for (const RankSlot& slot : attempt->ranks) {
        const auto room = rooms.find(slot.executor);
        if (room == rooms.end()) continue;
        room->second.free.cpus -= slot.cpus;
        room->second.free.gpus -= static_cast<int>(slot.gpus.size());
        room->second.free.memory_bytes -= slot.memory_bytes;
      }
    }
    return rooms;
  }

  // For the server when it decided; or for so long that it must have noticed.
  bool IsThere(const std::string& executor) const {
    if (!undisturbed_since_) return reality_.IsSeen(executor);
    const Time* since = reality_.ConnectedSince(executor);
    return since != nullptr && *since < *undisturbed_since_;
  }

  static bool HasRoom(const SweepBook& sweep, const std::map<std::string, Room>& rooms) {
    const GangSpec& gang = sweep.spec.gang;
    const int64_t least = gang.min_workers > 0 ? gang.min_workers : gang.workers;
    int64_t together = 0;
    for (const auto& [name, room] : rooms) {
      if (room.executor->excluded.contains(sweep.id) ||
          !Match(gang.required, room.executor->labels))
        continue;
      int64_t fits = room.free.cpus / gang.per_worker.cpus;
      if (gang.per_worker.gpus > 0)
        fits = std::min<int64_t>(fits, room.free.gpus / gang.per_worker.gpus);
      if (gang.per_worker.memory_bytes > 0)
        fits = std::min(fits, room.free.memory_bytes / gang.per_worker.memory_bytes);
      if (fits >= least) return true;
      if (room.executor->spans) together += std::max<int64_t>(fits, 0);
    }
    return together >= least;
  }

  // What the sweep could start; empty: nothing.
  std::string Could(const SweepBook& sweep, Time now) const {
    bool any_ready = false;
    for (const auto& [number, trial] : sweep.trials) {
      if (!Pends(trial) || trial.not_before > now) continue;
      any_ready = true;
      if (trial.avoided.empty() && !WaitsForASender(trial))
        return "trial " + ToString(trial.id) + " waits";
    }
    if (any_ready || sweep.stopping) return "";
    const NextMove next = NextOf(sweep);
    if (const auto* promote = std::get_if<Promote>(&next))
      return "trial " + std::to_string(promote->trial.value) + ", which is paused, could go on";
    const bool may_come = std::holds_alternative<New>(next) && MayCreate(sweep) && !sweep.thinks &&
                          !minds_.at(sweep.id).search_waits;
    return may_come ? "a new trial could begin" : "";
  }

  // For an executor that has a checkpoint of its, and is away.
  bool WaitsForASender(const TrialBook& trial) const {
    const auto away = [this](const std::string& name) {
      const auto executor = books_.executors.find(name);
      return executor != books_.executors.end() && !executor->second.lost &&
             !executor->second.folder.empty() && !IsThere(name);
    };
    return (trial.cloned && away(trial.cloned->executor)) ||
           std::ranges::any_of(trial.checkpoints, [&](const CheckpointBook& checkpoint) {
             return !checkpoint.dropped && away(checkpoint.executor);
           });
  }

  // ---- sweeps that nothing happens to --------------------------------------------------------

  void Rests(const SweepBook& sweep) {
    if (sweep.thinks) return;
    if (std::ranges::any_of(sweep.trials, [](const auto& entry) {
          return entry.second.live || Pends(entry.second);
        }))
      return;
    std::string why = "is stopping";
    if (!sweep.stopping) {
      const NextMove next = NextOf(sweep);
      if (std::holds_alternative<Promote>(next)) return;
      if (std::holds_alternative<New>(next) && MayCreate(sweep)) return;
      why = "has nothing to start";
    }
    Find("sweep " + ToString(sweep.id) + " " + why + ", nothing of it runs, and it does not end");
  }

  // ---- what schedulers would do --------------------------------------------------------------

  static bool Pends(const TrialBook& trial) {
    return trial.state == TrialState::kPending && !trial.live;
  }

  static bool MayCreate(const SweepBook& sweep) {
    const int most = sweep.spec.stop.max_trials;
    return !sweep.stopping && !sweep.exhausted && (most == 0 || sweep.Created() < most);
  }

  NextMove NextOf(const SweepBook& sweep) const {
    std::map<TrialNumber, Step> paused;
    int waiting = 0;
    for (const auto& [number, trial] : sweep.trials) {
      if (Pends(trial)) ++waiting;
      if (trial.state == TrialState::kPaused && !trial.live && !trial.held)
        paused[number] = trial.last_step;
    }
    NextMove next = minds_.at(sweep.id).scheduler->Next({.paused = paused,
                                                         .running = sweep.Live(),
                                                         .waiting = waiting,
                                                         .created = sweep.Created(),
                                                         .may_create = MayCreate(sweep)});
    if (const auto* promote = std::get_if<Promote>(&next)) {
      const CheckpointBook* donor = promote->donor ? books_.Find(*promote->donor) : nullptr;
      const bool gone = promote->donor && (donor == nullptr || donor->dropped || donor->unreported);
      if (!paused.contains(promote->trial) || gone) return Wait{"what it would promote is gone"};
    }
    return next;
  }

  // ---- slots that nobody gives back ----------------------------------------------------------

  // Told of minute after minute, and its gang is not there.
  void FindTheGone() {
    std::map<std::pair<Epoch, std::string>, int> gone;
    for (const AttemptBook* attempt : books_.Live()) {
      std::set<std::string> executors;
      for (const RankSlot& slot : attempt->ranks) executors.insert(slot.executor);
      for (const std::string& executor : executors) {
        if (reality_.Runs(attempt->epoch, executor)) continue;
        const auto before = gone_.find({attempt->epoch, executor});
        const int minutes = before == gone_.end() ? 1 : before->second + 1;
        gone[{attempt->epoch, executor}] = minutes;
        if (minutes > kStillMinutes)
          Find(ToString(attempt->id) + " holds slots of " + executor + ", and its gang is gone");
      }
    }
    gone_ = std::move(gone);
  }

  std::map<SweepId, Mind> minds_;
  std::map<std::pair<Epoch, std::string>, int> gone_;  // and for how many minutes
  int64_t still_ = 0;                                  // minutes without an event
  std::optional<Time> undisturbed_since_;              // who is there since then counts as seen
};

}  // namespace

std::unique_ptr<Checker> CheckIdleness(const Evidence& evidence) {
  return std::make_unique<Idleness>(evidence);
}

}  // namespace attune::sim
