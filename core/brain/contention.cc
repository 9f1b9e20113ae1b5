#include "core/brain/contention.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/brain/growth.h"
#include "core/brain/next_trial.h"
#include "core/state/origin.h"
#include "core/state/placement.h"

namespace attune {
namespace {

bool HasReservation(const State& state, const Sweep& sweep) {
  return state.reservation && state.reservation->sweep == sweep.id;
}

// The resources on this executor of gangs that started since the reservation.
Resources UsedSinceReservation(const State& state, const Executor& executor) {
  Resources used;
  const auto& attempts = executor.attempts;
  for (auto it = attempts.upper_bound(state.reservation->since); it != attempts.end(); ++it) {
    for (const RankSlot& slot : state.Find(it->second)->live->ranks) {
      if (slot.executor != executor.name) continue;
      used.cpus += slot.cpus;
      used.gpus += static_cast<int>(slot.gpus.size());
      used.memory_bytes += slot.memory_bytes;
    }
  }
  return used;
}

// Keeps only the `count` GPUs with the largest free shares.
void KeepLargest(size_t count, std::map<int, int>& shared) {
  while (shared.size() > count)
    shared.erase(std::ranges::min_element(shared, {}, [](const auto& gpu) { return gpu.second; }));
}

void MaskReserved(const State& state, Hosts& hosts) {
  const Resources& per_worker = state.Find(state.reservation->sweep)->spec.gang.per_worker;
  for (const auto& [name, workers] : state.reservation->workers) {
    if (hosts.Find(name) == nullptr) continue;
    const Executor& executor = state.executors.at(name);
    Host host = executor.host;
    const Resources need = ResourcesOf(per_worker, workers);
    const Resources used = UsedSinceReservation(state, executor);
    const auto left = [](auto total, auto reserved, auto taken) {
      return std::max<decltype(total)>(total - reserved - taken, 0);
    };
    host.cpus_free = std::min(host.cpus_free, left(host.total.cpus, need.cpus, used.cpus));
    host.memory_free = std::min(
        host.memory_free, left(host.total.memory_bytes, need.memory_bytes, used.memory_bytes));
    if (need.gpus > 0) {
      // A gang that takes shares counts as if it took a whole GPU for each rank.
      const auto gpus = static_cast<size_t>(left(host.total.gpus, need.gpus, used.gpus));
      if (host.gpus_free.size() > gpus) host.gpus_free.resize(gpus);
      KeepLargest(gpus - host.gpus_free.size(), host.shared);
    }
    hosts.Mask(std::move(host));
  }
}

// Masks the reserved slots if this sweep must not use them.
void MaskFor(const State& state, const Sweep& sweep, Hosts& hosts) {
  hosts.Unmask();
  if (MustSpareReservation(state, sweep)) MaskReserved(state, hosts);
}

// Whether some gang that the sweep would start now does not avoid the reserved executors. A trial
// that waits for executors with its checkpoint counts, because they may come back soon.
bool MayUse(const State& state, const Sweep& sweep, const Reservation& reservation,
            const Reachable& reachable, Time now) {
  SkippedTrials skipped;
  for (;;) {
    const Trial* waiting = NextWaiting(sweep, now, skipped);
    if (waiting == nullptr) return HasNext(sweep, now, skipped);
    const GangRequest request = RequestForNext(state, sweep, waiting, reachable, now);
    const bool avoids = std::ranges::any_of(reservation.workers, [&](const auto& entry) {
      return request.avoided.contains(entry.first);
    });
    if (!avoids) return true;
    skipped.insert(waiting->id.number);
  }
}

// Why the reservation is useless; empty if it is useful. A disconnected executor does not end it,
// so that a restart of the server changes no decision.
std::string ReasonToRelease(const State& state, const Agenda& agenda, const Reachable& reachable,
                            Time now) {
  const Reservation& reservation = *state.reservation;
  const Sweep* holder = state.Find(reservation.sweep);
  // While its searcher thinks, the sweep may soon have a gang.
  const bool thinks =
      holder != nullptr && holder->thinking && MayStart(*holder) && MayCreate(*holder);
  if (!thinks && !agenda.HasTurn(reservation.sweep)) return "the sweep has nothing to start now";
  const Resources& per_worker = holder->spec.gang.per_worker;
  for (const auto& [name, workers] : reservation.workers) {
    const auto executor = state.executors.find(name);
    if (executor == state.executors.end() || executor->second.lost)
      return "executor " + name + " is lost";
    if (executor->second.drain) return "executor " + name + " is drained";
    if (std::string why = WhyClosed(executor->second); !why.empty())
      return "no trial may start on executor " + name + ": " + why;
    if (ExcludedFrom(state, *holder).contains(name))
      return "executor " + name + " is excluded from the sweep";
    if (!LivesLongEnough(executor->second.host, MinRuntimeOf(*holder), now))
      return "executor " + name + " ends too soon";
    if (!Matches(holder->spec.gang.required, executor->second.host.labels))
      return "executor " + name + " no longer has " + ToString(holder->spec.gang.required);
    if (!IsWithin(ResourcesOf(per_worker, workers), executor->second.host.total))
      return "executor " + name + " is now too small";
  }
  if (!thinks && !MayUse(state, *holder, reservation, reachable, now))
    return "the waiting trials must start on other executors";
  return "";
}

// The drained executors that have the checkpoint: "a, b". `all` becomes true if no others have it.
std::string DrainedNames(const State& state, const GangRequest& request, bool& all) {
  std::string names;
  all = request.rank_zero_hosts.has_value();
  for (const auto& [name, executor] : state.executors) {
    if (executor.lost || (request.rank_zero_hosts && !request.rank_zero_hosts->contains(name)))
      continue;
    if (!executor.drain) all = false;
    if (executor.drain && Matches(request.required, executor.host.labels))
      names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

// Executors with the labels on which nothing starts: "a, b (drained), c (its disk has 0.1 GiB
// left)".
std::string ClosedNames(const State& state, const GangRequest& request) {
  std::map<std::string, std::string> names_by_reason;
  for (const auto& [name, executor] : state.executors) {
    const std::string why = executor.lost ? "" : WhyClosed(executor);
    if (why.empty() || !Matches(request.required, executor.host.labels)) continue;
    std::string& names = names_by_reason[why];
    names += (names.empty() ? "" : ", ") + name;
  }
  std::string text;
  for (const auto& [why, names] : names_by_reason)
    text += (text.empty() ? "" : ", ") + names + " (" + why + ")";
  return text;
}

// Connected executors that the gang avoids: "a, b".
std::string AvoidedNames(const GangRequest& request, const Hosts& hosts) {
  std::string names;
  for (const std::string& name : request.avoided) {
    if (hosts.Find(name) != nullptr) names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

// A message about the executors that end too soon for the gang; empty if there are none.
std::string DescribeEnding(const State& state, const GangRequest& request) {
  std::string names;
  for (const auto& [name, executor] : state.executors) {
    if (!TakesGangs(executor) ||
        (request.rank_zero_hosts && !request.rank_zero_hosts->contains(name)) ||
        !Matches(request.required, executor.host.labels) ||
        LivesLongEnough(executor.host, request.min_runtime, request.now))
      continue;
    const int64_t left_us = std::max<int64_t>(executor.host.end_time.us - request.now.us, 0);
    names +=
        (names.empty() ? "" : ", ") + name + " (in " + std::to_string(left_us / 1'000'000) + " s)";
  }
  if (names.empty()) return "";
  return "a gang needs " + FormatShort(request.min_runtime.value) +
         " s for its next report and a checkpoint, but these executors end sooner: " + names;
}

std::string DescribeShortage(const State& state, const Sweep& sweep, const GangRequest& request,
                             Hosts& hosts) {
  MaskFor(state, sweep, hosts);
  if (!Place(request, hosts).empty()) return "";
  bool all = false;
  const std::string drained = DrainedNames(state, request, all);
  if (all && !drained.empty())
    return "its checkpoint is on executor " + drained +
           ", which is drained and not connected; the trial waits until it reconnects or is lost";
  const std::string ending = DescribeEnding(state, request);
  GangRequest at_any_time = request;
  at_any_time.min_runtime = Seconds(0);
  if (!ending.empty() && !Place(at_any_time, hosts).empty()) return ending;
  std::string text = DescribeShortage(at_any_time, hosts);
  if (!ending.empty()) text += "; " + ending;
  const auto add = [&](const std::string& there, bool alone) {
    text = alone ? there + ", and no other executor is connected" : text + "; " + there;
  };
  if (const std::string closed = ClosedNames(state, request); !closed.empty())
    add("no trial may start on " + closed, hosts.List().empty());
  if (const std::string avoided = AvoidedNames(request, hosts); !avoided.empty())
    add("failure.on_log excludes " + avoided + " until a restart or `attune executor resume`",
        std::ranges::all_of(
            hosts.List(), [&](const Host* host) { return request.avoided.contains(host->name); }));
  if (!state.reservation) return text;
  std::string names;
  for (const auto& [name, workers] : state.reservation->workers)
    names += (names.empty() ? "" : ", ") + name;
  return text + "; slots of " + names + " are reserved for " +
         (HasReservation(state, sweep) ? "it" : "sweep " + ToString(state.reservation->sweep));
}

Hosts ReachableHosts(const State& state, const Reachable& reachable) {
  Hosts hosts;
  for (const auto& [name, executor] : state.executors) {
    if (TakesGangs(executor) && reachable(name).takes) hosts.Update(executor.host);
  }
  return hosts;
}

// Whether the gang would start if every executor that is not lost were free and took gangs.
bool CanStart(const State& state, GangRequest request) {
  request.avoided.clear();
  request.min_runtime = Seconds(0);
  Hosts hosts;
  for (const auto& [name, executor] : state.executors) {
    if (!executor.lost) hosts.Update(executor.host);
  }
  return !FindNearest(request, hosts).empty();
}

// One round over the sweeps whose turn it may be.
class Round {
 public:
  Round(const State& state, const Reachable& reachable, Time now, Agenda& agenda, Hosts& hosts,
        Facts& facts)
      : state_(state),
        reachable_(reachable),
        now_(now),
        agenda_(agenda),
        hosts_(hosts),
        facts_(facts) {}

  void Run() {
    Agenda::Line line = agenda_.MakeLine(state_);
    while (const auto next = line.Next()) {
      if (agenda_.IsWaiting(*next)) continue;
      Try(*state_.Find(*next));
      if (!facts_.empty()) return;
    }
    agenda_.NoteNothingStarts();
  }

 private:
  void Try(const Sweep& sweep) {
    SetMasked(MustSpareReservation(state_, sweep));
    SkippedTrials skipped;
    std::optional<GangRequest> first;  // the first gang that does not fit now, but could
    for (;;) {
      const Trial* waiting = NextWaiting(sweep, now_, skipped);
      if (waiting == nullptr && !HasNext(sweep, now_, skipped)) break;
      GangRequest request = RequestForNext(state_, sweep, waiting, reachable_, now_);
      request.max_workers = MostWorkers(state_, sweep, waiting, hosts_, now_);
      if (!request.avoided.empty()) agenda_.MarkHostLimits(sweep.id);
      const bool anywhere = !request.has_host_limits;
      const Agenda::Kind kind{.workers = request.min_workers,
                              .per_worker = request.per_worker,
                              .gpu_percent = request.gpu_percent,
                              .placement = request.placement,
                              .masked = masked_,
                              .required = request.required,
                              .min_runtime = request.min_runtime.value,
                              .avoided = request.avoided};
      const auto known = anywhere ? agenda_.without_room.find(kind) : agenda_.without_room.end();
      bool large_enough = false;
      if (known != agenda_.without_room.end()) {
        // Executors that were large enough may now be too close to their ends.
        large_enough = known->second &&
                       (request.min_runtime.value == 0 || !FindNearest(request, hosts_).empty());
      } else if (auto ranks = Place(request, hosts_); !ranks.empty()) {
        return Start(sweep, std::move(ranks), skipped);
      } else {
        large_enough = !FindNearest(request, hosts_).empty();
        if (anywhere) agenda_.without_room.emplace(kind, large_enough);
      }
      if (large_enough && !first) first = std::move(request);
      if (anywhere) break;
      agenda_.MarkHostLimits(sweep.id);
      skipped.insert(waiting->id.number);
    }
    if (passed_ != nullptr || !first) return;
    passed_ = &sweep;
    passed_request_ = *std::move(first);
  }

  void Start(const Sweep& sweep, std::vector<RankSlot> ranks, const SkippedTrials& skipped) {
    Facts start;
    StartNext(state_, sweep, std::move(ranks), "", now_, start, skipped);
    if (start.empty()) {
      agenda_.MarkWaiting(sweep.id);
      if (HasReservation(state_, sweep))
        facts_.push_back(ReservationReleased{sweep.id, "its searcher has nothing to start now"});
      return;
    }
    if (passed_ != nullptr && !HasReservation(state_, *passed_)) return Reserve(sweep);
    facts_ = std::move(start);
  }

  void Reserve(const Sweep& next) {
    hosts_.Unmask();
    std::vector<GangPart> parts = FindNearest(passed_request_, hosts_);
    SlotsReserved fact{passed_->id, parts.front().executor,
                       DescribeShortage(state_, *passed_, passed_request_, hosts_) + "; sweep " +
                           ToString(next.id) + " must not delay it forever"};
    if (parts.size() > 1) fact.parts = std::move(parts);
    facts_.push_back(std::move(fact));
  }

  void SetMasked(bool masked) {
    if (masked == masked_) return;
    masked_ = masked;
    hosts_.Unmask();
    if (masked) MaskReserved(state_, hosts_);
  }

  const State& state_;
  const Reachable& reachable_;
  const Time now_;
  Agenda& agenda_;
  Hosts& hosts_;
  Facts& facts_;
  bool masked_ = false;
  const Sweep* passed_ = nullptr;  // the first sweep whose gang does not fit now, but could
  GangRequest passed_request_;
};

}  // namespace

GangRequest RequestFor(const State& state, const Sweep& sweep, Time now) {
  GangRequest request = RequestFor(sweep.spec.gang);
  request.avoided = ExcludedFrom(state, sweep);
  request.min_runtime = state.ending.empty() ? Seconds(0) : MinRuntimeOf(sweep);
  request.now = now;
  return request;
}

bool MustSpareReservation(const State& state, const Sweep& sweep) {
  if (!state.reservation || HasReservation(state, sweep)) return false;
  const Sweep* holder = state.Find(state.reservation->sweep);  // null: it is released soon
  return holder != nullptr && holder->spec.priority >= sweep.spec.priority;
}

GangRequest RequestForNext(const State& state, const Sweep& sweep, const Trial* waiting,
                           const Reachable& reachable, Time now) {
  GangRequest request = RequestFor(state, sweep, now);
  // A paused trial is promoted once any gang of the sweep fits. After that, its own request counts.
  if (waiting == nullptr || waiting->state == TrialState::kPaused) return request;
  if (std::set<std::string> avoided = AvoidedBy(state, *waiting); !avoided.empty()) {
    GangRequest elsewhere = request;
    elsewhere.avoided.merge(avoided);
    if (!FindNearest(elsewhere, ReachableHosts(state, reachable)).empty()) {
      request = std::move(elsewhere);
      request.has_host_limits = true;
    }
  }
  Origin origin = OriginOf(state, *waiting);
  if (origin.checkpoint == nullptr) return request;
  if (!origin.readers) {
    request.preferred = origin.checkpoint->executor;
  } else if (std::ranges::any_of(*origin.readers,
                                 [&](const std::string& name) { return reachable(name).sends; })) {
    request.preferred_rank_zero_hosts = std::move(origin.readers);
  } else if (!origin.is_stored) {
    request.rank_zero_hosts = std::move(origin.readers);
    request.has_host_limits = true;
  }
  return request;
}

void StartGang(const State& state, const Reachable& reachable, Time now, Agenda& agenda,
               Facts& facts) {
  if (state.reservation) {
    if (std::string why = ReasonToRelease(state, agenda, reachable, now); !why.empty()) {
      facts.push_back(ReservationReleased{state.reservation->sweep, std::move(why)});
      return;
    }
  }
  Hosts& hosts = agenda.UpdateHosts(state, reachable);
  if (agenda.MayStartGang()) Round(state, reachable, now, agenda, hosts, facts).Run();
  if (facts.empty()) GrowGang(state, reachable, now, agenda, hosts, facts);
}

int GangsToStart(const Sweep& sweep, Time now) {
  SkippedTrials waiting(sweep.pending.begin(), sweep.pending.end());
  const auto ready = [&](TrialNumber number) { return sweep.Find(number)->not_before <= now; };
  int64_t gangs = std::ranges::count_if(sweep.pending, ready);
  if (HasNext(sweep, now, waiting)) {
    const int max_trials = sweep.spec.stop.max_trials;
    gangs += NextWaiting(sweep, now, waiting) != nullptr ? 1
             : max_trials > 0                            ? max_trials - sweep.created
                                                         : kDemandGangsMax;
  }
  if (const int most = sweep.spec.max_concurrent_trials; most > 0)
    gangs = std::min<int64_t>(gangs, most - std::ssize(sweep.live));
  return static_cast<int>(std::min<int64_t>(gangs, kDemandGangsMax));
}

std::string DescribeShortage(const State& state, const Sweep& sweep, const Trial* waiting,
                             const Reachable& reachable, Time now) {
  Hosts hosts = ReachableHosts(state, reachable);
  const GangRequest request = RequestForNext(state, sweep, waiting, reachable, now);
  return DescribeShortage(state, sweep, request, hosts);
}

std::string Waiting(const State& state, const Sweep& sweep, const Reachable& reachable, Time now) {
  if (sweep.spec.External() || !MayStart(sweep)) return "";
  // A sweep with running gangs and no waiting trial waits only for itself.
  const Trial* waiting = NextWaiting(sweep, now);
  if (waiting == nullptr && !(sweep.live.empty() && HasNext(sweep, now))) return "";
  return DescribeShortage(state, sweep, waiting, reachable, now);
}

std::vector<Demand> Demands(const State& state, const Reachable& reachable, Time now) {
  Hosts hosts = ReachableHosts(state, reachable);
  std::vector<Demand> demands;
  for (const auto& [id, sweep] : state.sweeps) {
    if (sweep.spec.External() || !MayStart(sweep)) continue;
    const int gangs = GangsToStart(sweep, now);
    if (gangs <= 0) continue;
    GangRequest request = RequestForNext(state, sweep, NextWaiting(sweep, now), reachable, now);
    std::string reason = DescribeShortage(state, sweep, request, hosts);
    if (reason.empty()) continue;
    const bool can_start = CanStart(state, request);
    demands.push_back({id, std::move(request), gangs, std::move(reason), can_start});
  }
  return demands;
}

std::string Waiting(const State& state, const Trial& trial, const Reachable& reachable, Time now) {
  const Sweep& sweep = *state.Find(trial.id.sweep);
  if (trial.state != TrialState::kPending && trial.state != TrialState::kPaused) return "";
  if (sweep.state == SweepState::kPaused) return "its sweep is paused";
  if (trial.live) return "its last attempt is still ending";
  if (trial.state == TrialState::kPaused) return "the scheduler has not promoted it";
  if (trial.not_before > now) return "waits before its restart (failure.backoff)";
  if (sweep.spec.External()) return "no client has asked for it";
  if (!MayStart(sweep))
    return "max_concurrent_trials: " + std::to_string(sweep.live.size()) + " trials are running";
  const std::string shortage = DescribeShortage(state, sweep, &trial, reachable, now);
  return shortage.empty() ? "waits for its turn" : shortage;
}

}  // namespace attune
