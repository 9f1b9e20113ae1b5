#include "core/brain/drain.h"

#include <algorithm>
#include <string>

#include "base/result.h"
#include "core/brain/contention.h"
#include "core/brain/decide.h"
#include "core/brain/next_trial.h"
#include "core/state/origin.h"
#include "core/state/placement.h"

namespace attune {
namespace {

Error NoExecutor(const std::string& name) {
  return {ErrorCode::kNotFound,
          "there is no executor " + name + "; `attune executor list` lists the existing ones"};
}

// Whether a gang of the sweep could run on other executors, perhaps after waiting for free
// resources.
bool MayLeave(const State& state, const Sweep& sweep, const std::string& drained, Time now) {
  const GangRequest request = RequestFor(state, sweep, now);
  Hosts hosts;
  for (const auto& [name, executor] : state.executors) {
    if (TakesGangs(executor) && name != drained) hosts.Update(executor.host);
  }
  return !FindNearest(request, hosts).empty();
}

// Whether the trial can be asked to leave and would start again afterwards.
bool CanMove(const Sweep& sweep, const Trial& trial) {
  return trial.state == TrialState::kRunning && ShouldRun(trial) &&
         trial.live->verdict == VerdictKind::kContinue && (!sweep.stopping_as || trial.requested);
}

// False if the trial is already asked to leave. A request to grow may still be withdrawn, so it
// does not count.
bool MayBeAsked(const Trial& trial) {
  return !trial.yield_verdict || trial.yield_verdict->kind == VerdictKind::kResize;
}

TrialYielding MakeLeaveOrder(const Trial& trial, const std::string& executor,
                             const std::string& why) {
  return {trial.id, Verdict::Pause({.rule = std::string(kExecutorDrained),
                                    .text = "saved and left, to continue elsewhere: executor " +
                                            executor + " is " + why})};
}

// Asks the trial to leave, except if it has no other place, or would not start again.
void Leave(const State& state, const Trial& trial, const std::string& drained, Time now,
           Facts& facts) {
  const Sweep& sweep = *state.Find(trial.id.sweep);
  if (CanMove(sweep, trial) && MayLeave(state, sweep, drained, now))
    facts.push_back(MakeLeaveOrder(trial, drained, "drained"));
}

}  // namespace

Status DecideDrain(const State& state, const DrainExecutor& command, Time now, Facts& facts) {
  const auto known = state.executors.find(command.name);
  if (known == state.executors.end()) return NoExecutor(command.name);
  const Executor& executor = known->second;
  ExecutorDrained fact{executor.name, command.reason, command.now};
  if (const auto& before = executor.drain) {
    if (fact.reason.empty()) fact.reason = before->reason;
    fact.now = fact.now || before->now;
  }
  if (!executor.drain || fact.reason != executor.drain->reason || fact.now != executor.drain->now)
    facts.push_back(fact);
  if (!command.now) return {};
  for (const auto& [epoch, id] : executor.attempts) {
    const Trial& trial = *state.Find(id);
    if (MayBeAsked(trial)) Leave(state, trial, executor.name, now, facts);
  }
  return {};
}

// Trials leave even if they have no other place now, because progress that is not saved would be
// lost. A program whose output is parsed saves nothing, so it continues and may still finish.
void DecideLeave(const State& state, const LeaveExecutor& command, Facts& facts) {
  const auto known = state.executors.find(command.name);
  if (known == state.executors.end() || known->second.lost ||
      known->second.incarnation != command.incarnation)
    return;
  for (const auto& [epoch, id] : known->second.attempts) {
    const Trial& trial = *state.Find(id);
    const Sweep& sweep = *state.Find(id.sweep);
    if (MayBeAsked(trial) && CanMove(sweep, trial) && sweep.spec.program.report_pattern.empty())
      facts.push_back(MakeLeaveOrder(trial, command.name, "about to end"));
  }
}

bool IsNeeded(const State& state, const Reachable& reachable, const std::string& executor,
              bool or_later, Time now) {
  const auto known = state.executors.find(executor);
  if (known == state.executors.end() || known->second.lost || known->second.folder.empty())
    return false;
  Hosts others;
  for (const auto& [name, other] : state.executors) {
    if (name == executor || !TakesGangs(other) || !reachable(name).takes) continue;
    if (other.folder == known->second.folder) return false;
    others.Update(other.host);
  }
  const auto goes_on_from = [&](const Trial& trial) {
    const Origin origin = OriginOf(state, trial);
    return origin.checkpoint != nullptr && !origin.is_stored && origin.readers &&
           origin.readers->contains(executor);
  };
  return std::ranges::any_of(state.sweeps, [&](const auto& entry) {
    const Sweep& sweep = entry.second;
    if (sweep.spec.External()) return false;
    const auto comes = [&](TrialNumber number) {
      const Trial& trial = *sweep.Find(number);
      return trial.live->state == AttemptState::kAssigned && CheckpointToFetch(state, trial) &&
             goes_on_from(trial);
    };
    if (std::ranges::any_of(sweep.live, comes)) return true;
    // The gang has left this executor, but not yet the others.
    const auto leaves = [&](TrialNumber number) {
      const Trial& trial = *sweep.Find(number);
      return trial.live->ended_parts.contains(executor) && goes_on_from(trial);
    };
    if (std::ranges::any_of(sweep.live, leaves)) return true;
    const auto waits = [&](TrialNumber number) { return goes_on_from(*sweep.Find(number)); };
    return MayStart(sweep) &&
           (or_later || !FindNearest(RequestFor(state, sweep, now), others).empty()) &&
           std::ranges::any_of(sweep.pending, waits);
  });
}

Status DecideResume(const State& state, const ResumeExecutor& command, Facts& facts) {
  const auto known = state.executors.find(command.name);
  if (known == state.executors.end()) return NoExecutor(command.name);
  const bool is_avoided = std::ranges::any_of(state.sweeps, [&](const auto& entry) {
    const Sweep& sweep = entry.second;
    return ExcludedFrom(state, sweep).contains(command.name) ||
           std::ranges::any_of(sweep.pending, [&](TrialNumber number) {
             return AvoidedBy(state, *sweep.Find(number)).contains(command.name);
           });
  });
  if (known->second.drain || known->second.quarantine || is_avoided)
    facts.push_back(ExecutorResumed{command.name});
  return {};
}

void LeaveIfDrained(const State& state, const Trial& trial, Time now, Facts& facts) {
  if (!trial.live) return;
  for (const RankSlot& slot : trial.live->ranks) {
    const auto executor = state.executors.find(slot.executor);  // it may be forgotten
    if (executor == state.executors.end()) continue;
    const auto& drain = executor->second.drain;
    if (drain && drain->now) return Leave(state, trial, slot.executor, now, facts);
  }
}

}  // namespace attune
