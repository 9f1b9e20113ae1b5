#include "core/brain/growth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/brain/contention.h"
#include "core/brain/next_trial.h"
#include "core/state/placement.h"

namespace attune {
namespace {

// A time after the end of every backoff.
constexpr Time kEver{std::numeric_limits<int64_t>::max()};

struct Small {
  const Sweep* sweep;
  const Trial* trial;
  auto Turn() const {
    return std::tuple(-sweep->spec.priority, sweep->id, Rank(), trial->id.number);
  }

 private:
  double Rank() const {
    constexpr double kLast = std::numeric_limits<double>::infinity();
    switch (sweep->spec.gang.grow) {
      case GrowthPolicy::kOldest:
        return 0;
      case GrowthPolicy::kEven:
        return static_cast<double>(trial->live->ranks.size());
      case GrowthPolicy::kBest:
        break;
    }
    const double best = trial->best.empty() ? kLast : trial->best.front();
    if (!std::isfinite(best)) return kLast;
    return sweep->spec.objective().mode == Mode::kMin ? best : -best;
  }
};

// Whether the trial has been asked to grow.
bool IsAskedToGrow(const Trial& trial) {
  return trial.yield_verdict && trial.yield_verdict->kind == VerdictKind::kResize;
}

bool MayGrow(const Sweep& sweep, const Trial& trial) {
  const Attempt& live = *trial.live;
  return sweep.state == SweepState::kRunning && !sweep.stopping_as &&
         trial.state == TrialState::kRunning && !trial.yield_verdict &&
         live.verdict == VerdictKind::kContinue && live.part_outcome == Outcome::kFinished &&
         live.ended_parts.empty() && !trial.checkpoints.empty() &&
         trial.checkpoints.back().attempt == live.id.number;
}

// The gangs that may grow now, the first one to grow first. If a gang was already asked to grow,
// only that one; none if it is leaving.
std::vector<Small> Candidates(const State& state, Time now, const Agenda& agenda) {
  std::vector<Small> candidates;
  for (const SweepId id : agenda.SweepsWithSmallGangs()) {
    const Sweep& sweep = *state.Find(id);
    for (const auto& [time, number] : sweep.small) {
      const Trial& trial = *sweep.Find(number);
      if (trial.live->verdict == VerdictKind::kResize) return {};
      if (IsAskedToGrow(trial) &&
          (trial.live->part_outcome != Outcome::kFinished || !trial.live->ended_parts.empty()))
        return {};
      if (IsAskedToGrow(trial)) return {{&sweep, &trial}};
      if (time <= now && MayGrow(sweep, trial)) candidates.push_back({&sweep, &trial});
    }
  }
  std::ranges::sort(candidates, {}, &Small::Turn);
  return candidates;
}

// Whether every executor that takes gangs is reachable. A decision must not change only because an
// executor is disconnected for a while.
bool AllReachable(const State& state, const Hosts& hosts) {
  return std::ranges::all_of(state.executors, [&](const auto& entry) {
    return !TakesGangs(entry.second) || hosts.Find(entry.first) != nullptr;
  });
}

// How many workers the gang could have if its own resources were free as well; 0: no more than now.
int WorkersIfRestarted(const State& state, const Small& small, Hosts& hosts, Time now) {
  const Attempt& live = *small.trial->live;
  hosts.Unmask();
  const int most = MostWorkers(state, *small.sweep, small.trial, hosts, now);
  for (const RankSlot& slot : live.ranks) {
    const Host* known = hosts.Find(slot.executor);
    if (known == nullptr) return 0;  // the executor is disconnected
    Host host = *known;
    ReleaseSlot(slot, host);
    hosts.Mask(std::move(host));
  }
  GangRequest request = RequestFor(state, *small.sweep, now);
  request.min_workers = static_cast<int>(live.ranks.size()) + 1;
  if (small.sweep->spec.gang.grow == GrowthPolicy::kEven) request.max_workers = most;
  // Rank 0 saves the next checkpoint in the data folder of its executor.
  const auto readers = state.folders.find(state.executors.at(live.ranks.front().executor).folder);
  if (readers != state.folders.end()) request.preferred_rank_zero_hosts = readers->second;
  const auto room = static_cast<int>(Place(request, hosts).size());
  hosts.Unmask();
  return room;
}

// Whether a gang of the sweep waits for which the executors are large enough.
bool HasWaitingGang(const State& state, const Sweep& sweep, const Reachable& reachable, Time now,
                    const Agenda& agenda, const Hosts& hosts) {
  if (sweep.spec.External() || !MayStart(sweep)) return false;
  const bool thinks = sweep.thinking && MayCreate(sweep);  // the searcher may propose a trial
  if (sweep.pending.empty() && !agenda.HasTurn(sweep.id) && !thinks) return false;
  SkippedTrials skipped;
  for (;;) {
    const Trial* waiting = NextWaiting(sweep, kEver, skipped);
    if (waiting == nullptr && !thinks) {
      if (!HasNext(sweep, kEver, skipped)) return false;
      Facts next;  // empty if the searcher waits
      StartNext(state, sweep, {}, "", kEver, next, skipped);
      if (next.empty() || std::holds_alternative<SearchExhausted>(next.front())) return false;
    }
    const GangRequest request = RequestForNext(state, sweep, waiting, reachable, now);
    if (!FindNearest(request, hosts).empty()) return true;
    if (!request.has_host_limits) return false;
    skipped.insert(waiting->id.number);
  }
}

// The highest priority of the sweeps with a waiting gang.
int HighestWaiting(const State& state, const Reachable& reachable, Time now, const Agenda& agenda,
                   const Hosts& hosts) {
  int highest = std::numeric_limits<int>::min();
  for (const auto& [id, sweep] : state.sweeps) {
    if (sweep.spec.priority > highest &&
        HasWaitingGang(state, sweep, reachable, now, agenda, hosts))
      highest = sweep.spec.priority;
  }
  return highest;
}

}  // namespace

int MostWorkers(const State& state, const Sweep& sweep, const Trial* trial, const Hosts& hosts,
                Time now) {
  const GangSpec& gang = sweep.spec.gang;
  const bool is_new = trial == nullptr || trial->attempts == 0;
  if (gang.grow == GrowthPolicy::kOldest || (gang.grow == GrowthPolicy::kBest && !is_new))
    return gang.workers;
  int64_t workers = CountWorkersThatFit(RequestFor(state, sweep, now), hosts);
  for (const TrialNumber number : sweep.live)
    workers += std::ssize(sweep.Find(number)->live->ranks);
  int64_t trials = std::ssize(sweep.live) + std::ssize(sweep.pending);
  if (MayCreate(sweep)) {
    const int most = sweep.spec.stop.max_trials;
    trials = most > 0 ? trials + most - sweep.created : std::numeric_limits<int>::max();
  }
  const int together = sweep.spec.max_concurrent_trials;
  if (together > 0) trials = std::min<int64_t>(trials, together);
  trials = std::max<int64_t>(std::min(trials, workers / MinWorkers(gang)), 1);
  const int64_t share = (workers + trials - 1) / trials;
  return static_cast<int>(std::clamp<int64_t>(share, MinWorkers(gang), gang.workers));
}

void GrowGang(const State& state, const Reachable& reachable, Time now, Agenda& agenda,
              Hosts& hosts, Facts& facts) {
  for (const Small& small : Candidates(state, now, agenda)) {
    const Attempt& live = *small.trial->live;
    if (agenda.without_growth.contains(live.epoch)) continue;
    const bool grows = IsAskedToGrow(*small.trial);
    if (grows && !AllReachable(state, hosts)) return;
    const int room = WorkersIfRestarted(state, small, hosts, now);
    if (room == 0 && !grows) {
      // The agenda does not notice that a gang's share grew or that an excluded executor restarted.
      if (small.sweep->spec.gang.grow != GrowthPolicy::kEven && small.sweep->excluded.empty())
        agenda.without_growth.insert(live.epoch);
      continue;
    }
    const bool waited_for = room > 0 && (MustSpareReservation(state, *small.sweep) ||
                                         HighestWaiting(state, reachable, now, agenda, hosts) >=
                                             small.sweep->spec.priority);
    const bool should = room > 0 && !waited_for;
    if (should == grows) return;  // no remaining candidate has a higher priority
    const std::string size = std::to_string(live.ranks.size()) + " of " +
                             std::to_string(small.sweep->spec.gang.workers) + " workers; ";
    const auto reason = [&](const std::string& why) {
      return Reason{.rule = "resize", .text = size + why};
    };
    const bool best = small.sweep->spec.gang.grow == GrowthPolicy::kBest;
    facts.push_back(TrialYielding{
        small.trial->id,
        should ? Verdict::Resize(reason("can grow to " + std::to_string(room) +
                                        (best ? ", as the best of these trials" : "")))
               : Verdict::Continue(reason(waited_for ? "a waiting gang needs the slots for more"
                                                     : "the free slots for more are gone"))});
    return;
  }
}

}  // namespace attune
