#pragma once

#include <utility>
#include <vector>

#include "core/log/archive.h"
#include "core/log/event.h"
#include "core/space/front.h"

// The fields of values inside events and of specifications, for archives (archive.h).
namespace attune {

template <class A>
void Fields(A& archive, Like<A, Time>& time) {
  archive(time.us);
}
template <class A>
void Fields(A& archive, Like<A, TrialId>& id) {
  archive("sweep", id.sweep);
  archive("trial", id.number);
}
template <class A>
void Fields(A& archive, Like<A, AttemptId>& id) {
  Fields(archive, id.trial);
  archive("attempt", id.number);
}
template <class A>
void Fields(A& archive, Like<A, CheckpointId>& id) {
  Fields(archive, id.trial);
  archive("attempt", id.attempt);
  archive("step", id.step);
}
template <class A>
void Fields(A& archive, Like<A, Resources>& resources) {
  archive("cpus", resources.cpus);
  archive("gpus", resources.gpus);
  archive("memory_bytes", resources.memory_bytes);
}
template <class A>
void Fields(A& archive, Like<A, RankSlot>& slot) {
  archive("executor", slot.executor);
  archive("local_rank", slot.local_rank);
  archive("cpus", slot.cpus);
  archive("gpus", slot.gpus);
  archive("memory_bytes", slot.memory_bytes);
  int share = slot.gpu_percent < 100 ? slot.gpu_percent : 0;
  archive.Sparse("gpu_percent", share);
  if constexpr (A::kReads) slot.gpu_percent = share > 0 ? share : 100;
}
template <class A>
void Fields(A& archive, Like<A, CheckpointRef>& ref) {
  archive("step", ref.step);
  archive("path", ref.path);
  archive("digest", ref.digest);
}
template <class A>
void Fields(A& archive, Like<A, KeptCheckpoint>& kept) {
  Fields(archive, kept.ref);
  archive("attempt", kept.attempt);
  archive("executor", kept.executor);
  archive.Sparse("folder", kept.folder);
  archive("values", kept.values);
  archive("pinned", kept.pinned);
  archive.Sparse("unreported", kept.unreported);
  archive.Sparse("stored", kept.stored);
}
template <class A>
void Fields(A& archive, Like<A, TrialPatch>& patch) {
  archive("sha256", patch.sha256);
  archive("code", patch.code);
}
// Without the trial, because the event that contains the record has the trial as its subject.
template <class A>
void Fields(A& archive, Like<A, TrialRecord>& record) {
  archive("config", record.config);
  archive.Sparse("patch", record.patch);
  archive("state", record.state);
  archive("attempts", record.attempts);
  archive("last_step", record.last_step);
  archive("seconds", record.seconds);
  archive("checkpoints", record.checkpoints);
}
template <class A>
void Fields(A& archive, Like<A, Rendezvous>& rendezvous) {
  archive("address", rendezvous.address);
  archive("master_port", rendezvous.master_port);
  archive.Sparse("host", rendezvous.host);
  archive.Sparse("port", rendezvous.port);
}
template <class A>
void Fields(A& archive, Like<A, GangHistory>& history) {
  archive("failed", history.failed);
  archive("worked", history.worked);
  archive("times", history.times);
}
template <class A>
void Fields(A& archive, Like<A, SharedState>& shared) {
  archive("last_epoch", shared.last_epoch);
  archive("reserved_since", shared.reserved_since);
  archive("luck", shared.gang_history);
  archive("reopenable", shared.reopenable);
  archive("changes_after", shared.changes_after);
}
template <class A>
void Fields(A& archive, Like<A, Annotation>& annotation) {
  archive.Sparse("note", annotation.note);
  archive.Sparse("tags", annotation.tags);
}
template <class A>
void Fields(A& archive, Like<A, GangPart>& part) {
  archive("executor", part.executor);
  archive("workers", part.workers);
}
template <class A>
void Fields(A& archive, Like<A, Report>& report) {
  archive("step", report.step);
  archive("seconds", report.seconds);
  archive("metrics", report.metrics);
  archive.Sparse("waits", report.waits);
}
template <class A>
void Fields(A& archive, Like<A, Failure>& failure) {
  archive("kind", failure.kind);
  archive("rank", failure.rank);
  archive("exit_code", failure.exit_code);
  archive("signal", failure.signal);
  archive("message", failure.message);
  archive("log_tail", failure.log_tail);
  archive.Sparse("lost_peer", failure.lost_peer);
  archive.Sparse("executor", failure.executor);
  archive.Sparse("pattern", failure.pattern);
  archive.Sparse("line", failure.line);
}

inline void Fields(ArchiveWriter& archive, const Config& config) { archive(config.entries()); }
inline void Fields(ArchiveReader& archive, Config& config) {
  std::vector<Config::Entry> entries;
  archive(entries);
  config = {};
  for (auto& [name, value] : entries) config.Set(std::move(name), std::move(value));
}

template <class A>
void Fields(A& archive, Like<A, Rationale>& rationale) {
  archive("rule", rationale.rule);
  archive.Sparse("from", rationale.from);
  archive.Sparse("results", rationale.results);
  archive.Sparse("score", rationale.score);
  archive("text", rationale.text);
}
template <class A>
void Fields(A& archive, Like<A, PriorResult>& result) {
  Fields(archive, result.from);
  archive("config", result.config);
  archive("rank", result.rank);
}
template <class A>
void Fields(A& archive, Like<A, WarmStart>& start) {
  archive("from", start.from);
  archive("results", start.results);
  archive("taken", start.taken);
  archive("text", start.text);
}
template <class A>
void Fields(A& archive, Like<A, Reason>& reason) {
  archive("rule", reason.rule);
  archive("step", reason.step);
  archive("rung", reason.rung);
  archive("value", reason.value);
  archive("cutoff", reason.cutoff);
  archive("rank", reason.rank);
  archive("peers", reason.peers);
  archive("text", reason.text);
}
template <class A>
void Fields(A& archive, Like<A, Verdict>& verdict) {
  archive("verdict", verdict.kind);
  archive("reason", verdict.reason);
  if (verdict.kind != VerdictKind::kExploit) return;
  archive.Row(verdict.donor.trial.sweep);
  archive("donor", verdict.donor.trial.number);
  archive("donor_attempt", verdict.donor.attempt);
  archive("donor_step", verdict.donor.step);
  archive("config", verdict.config);
}

// ---- the specification of a sweep ------------------------------------------------------------

// Uses the rows of the keys (sweep_keys.cc). Its JSON is that of the sweep file
// (sweepfile/codec.h).
void Fields(ArchiveWriter& archive, const SweepSpec& spec);
void Fields(ArchiveReader& archive, SweepSpec& spec);

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
  archive(parameter.name, parameter.domain, parameter.when, parameter.patches);
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
void Fields(A& archive, Like<A, Best>& best) {
  archive(best.trial, best.attempt, best.step, best.values);
}
template <class A>
void Fields(A& archive, Like<A, PatchedCode>& patched) {
  archive(patched.patches, patched.digest);
}
template <class A>
void Fields(A& archive, Like<A, CodeSpec>& code) {
  archive(code.path, code.include, code.exclude, code.writable, code.digest, code.commit,
          code.dirty, code.patched);
}
template <class A>
void Fields(A& archive, Like<A, EnvironmentSpec>& environment) {
  archive(environment.python, environment.wheels, environment.container, environment.engine);
}
template <class A>
void Fields(A& archive, Like<A, DataSpec>& data) {
  archive(data.name, data.url, data.sha256);
}
template <class A>
void Fields(A& archive, Like<A, Plateau>& plateau) {
  archive("metric", plateau.metric.metric);
  archive("mode", plateau.metric.mode);
  archive("patience", plateau.patience);
  archive("min_delta", plateau.min_delta);
  archive("std", plateau.std);
  archive("grace_period", plateau.grace_period);
}
template <class A>
void Fields(A& archive, Like<A, Threshold>& threshold) {
  archive("metric", threshold.metric);
  archive("at_least", threshold.at_least);
  archive("at_most", threshold.at_most);
  archive("grace_period", threshold.grace_period);
}
template <class A>
void Fields(A& archive, Like<A, StopPolicy>& policy) {
  archive("max_trials", policy.max_trials);
  archive("max_seconds", policy.max_time);
  archive("max_gpu_hours", policy.max_gpu_hours);
  archive("patience", policy.patience);
  archive("max_trial_seconds", policy.max_trial_time);
  archive("trial_patience", policy.trial_patience);
  archive("targets", policy.targets);
  archive.Sparse("plateau", policy.plateau);
  archive.Sparse("thresholds", policy.thresholds);
}

}  // namespace attune
