#include "server/rpc/touched.h"

#include <variant>

namespace attune::server {
namespace {

std::set<std::string> HostsOf(const std::vector<RankSlot>& ranks) {
  std::set<std::string> hosts;
  for (const RankSlot& rank : ranks) hosts.insert(rank.executor);
  return hosts;
}

}  // namespace

void Touched::Load(const State& state) {
  where_.clear();
  for (const auto& [id, sweep] : state.sweeps) {
    for (const TrialNumber number : sweep.live) {
      const Trial& trial = *sweep.Find(number);
      where_[trial.id] = HostsOf(trial.live->ranks);
    }
  }
}

Touched::Executors Touched::By(std::span<const Event> events) {
  Executors touched;
  for (const Event& event : events) {
    const Concerns concerns = InfoOf(event.fact).concerns;
    if (const auto* assigned = std::get_if<AttemptAssigned>(&event.fact))
      where_[assigned->attempt.trial] = HostsOf(assigned->ranks);
    if (const auto* dropped = std::get_if<CheckpointDropped>(&event.fact))
      touched.names.insert(dropped->executor);  // it deletes the checkpoint
    if (concerns & kRemovals) touched.removals = true;
    if (concerns & kEveryExecutor) touched.all = true;
    if (concerns & kGangs) AddGangs(event.fact, touched);
    if (const auto* ended = std::get_if<AttemptEnded>(&event.fact))
      where_.erase(ended->attempt.trial);
  }
  return touched;
}

void Touched::AddGangs(const Fact& fact, Executors& touched) const {
  if (const auto trial = TrialOf(fact)) {
    Add(*trial, touched);
  } else if (const auto sweep = SweepOf(fact)) {
    Add(*sweep, touched);
  }
}

void Touched::Add(const TrialId& trial, Executors& touched) const {
  const auto found = where_.find(trial);
  if (found != where_.end()) touched.names.insert(found->second.begin(), found->second.end());
}

void Touched::Add(SweepId sweep, Executors& touched) const {
  for (auto each = where_.lower_bound(TrialId{sweep, TrialNumber{0}});
       each != where_.end() && each->first.sweep == sweep; ++each)
    touched.names.insert(each->second.begin(), each->second.end());
}

}  // namespace attune::server
