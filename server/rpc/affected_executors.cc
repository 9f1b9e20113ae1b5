#include "server/rpc/affected_executors.h"

#include <variant>

namespace attune::server {
namespace {

std::set<std::string> HostsOf(const std::vector<RankSlot>& ranks) {
  std::set<std::string> hosts;
  for (const RankSlot& rank : ranks) hosts.insert(rank.executor);
  return hosts;
}

}  // namespace

void AffectedExecutors::Load(const State& state) {
  hosts_of_trials_.clear();
  for (const auto& [id, sweep] : state.sweeps) {
    for (const TrialNumber number : sweep.live) {
      const Trial& trial = *sweep.Find(number);
      hosts_of_trials_[trial.id] = HostsOf(trial.live->ranks);
    }
  }
}

AffectedExecutors::Executors AffectedExecutors::Find(std::span<const Event> events) {
  Executors affected;
  for (const Event& event : events) {
    const Concerns concerns = InfoOf(event.fact).concerns;
    if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact))
      hosts_of_trials_[assigned->attempt.trial] = HostsOf(assigned->ranks);
    if (const auto* dropped = std::get_if<CheckpointDropped>(&event.fact))
      affected.names.insert(dropped->executor);  // this executor must delete the checkpoint
    if (concerns & kRemovals) affected.removals = true;
    if (concerns & kEveryExecutor) affected.all = true;
    if (concerns & kGangs) AddGangs(event.fact, affected);
    if (const auto* ended = std::get_if<AttemptEnded>(&event.fact))
      hosts_of_trials_.erase(ended->attempt.trial);
  }
  return affected;
}

void AffectedExecutors::AddGangs(const Fact& fact, Executors& affected) const {
  if (const auto trial = TrialOf(fact)) {
    Add(*trial, affected);
  } else if (const auto sweep = SweepOf(fact)) {
    Add(*sweep, affected);
  }
}

void AffectedExecutors::Add(const TrialId& trial, Executors& affected) const {
  const auto found = hosts_of_trials_.find(trial);
  if (found != hosts_of_trials_.end())
    affected.names.insert(found->second.begin(), found->second.end());
}

void AffectedExecutors::Add(SweepId sweep, Executors& affected) const {
  for (auto each = hosts_of_trials_.lower_bound(TrialId{sweep, TrialNumber{0}});
       each != hosts_of_trials_.end() && each->first.sweep == sweep; ++each)
    affected.names.insert(each->second.begin(), each->second.end());
}

}  // namespace attune::server
