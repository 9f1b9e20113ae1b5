#include "core/brain/contention.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/brain/next_trial.h"
#include "core/brain/placement.h"

namespace attune {
namespace {

std::vector<Host> ReachableHosts(const State& state, const Reachable& reachable) {
  std::vector<Host> hosts;
  for (const auto& [name, executor] : state.executors) {
    if (!executor.lost && reachable(name)) hosts.push_back(executor.host);
  }
  return hosts;
}

double DominantShare(const Resources& used, const Resources& total) {
  const auto share = [](auto part, auto whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
  };
  return std::max({share(used.cpus, total.cpus), share(used.gpus, total.gpus),
                   share(used.memory_bytes, total.memory_bytes)});
}

bool Reserves(const State& state, const Sweep& sweep) {
  return state.reservation && state.reservation->sweep == sweep.id;
}

// Of all executors that are not lost: shares do not change while one is away for a moment.
Resources TotalOf(const State& state) {
  Resources total;
  for (const auto& [name, executor] : state.executors) {
    if (executor.lost) continue;
    total.cpus += executor.host.total.cpus;
    total.gpus += executor.host.total.gpus;
    total.memory_bytes += executor.host.total.memory_bytes;
  }
  return total;
}

// The sweeps that have something to start, in the order in which they are served.
std::vector<const Sweep*> InOrder(const State& state, Time now) {
  const Resources total = TotalOf(state);
  using Place = std::tuple<int, bool, double, SweepId>;
  std::vector<std::pair<Place, const Sweep*>> order;
  for (const auto& [id, sweep] : state.sweeps) {
    if (sweep.spec.External() || !MayStart(sweep) || !HasNext(sweep, now)) continue;
    order.push_back(
        {{-sweep.spec.priority, !Reserves(state, sweep), DominantShare(sweep.used, total), id},
         &sweep});
  }
  std::ranges::sort(order);
  std::vector<const Sweep*> sweeps;
  for (const auto& [place, sweep] : order) sweeps.push_back(sweep);
  return sweeps;
}

// What gangs that began since the reservation occupy on its executor.
Resources InShade(const State& state, const Reservation& reservation) {
  Resources used;
  const Executor& executor = state.executors.at(reservation.executor);
  for (auto it = executor.attempts.upper_bound(reservation.since); it != executor.attempts.end();
       ++it) {
    for (const RankSlot& slot : state.Find(it->second)->live->ranks) {
      used.cpus += slot.cpus;
      used.gpus += static_cast<int>(slot.gpus.size());
      used.memory_bytes += slot.memory_bytes;
    }
  }
  return used;
}

// The hosts as this sweep sees them: what is reserved for another is not there for it.
std::vector<Host> VisibleTo(const State& state, const Sweep& sweep, std::vector<Host> hosts) {
  if (!state.reservation || Reserves(state, sweep)) return hosts;
  const Sweep& holder = *state.Find(state.reservation->sweep);
  if (holder.spec.priority < sweep.spec.priority) return hosts;
  for (Host& host : hosts) {
    if (host.name != state.reservation->executor) continue;
    const Resources need = TotalOf(holder.spec.gang);
    const Resources shade = InShade(state, *state.reservation);
    const auto left = [](auto total, auto kept, auto used) {
      return std::max<decltype(total)>(total - kept - used, 0);
    };
    host.cpus_free = std::min(host.cpus_free, left(host.total.cpus, need.cpus, shade.cpus));
    host.memory_free = std::min(
        host.memory_free, left(host.total.memory_bytes, need.memory_bytes, shade.memory_bytes));
    const auto gpus = static_cast<size_t>(left(host.total.gpus, need.gpus, shade.gpus));
    if (host.gpus_free.size() > gpus) host.gpus_free.resize(gpus);
  }
  return hosts;
}

// Why the reservation has lost its sense; empty: it has not. An executor that is away for a while
// keeps it: what a restart of the server interrupts is decided as if there had been none.
std::string Void(const State& state, const std::vector<const Sweep*>& order) {
  const Reservation& reservation = *state.reservation;
  if (std::ranges::none_of(order, [&](const Sweep* s) { return s->id == reservation.sweep; }))
    return "the sweep has nothing to start now";
  const Executor& executor = state.executors.at(reservation.executor);
  if (executor.lost) return "executor " + reservation.executor + " is lost";
  if (!Within(TotalOf(state.Find(reservation.sweep)->spec.gang), executor.host.total))
    return "executor " + reservation.executor + " has become too small";
  return "";
}

std::string Shortage(const State& state, const Sweep& sweep, const std::vector<Host>& hosts) {
  const std::vector<Host> visible = VisibleTo(state, sweep, hosts);
  const auto placed = Place(sweep.spec.gang, visible);
  const auto* shortage = std::get_if<std::string>(&placed);
  if (shortage == nullptr) return "";
  std::string text = *shortage;
  if (state.reservation) {
    text += "; slots of " + state.reservation->executor + " are kept for " +
            (Reserves(state, sweep) ? "it" : "sweep " + ToString(state.reservation->sweep));
  }
  return text;
}

}  // namespace

void StartGang(const State& state, const Reachable& reachable, Time now, Facts& facts) {
  const std::vector<Host> hosts = ReachableHosts(state, reachable);
  const std::vector<const Sweep*> order = InOrder(state, now);
  if (state.reservation) {
    if (std::string why = Void(state, order); !why.empty()) {
      facts.push_back(ReservationReleased{state.reservation->sweep, std::move(why)});
      return;
    }
  }
  const Sweep* passed = nullptr;  // the first whose gang does not fit
  for (const Sweep* sweep : order) {
    auto placed = Place(sweep->spec.gang, VisibleTo(state, *sweep, hosts));
    auto* ranks = std::get_if<std::vector<RankSlot>>(&placed);
    if (ranks == nullptr) {
      if (passed == nullptr && Nearest(sweep->spec.gang, hosts) != nullptr) passed = sweep;
      continue;
    }
    if (passed != nullptr && !Reserves(state, *passed)) {
      const std::string executor = Nearest(passed->spec.gang, hosts)->name;
      facts.push_back(SlotsReserved{passed->id, executor,
                                    Shortage(state, *passed, hosts) + "; sweep " +
                                        ToString(sweep->id) + " may not take its turn for ever"});
      return;
    }
    StartNext(state, *sweep, std::move(*ranks), "", now, facts);
    if (!facts.empty()) return;  // its searcher waits
  }
}

std::string Waiting(const State& state, const Sweep& sweep, const Reachable& reachable) {
  const Time now = state.last_time;
  if (sweep.spec.External() || !MayStart(sweep)) return "";
  // A sweep whose gangs fill the machine waits for nobody but itself.
  const bool more =
      NextWaiting(sweep, now) != nullptr || (sweep.live.empty() && HasNext(sweep, now));
  return more ? Shortage(state, sweep, ReachableHosts(state, reachable)) : "";
}

std::string Waiting(const State& state, const Trial& trial, const Reachable& reachable) {
  const Time now = state.last_time;
  const Sweep& sweep = *state.Find(trial.id.sweep);
  if (trial.state != TrialState::kPending && trial.state != TrialState::kPaused) return "";
  if (sweep.state == SweepState::kPaused) return "its sweep is paused";
  if (trial.live) return "its last attempt is still leaving";
  if (trial.state == TrialState::kPaused) return "the scheduler has not promoted it";
  if (trial.not_before > now) return "waits a while after its failure (failure.backoff)";
  if (sweep.spec.External()) return "nobody has asked for it";
  if (!MayStart(sweep))
    return "max_concurrent_trials: " + std::to_string(sweep.live.size()) + " trials are running";
  const std::string shortage = Shortage(state, sweep, ReachableHosts(state, reachable));
  return shortage.empty() ? "waits for its turn" : shortage;
}

}  // namespace attune
