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
          "there is no executor " + name + "; `attune executor list` shows those there are"};
}

// Whether a gang of the sweep's has a place elsewhere, when it may have to wait for room there. The
// checkpoint that it saves now is read, or fetched, from there.
bool MayLeave(const State& state, const Sweep& sweep, const std::string& drained) {
  const GangRequest request = RequestFor(state, sweep);
  Hosts hosts;
  for (const auto& [name, executor] : state.executors) {
    if (TakesGangs(executor) && name != drained) hosts.Put(executor.host);
  }
  return !Nearest(request, hosts).empty();
}

// Whether it can be asked to leave, and would be started again.
bool GoesOn(const Sweep& sweep, const Trial& trial) {
  return trial.state == TrialState::kRunning && Wanted(trial) &&
         trial.live->verdict == VerdictKind::kContinue && (!sweep.stopping_as || trial.requested);
}

// One that is to leave and grow might be asked to stay after all.
bool MayBeAsked(const Trial& trial) {
  return !trial.yield || trial.yield->kind == VerdictKind::kResize;
}

TrialYielding Leaving(const Trial& trial, const std::string& executor, const std::string& why) {
  return {trial.id, Verdict::Pause({.rule = std::string(kExecutorDrained),
                                    .text = "saved and left, to go on elsewhere: executor " +
                                            executor + " is " + why})};
}

// Where it would gain nothing, or would not be started again, it stays to its end.
void Leave(const State& state, const Trial& trial, const std::string& drained, Facts& facts) {
  const Sweep& sweep = *state.Find(trial.id.sweep);
  if (GoesOn(sweep, trial) && MayLeave(state, sweep, drained))
    facts.push_back(Leaving(trial, drained, "drained"));
}

}  // namespace

Status DecideDrain(const State& state, const DrainExecutor& command, Facts& facts) {
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
    if (MayBeAsked(trial)) Leave(state, trial, executor.name, facts);
  }
  return {};
}

// Also where there is no other place yet: what is not saved now is lost. A program that only prints
// saves nothing, and may end by itself before.
void DecideLeave(const State& state, const LeaveExecutor& command, Facts& facts) {
  const auto known = state.executors.find(command.name);
  if (known == state.executors.end() || known->second.lost ||
      known->second.incarnation != command.incarnation)
    return;
  for (const auto& [epoch, id] : known->second.attempts) {
    const Trial& trial = *state.Find(id);
    const Sweep& sweep = *state.Find(id.sweep);
    if (MayBeAsked(trial) && GoesOn(sweep, trial) && sweep.spec.program.report_pattern.empty())
      facts.push_back(Leaving(trial, command.name, "about to end"));
  }
}

bool IsNeeded(const State& state, const Reachable& reachable, const std::string& executor) {
  const auto known = state.executors.find(executor);
  if (known == state.executors.end() || known->second.lost || known->second.folder.empty())
    return false;
  Hosts others;
  for (const auto& [name, other] : state.executors) {
    if (name == executor || !TakesGangs(other) || !reachable(name).takes) continue;
    if (other.folder == known->second.folder) return false;
    others.Put(other.host);
  }
  const auto goes_on_from = [&](const Trial& trial) {
    const Origin origin = OriginOf(state, trial);
    return origin.checkpoint != nullptr && origin.readers && origin.readers->contains(executor);
  };
  return std::ranges::any_of(state.sweeps, [&](const auto& entry) {
    const Sweep& sweep = entry.second;
    if (sweep.spec.External()) return false;
    const auto comes = [&](TrialNumber number) {
      const Trial& trial = *sweep.Find(number);
      return trial.live->state == AttemptState::kAssigned && FetchedFor(state, trial) &&
             goes_on_from(trial);
    };
    if (std::ranges::any_of(sweep.live, comes)) return true;
    const auto waits = [&](TrialNumber number) { return goes_on_from(*sweep.Find(number)); };
    return MayStart(sweep) && !Nearest(RequestFor(state, sweep), others).empty() &&
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

void LeaveDrained(const State& state, const Trial& trial, Facts& facts) {
  if (!trial.live) return;
  for (const RankSlot& slot : trial.live->ranks) {
    const auto executor = state.executors.find(slot.executor);  // forgotten, if its part has ended
    if (executor == state.executors.end()) continue;
    const auto& drain = executor->second.drain;
    if (drain && drain->now) return Leave(state, trial, slot.executor, facts);
  }
}

}  // namespace attune
