#include "core/brain/agenda.h"

#include <algorithm>

#include "core/brain/next_trial.h"
#include "core/state/stoppers.h"

namespace attune {
namespace {

// The end of a budget of GPU-hours is computed with rounding errors. So every pass checks a sweep
// in the last kRoundingUs before its deadline.
constexpr int64_t kRoundingUs = 10'000;

Agenda::Turn TurnOf(const State& state, const Sweep& sweep, const Occupied& total) {
  const bool reserves = state.reservation && state.reservation->sweep == sweep.id;
  return {-sweep.spec.priority, !reserves, DominantShare(sweep.used, total), sweep.id};
}

}  // namespace

double DominantShare(const Occupied& used, const Occupied& total) {
  const auto share = [](auto part, auto whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
  };
  return std::max({share(used.cpus, total.cpus), share(used.gpu_percent, total.gpu_percent),
                   share(used.memory_bytes, total.memory_bytes)});
}

void Add(const Occupied& more, int sign, Occupied& total) {
  total.cpus += sign * more.cpus;
  total.gpu_percent += sign * more.gpu_percent;
  total.memory_bytes += sign * more.memory_bytes;
}

Occupied AllOf(const Resources& resources) {
  return {resources.cpus, int64_t{100} * resources.gpus, resources.memory_bytes};
}

std::optional<Time> EndTimeOf(const Executor& executor) {
  if (executor.host.lifetime.value == 0) return std::nullopt;
  return executor.host.end_time;
}

std::optional<Time> DueOf(const Sweep& sweep, const ExecutorEnds& ends, Time now) {
  std::optional<Time> first;
  const auto consider = [&](Time time) {
    if (time > now && (!first || time < *first)) first = time;
  };
  if (!sweep.leases.empty()) consider(sweep.leases.begin()->first);
  if (sweep.state != SweepState::kRunning) return first;
  const auto later =
      std::ranges::find_if(sweep.delayed, [&](const auto& entry) { return entry.first > now; });
  if (later != sweep.delayed.end()) consider(later->first);
  if (const auto deadline = Deadline(sweep)) consider(*deadline);
  const auto grows = sweep.small.upper_bound({now, TrialNumber(~uint32_t{0})});
  if (grows != sweep.small.end()) consider(grows->first);
  if (ends.empty() || sweep.spec.External() || (sweep.small.empty() && !MayStart(sweep)))
    return first;
  const auto needs_us = static_cast<int64_t>(MinRuntimeOf(sweep).value * 1e6);
  const auto end = ends.lower_bound({Time{now.us + needs_us}, ""});
  if (end != ends.end()) consider(Time{end->first.us - needs_us + 1});
  return first;
}

// ---- updates after changes ------------------------------------------------------------------

void Agenda::Update(const State& state, const ChangedParts& changed) {
  if (changed.all) return UpdateAll(state);
  sweeps_.insert(changed.sweeps.begin(), changed.sweeps.end());
  for (const SweepId id : changed.sweeps) {
    UpdateUse(state, id);
    UpdateSmallGangs(state, id);
  }
  for (const std::string& name : changed.executors) UpdateExecutor(state, name);
  if (changed.reservation) UpdateReservation(state);
}

void Agenda::UpdateAll(const State& state) {
  *this = Agenda();
  for (const auto& [id, sweep] : state.sweeps) {
    sweeps_.insert(id);
    UpdateUse(state, id);
    UpdateSmallGangs(state, id);
  }
  for (const auto& [name, executor] : state.executors) UpdateExecutor(state, name);
  UpdateReservation(state);
}

// Updates the resources that the sweep, and so its owner, uses.
void Agenda::UpdateUse(const State& state, SweepId id) {
  const Sweep* sweep = state.Find(id);
  const auto known = use_of_.find(id);
  if (known != use_of_.end()) {
    Add(known->second.used, -1, owners_[known->second.owner].used);
    known->second.used = {};
  }
  if (sweep == nullptr) return;
  Add(sweep->used, 1, owners_[sweep->owner].used);
  use_of_[id] = {sweep->owner, sweep->used};
}

void Agenda::UpdateSmallGangs(const State& state, SweepId id) {
  const Sweep* sweep = state.Find(id);
  if (sweep != nullptr && !sweep->small.empty()) {
    small_.insert(id);
  } else {
    small_.erase(id);
  }
}

void Agenda::UpdateExecutor(const State& state, const std::string& name) {
  outdated_.insert(name);
  const auto executor = state.executors.find(name);
  const bool known = executor != state.executors.end();
  std::optional<Present> present;
  if (known && !executor->second.lost)
    present = Present{executor->second.host.total, executor->second.incarnation,
                      !TakesGangs(executor->second), EndTimeOf(executor->second)};
  const auto before = present_.find(name);
  const bool changed = before == present_.end() ? present.has_value() : present != before->second;
  if (changed) {
    shares_stale_ = true;
    NoteMoreRoom();  // also for trials whose checkpoint has become unavailable
    const auto end_before =
        before == present_.end() ? std::optional<Time>() : before->second.end_time;
    if (end_before != (present ? present->end_time : std::nullopt)) {
      for (const auto& [sweep, use] : use_of_) sweeps_.insert(sweep);  // their due times may change
    }
    if (before != present_.end()) {
      Add(AllOf(before->second.total), -1, total_);
      if (before->second.end_time) ends_.erase({*before->second.end_time, name});
      present_.erase(before);
    }
    if (present) {
      Add(AllOf(present->total), 1, total_);
      present_.emplace(name, *present);
    }
    if (present && present->end_time) ends_.emplace(*present->end_time, name);
  }
  quarantined_.erase(name);
  if (known && executor->second.quarantine)
    quarantined_.emplace(name, executor->second.quarantine->until);
  if (const auto since = lost_at_.find(name); since != lost_at_.end()) {
    lost_.erase({since->second, name});
    lost_at_.erase(since);
  }
  if (known && CanBeForgotten(executor->second)) {
    lost_.emplace(executor->second.lost_at, name);
    lost_at_.emplace(name, executor->second.lost_at);
  }
}

void Agenda::UpdateReservation(const State& state) {
  const auto before = reserver_;
  reserver_.reset();
  if (state.reservation) reserver_ = state.reservation->sweep;
  for (const auto& id : {before, reserver_}) {
    const Sweep* sweep = id ? state.Find(*id) : nullptr;
    if (sweep != nullptr && HasTurn(*id)) SetTurn(state, *sweep);
  }
  NoteMoreRoom();
}

void Agenda::NoteMoreRoom() {
  without_room.clear();
  without_growth.clear();
  may_start_ = true;
}

// ---- sweeps ---------------------------------------------------------------------------------

std::vector<SweepId> Agenda::Sweeps(Time now) {
  while (!due_.empty() && due_.begin()->first.us - kRoundingUs <= now.us) {
    const SweepId id = due_.begin()->second;
    due_.erase(due_.begin());
    due_of_.erase(id);
    sweeps_.insert(id);
  }
  return {sweeps_.begin(), sweeps_.end()};
}

// A gang that needs less time than before may start or grow on an executor that ends soon. A gang
// that needs more time may do so on an executor whose whole lifetime is shorter than that.
void Agenda::NoteMinRuntime(const State& state, const Sweep& sweep) {
  const Seconds needs = state.ending.empty() ? Seconds(0) : MinRuntimeOf(sweep);
  const Seconds before =
      std::exchange(min_runtime_of_.try_emplace(sweep.id, needs).first->second, needs);
  if (needs == before) return;
  may_start_ = true;
  without_growth.clear();
}

void Agenda::SetIdle(const State& state, const Sweep& sweep, Time now) {
  NoteMinRuntime(state, sweep);
  if (sweep.spec.External() || !MayStart(sweep) || !HasNext(sweep, now)) {
    RemoveTurn(sweep.id);
  } else {
    may_start_ |=
        !HasTurn(sweep.id) || waiting_.contains(sweep.id) || host_limited_.contains(sweep.id);
    SetTurn(state, sweep);
  }
  waiting_.erase(sweep.id);
  host_limited_.erase(sweep.id);  // the next round marks it again if necessary
  Forget(sweep.id);
  const auto deadline = Deadline(sweep);
  if (deadline && deadline->us - kRoundingUs <= now.us) sweeps_.insert(sweep.id);
  if (const auto due = DueOf(sweep, ends_, now)) {
    if (due->us - kRoundingUs <= now.us) {
      sweeps_.insert(sweep.id);
    } else {
      due_.emplace(*due, sweep.id);
      due_of_.emplace(sweep.id, *due);
    }
  }
}

void Agenda::RemoveSweep(SweepId sweep) {
  RemoveTurn(sweep);
  Forget(sweep);
  waiting_.erase(sweep);
  host_limited_.erase(sweep);
  min_runtime_of_.erase(sweep);
  use_of_.erase(sweep);
}

void Agenda::Forget(SweepId sweep) {
  sweeps_.erase(sweep);
  const auto due = due_of_.find(sweep);
  if (due == due_of_.end()) return;
  due_.erase({due->second, sweep});
  due_of_.erase(due);
}

std::optional<Time> Agenda::Due(const State& state, Time now) const {
  std::optional<Time> first;
  const auto consider = [&](Time time) {
    if (time > now && (!first || time < *first)) first = time;
  };
  for (const SweepId id : sweeps_) {
    const Sweep* sweep = state.Find(id);
    if (sweep == nullptr) continue;
    if (const auto due = DueOf(*sweep, ends_, now)) consider(*due);
  }
  for (const auto& [time, sweep] : due_) {
    consider(time);
    if (time > now) break;
  }
  if (!lost_.empty()) consider(Time{lost_.begin()->first.us + kForgetLostAfterUs});
  for (const auto& [name, until] : quarantined_) consider(until);
  for (const auto& [sweep, deletion] : state.deletions) consider(deletion.at);
  return first;
}

// ---- gangs ----------------------------------------------------------------------------------

void Agenda::SetTurn(const State& state, const Sweep& sweep) {
  std::set<Turn>& turns = owners_[sweep.owner].turns;
  const Turn turn = TurnOf(state, sweep, total_);
  const auto [known, fresh] = turn_of_.try_emplace(sweep.id, turn);
  if (!fresh) {
    if (known->second == turn) return;
    // A higher priority than before may take slots that are reserved.
    may_start_ |= std::get<int>(known->second) != std::get<int>(turn);
    turns.erase(known->second);
    known->second = turn;
  }
  turns.insert(turn);
}

void Agenda::RemoveTurn(SweepId sweep) {
  const auto known = turn_of_.find(sweep);
  if (known == turn_of_.end()) return;
  owners_[use_of_.at(sweep).owner].turns.erase(known->second);
  turn_of_.erase(known);
}

Agenda::Line Agenda::MakeLine(const State& state) {
  if (std::exchange(shares_stale_, false)) {
    for (const auto& [id, turn] : turn_of_) SetTurn(state, *state.Find(id));
  }
  Line line;
  for (const auto& [name, owner] : owners_)
    line.Add({DominantShare(owner.used, total_), owner.turns.begin(), owner.turns.end()});
  return line;
}

void Agenda::Line::Add(const OwnerTurns& turns) {
  if (turns.next == turns.end) return;
  const auto& [priority, reserves, share, sweep] = *turns.next;
  owners_.emplace(std::tuple(priority, reserves, turns.share, share, sweep), turns);
}

std::optional<SweepId> Agenda::Line::Next() {
  if (owners_.empty()) return std::nullopt;
  const auto first = owners_.begin();
  const SweepId sweep = std::get<SweepId>(first->first);
  OwnerTurns turns = first->second;
  owners_.erase(first);
  ++turns.next;
  Add(turns);
  return sweep;
}

Hosts& Agenda::UpdateHosts(const State& state, const Reachable& reachable) {
  for (const std::string& name : std::exchange(outdated_, {})) UpdateHost(state, reachable, name);
  if (recheck_reachable_ ||
      ((may_start_ || !small_.empty() || !host_limited_.empty()) && !asked_)) {
    for (const auto& [name, total] : present_) UpdateHost(state, reachable, name);
    recheck_reachable_ = false;
    asked_ = true;
  }
  hosts_.Unmask();
  return hosts_;
}

void Agenda::UpdateHost(const State& state, const Reachable& reachable, const std::string& name) {
  const auto executor = state.executors.find(name);
  const bool known = executor != state.executors.end() && !executor->second.lost;
  const Reach reach = known ? reachable(name) : Reach(false);
  if (!reach.sends) {
    senders_.erase(name);
  } else if (senders_.insert(name).second) {
    NoteMoreRoom();  // for trials whose checkpoint it can send
  }
  if (reach.takes && TakesGangs(executor->second)) {
    if (hosts_.Update(executor->second.host)) NoteMoreRoom();
  } else if (hosts_.Remove(name)) {
    without_room.clear();
    // A trial may have avoided another executor only because this one was available.
    may_start_ |= !host_limited_.empty();
  }
}

}  // namespace attune
