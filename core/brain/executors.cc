#include "core/brain/executors.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/brain/record.h"
#include "core/log/joining.h"

namespace attune {
namespace {

// The executor with this name; null if there is none, or if it is lost.
const Executor* FindPresent(const State& state, const std::string& name) {
  const auto known = state.executors.find(name);
  return known == state.executors.end() || known->second.lost ? nullptr : &known->second;
}

// Ends the executor's parts of gangs, so that their trials continue elsewhere.
void RecordLoss(const State& state, const Executor& executor, const std::string& reason, Time now,
                Facts& facts) {
  std::set<TrialId> ended_trials;  // an earlier trial in this loop may have ended its whole sweep
  size_t next_fact = 0;
  for (const auto& [epoch, id] : executor.attempts) {
    for (; next_fact < facts.size(); ++next_fact) {
      if (const auto* ended = std::get_if<TrialEnded>(&facts[next_fact]))
        ended_trials.insert(ended->trial);
    }
    const Trial& trial = *state.Find(id);
    AttemptEnded end{trial.live->id, Outcome::kLost, {}};
    end.failure.message = "executor " + executor.name + " was lost: " + reason;
    EndPart(state, trial, executor.name, end, ended_trials.contains(id), now, facts);
  }
  facts.push_back(ExecutorLost{executor.name, executor.incarnation, reason});
}

}  // namespace

Status DecideJoin(const State& state, const JoinExecutor& command, Time now, Facts& facts) {
  if (Status valid = CheckJoin(command); !valid.ok()) return valid;
  if (const Executor* present = FindPresent(state, command.name)) {
    if (present->instance == command.instance) return {};
    RecordLoss(state, *present, "a new process replaced it", now, facts);
  }
  std::vector<SweepId> deleted;
  for (const SweepFiles& files : command.sweeps) {
    const bool is_ours = files.identity == LogIdentity(0) ||  // the files do not say
                         files.identity == IdentityOf(state, files.sweep);
    if (state.deleted.contains(files.sweep) && is_ours) deleted.push_back(files.sweep);
  }
  facts.push_back(ExecutorJoined{.name = command.name,
                                 .instance = command.instance,
                                 .incarnation = Incarnation(state.last_incarnation.value + 1),
                                 .address = command.address,
                                 .resources = command.resources,
                                 .spans = command.spans,
                                 .folder = command.folder,
                                 .labels = command.labels,
                                 .time_left = command.time_left,
                                 .deleted = std::move(deleted)});
  return {};
}

void DecideLoss(const State& state, const LoseExecutor& command, Time now, Facts& facts) {
  const Executor* present = FindPresent(state, command.name);
  if (present != nullptr && present->incarnation == command.incarnation)
    RecordLoss(state, *present, command.reason, now, facts);
}

void DecideHealth(const State& state, const ReportHealth& command, Facts& facts) {
  const Executor* present = FindPresent(state, command.name);
  if (present != nullptr && present->incarnation == command.incarnation &&
      present->problem != command.problem)
    facts.push_back(ExecutorHealth{command.name, command.problem});
}

}  // namespace attune
