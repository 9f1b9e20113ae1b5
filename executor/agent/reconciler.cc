#include "executor/agent/reconciler.h"

#include <algorithm>
#include <utility>

#include "executor/agent/messages.h"

namespace attune::agent {
namespace {

bool SameTrial(const gang::AttemptId& a, const gang::AttemptId& b) {
  return a.sweep == b.sweep && a.trial == b.trial;
}

std::set<uint32_t> Gpus(const v1::Assignment& assignment) {
  std::set<uint32_t> gpus;
  for (const v1::RankSlot& slot : assignment.ranks()) {
    gpus.insert(slot.gpus().begin(), slot.gpus().end());
  }
  return gpus;
}

bool HasRankZero(const v1::Assignment& assignment) {
  return std::ranges::any_of(assignment.ranks(),
                             [](const v1::RankSlot& slot) { return slot.rank() == 0; });
}

}  // namespace

void Reconciler::SetDesired(v1::Desired desired) {
  if (desired.revision() <= revision_) return;
  revision_ = desired.revision();
  wanted_.clear();
  for (v1::Assignment& assignment : *desired.mutable_assignments()) {
    wanted_[FromProto(assignment.attempt())] = std::move(assignment);
  }
  // After a restore the server may not know an acknowledged end any more; it must be reported
  // again.
  if (std::exchange(identity_, desired.identity()) != desired.identity())
    std::erase_if(ended_, [](const auto& end) { return end.second.acknowledged; });
  last_epoch_ = desired.last_epoch();
  unwanted_.clear();
  for (const v1::AttemptRef& attempt : desired.unwanted()) unwanted_.push_back(FromProto(attempt));
  failed_elsewhere_.clear();
  for (const v1::AttemptRef& attempt : desired.failed_elsewhere())
    failed_elsewhere_.insert(FromProto(attempt));
  ForgetOldEnds();
}

void Reconciler::ForgetDesired() {
  wanted_.clear();
  unwanted_.clear();
  failed_elsewhere_.clear();
  revision_ = 0;
}

Reconciler::Actions Reconciler::Reconcile() {
  Actions actions;
  for (auto& [attempt, gang] : live_) {
    if (gang.ending || wanted_.contains(attempt)) continue;
    gang.ending = true;
    (failed_elsewhere_.contains(attempt) ? actions.abort : actions.cancel).push_back(attempt);
  }
  for (const auto& [attempt, assignment] : wanted_) {
    const auto found = live_.find(attempt);
    if (found == live_.end() && attempt.epoch <= last_epoch_) {
      if (ended_.emplace(attempt, End{identity_}).second) actions.disown.push_back(attempt);
      continue;
    }
    if (IsStale(attempt)) continue;
    if (found != live_.end()) {
      if (!found->second.ending) AddUpdates(assignment, actions);
      continue;
    }
    // An older gang of this trial is cancelled, even if the server lists both.
    for (auto& [other, gang] : live_) {
      if (!SameTrial(other, attempt) || gang.ending) continue;
      gang.ending = true;
      actions.cancel.push_back(other);
    }
    if (!MayStart(assignment)) continue;
    live_.emplace(attempt, Gang{.gpus = Gpus(assignment),
                                .sweep_identity = assignment.identity(),
                                .identity = identity_});
    actions.start.push_back(assignment);
    AddUpdates(assignment, actions);
  }
  // Assignments that were withdrawn before they arrived or before they could start.
  for (const gang::AttemptId& attempt : unwanted_) {
    if (!live_.contains(attempt) && ended_.emplace(attempt, End{identity_}).second) {
      actions.disown.push_back(attempt);
    }
  }
  return actions;
}

void Reconciler::AddUpdates(const v1::Assignment& assignment, Actions& actions) {
  const gang::AttemptId attempt = FromProto(assignment.attempt());
  if (assignment.verdict_step() > 0)
    actions.set_verdict.emplace_back(attempt, ToVerdict(assignment));
  if (assignment.yield()) actions.yield.push_back(attempt);
  if (assignment.rank_zero_finished()) actions.peers_finished.push_back(attempt);
  const v1::Rendezvous& rendezvous = assignment.rendezvous();
  if (!HasRankZero(assignment) && !rendezvous.host().empty())
    actions.set_rendezvous.emplace_back(
        attempt, channel::Rendezvous{rendezvous.host(), static_cast<int>(rendezvous.port())});
}

std::vector<gang::AttemptId> Reconciler::CancelAll() {
  std::vector<gang::AttemptId> cancelled;
  for (auto& [attempt, gang] : live_) {
    if (!gang.ending) cancelled.push_back(attempt);
    gang.ending = true;
  }
  return cancelled;
}

std::vector<gang::AttemptId> Reconciler::RunningGangs() const {
  std::vector<gang::AttemptId> running;
  for (const auto& [attempt, gang] : live_) {
    if (!gang.ending) running.push_back(attempt);
  }
  return running;
}

std::vector<gang::AttemptId> Reconciler::LiveGangs() const {
  std::vector<gang::AttemptId> live;
  for (const auto& [attempt, gang] : live_) live.push_back(attempt);
  return live;
}

void Reconciler::OnEnded(const gang::AttemptId& attempt) {
  // The log may have changed its identity since this gang started.
  const auto found = live_.find(attempt);
  const uint64_t identity = found == live_.end() ? identity_ : found->second.identity;
  if (found != live_.end()) live_.erase(found);
  ended_.emplace(attempt, End{identity});
}

void Reconciler::OnEndAcknowledged(const gang::AttemptId& attempt) {
  const auto found = ended_.find(attempt);
  if (found != ended_.end()) found->second.acknowledged = true;
}

void Reconciler::ForgetOldEnds() {
  std::erase_if(ended_, [this](const auto& end) {
    return end.second.acknowledged && std::ranges::none_of(wanted_, [&](const auto& wish) {
             return SameTrial(wish.first, end.first);
           });
  });
}

bool Reconciler::IsStale(const gang::AttemptId& attempt) const {
  const auto is_newer = [&](const auto& other) {
    return SameTrial(other.first, attempt) && other.first.epoch > attempt.epoch;
  };
  // A larger epoch of an earlier identity may belong to the lost part of the log.
  const auto is_newer_here = [&](const auto& other) {
    return is_newer(other) && other.second.identity == identity_;
  };
  return std::ranges::any_of(wanted_, is_newer) || std::ranges::any_of(live_, is_newer_here) ||
         std::ranges::any_of(ended_, is_newer_here);
}

bool Reconciler::MayStart(const v1::Assignment& assignment) const {
  const gang::AttemptId attempt = FromProto(assignment.attempt());
  if (ended_.contains(attempt)) return false;
  const bool elsewhere = assignment.ranks_size() > 0 && !HasRankZero(assignment);
  if (elsewhere && !assignment.has_rendezvous()) return false;
  const std::set<uint32_t> gpus = Gpus(assignment);
  return std::ranges::none_of(live_, [&](const auto& other) {
    const bool shares_gpu =
        std::ranges::any_of(gpus, [&](uint32_t gpu) { return other.second.gpus.contains(gpu); });
    const bool shares_folder =
        other.first.sweep == attempt.sweep && other.second.sweep_identity != assignment.identity();
    return SameTrial(other.first, attempt) || shares_folder || (other.second.ending && shares_gpu);
  });
}

}  // namespace attune::agent
