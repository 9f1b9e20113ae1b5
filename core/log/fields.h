#pragma once

#include <utility>
#include <vector>

#include "core/log/archive.h"
#include "core/log/event.h"

// What specifications and events consist of, for archives.
namespace attune {

template <class A>
void Fields(A& archive, Like<A, Time>& time) {
  archive(time.us);
}
template <class A>
void Fields(A& archive, Like<A, TrialId>& id) {
  archive(id.sweep, id.number);
}
template <class A>
void Fields(A& archive, Like<A, AttemptId>& id) {
  archive(id.trial, id.number);
}
template <class A>
void Fields(A& archive, Like<A, CheckpointId>& id) {
  archive(id.trial, id.attempt, id.step);
}
template <class A>
void Fields(A& archive, Like<A, Resources>& resources) {
  archive(resources.cpus, resources.gpus, resources.memory_bytes);
}
template <class A>
void Fields(A& archive, Like<A, RankSlot>& slot) {
  archive(slot.executor, slot.local_rank, slot.cpus, slot.gpus, slot.memory_bytes);
}
template <class A>
void Fields(A& archive, Like<A, CheckpointRef>& ref) {
  archive(ref.step, ref.path, ref.digest);
}
template <class A>
void Fields(A& archive, Like<A, KeptCheckpoint>& kept) {
  archive(kept.attempt, kept.ref, kept.executor, kept.value, kept.pinned);
}

inline void Fields(ArchiveWriter& archive, const Config& config) { archive(config.entries()); }
inline void Fields(ArchiveReader& archive, Config& config) {
  std::vector<Config::Entry> entries;
  archive(entries);
  config = {};
  for (auto& [name, value] : entries) config.Set(std::move(name), std::move(value));
}

template <class A>
void Fields(A& archive, Like<A, Reason>& reason) {
  archive(reason.rule, reason.step, reason.rung, reason.value, reason.cutoff, reason.rank,
          reason.peers, reason.text);
}
template <class A>
void Fields(A& archive, Like<A, Verdict>& verdict) {
  archive(verdict.kind, verdict.reason, verdict.donor, verdict.config);
}

// ---- the specification of a sweep ------------------------------------------------------------

template <class A>
void Fields(A& archive, Like<A, FloatDomain>& domain) {
  archive(domain.min, domain.max, domain.scale, domain.step);
}
template <class A>
void Fields(A& archive, Like<A, IntDomain>& domain) {
  archive(domain.min, domain.max, domain.scale, domain.step);
}
template <class A>
void Fields(A& archive, Like<A, CategoricalDomain>& domain) {
  archive(domain.values);
}
template <class A>
void Fields(A& archive, Like<A, ConstantDomain>& domain) {
  archive(domain.value);
}
template <class A>
void Fields(A& archive, Like<A, Condition>& condition) {
  archive(condition.parent, condition.any_of, condition.at_least, condition.at_most);
}
template <class A>
void Fields(A& archive, Like<A, Parameter>& parameter) {
  archive(parameter.name, parameter.domain, parameter.when);
}
inline void Fields(ArchiveWriter& archive, const SearchSpace& space) {
  archive(space.parameters());
}
inline void Fields(ArchiveReader& archive, SearchSpace& space) {
  std::vector<Parameter> parameters;
  archive(parameters);
  if (!archive.ok() || !SearchSpace::Check(parameters).empty()) return archive.Fail();
  space = SearchSpace(std::move(parameters));
}
template <class A>
void Fields(A& archive, Like<A, Objective>& objective) {
  archive(objective.metric, objective.mode);
}
template <class A>
void Fields(A& archive, Like<A, AlgorithmSpec>& spec) {
  archive(spec.name, spec.options);
}
template <class A>
void Fields(A& archive, Like<A, Program>& program) {
  archive(program.command, program.environment, program.working_directory);
}
template <class A>
void Fields(A& archive, Like<A, GangSpec>& gang) {
  archive(gang.workers, gang.per_worker, gang.placement);
}
template <class A>
void Fields(A& archive, Like<A, CheckpointPolicy>& policy) {
  archive(policy.every, policy.keep_last, policy.keep_best);
}
template <class A>
void Fields(A& archive, Like<A, FailurePolicy>& policy) {
  archive(policy.max_restarts, policy.max_failed_trials, policy.backoff, policy.stall_timeout);
}
template <class A>
void Fields(A& archive, Like<A, StopPolicy>& policy) {
  archive(policy.max_trials, policy.max_time, policy.max_gpu_hours, policy.patience,
          policy.max_trial_time, policy.trial_patience, policy.target);
}
template <class A>
void Fields(A& archive, Like<A, SweepSpec>& spec) {
  archive(spec.name, spec.tags, spec.program, spec.objective, spec.space, spec.initial_points,
          spec.searcher, spec.seed, spec.scheduler, spec.max_step, spec.gang,
          spec.max_concurrent_trials, spec.priority, spec.checkpoint, spec.failure, spec.stop);
}

}  // namespace attune
