#include "server/rpc/desired.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/log/stored_path.h"
#include "core/state/origin.h"
#include "core/state/retention.h"
#include "server/rpc/convert.h"

namespace attune::server {
namespace {

v1::Value ToProto(const Value& value) {
  v1::Value out;
  if (const auto* boolean = std::get_if<bool>(&value)) out.set_boolean(*boolean);
  if (const auto* integer = std::get_if<int64_t>(&value)) out.set_integer(*integer);
  if (const auto* real = std::get_if<double>(&value)) out.set_real(*real);
  if (const auto* text = std::get_if<std::string>(&value)) out.set_text(*text);
  return out;
}

v1::Action ActionOf(VerdictKind verdict) {
  switch (verdict) {
    case VerdictKind::kContinue:
      return v1::CONTINUE;
    case VerdictKind::kPause:
    case VerdictKind::kResize:
      return v1::PAUSE;
    case VerdictKind::kStop:
    case VerdictKind::kExploit:
      return v1::STOP;
  }
  return v1::STOP;
}

void AddRemovals(const State& state, const std::string& executor, v1::Desired& desired) {
  if (const auto removals = state.removals.find(executor); removals != state.removals.end()) {
    for (const auto& [checkpoint, path] : removals->second) {
      v1::CheckpointRemoval& removal = *desired.add_removals();
      removal.set_sweep(checkpoint.trial.sweep.value);
      removal.set_trial(checkpoint.trial.number.value);
      removal.set_attempt(checkpoint.attempt);
      removal.set_step(checkpoint.step.value);
      removal.set_path(path);
    }
  }
  const auto known = state.executors.find(executor);
  if (known == state.executors.end()) return;
  const auto sweeps = state.sweep_removals.find(FolderOf(known->second));
  if (sweeps == state.sweep_removals.end()) return;
  for (const SweepId sweep : sweeps->second)
    Add({sweep, IdentityOf(state, sweep)}, *desired.mutable_deleted_sweeps());
}

// The executors that can send the checkpoint from which the trial's live attempt resumes. The one
// that saved it comes first.
std::vector<std::string> SendersFor(const State& state, const Trial& trial) {
  Origin origin = OriginOf(state, trial);
  if (origin.checkpoint == nullptr || origin.checkpoint->ref != *trial.live->resume ||
      !origin.readers)
    return {};
  std::vector<std::string> senders;
  if (origin.readers->erase(origin.checkpoint->executor) > 0)
    senders.push_back(origin.checkpoint->executor);
  senders.insert(senders.end(), origin.readers->begin(), origin.readers->end());
  return senders;
}

void AddStoredCopy(const Sweep& sweep, LogIdentity identity, const CheckpointId& checkpoint,
                   const StoreVariables& store_variables, v1::ResumeFrom& resume) {
  const KeptCheckpoint* kept = FindKept(sweep, checkpoint);
  if (kept == nullptr || kept->stored.empty()) return;
  v1::StoredCopy& copy = *resume.mutable_stored();
  copy.set_address(kept->stored);
  copy.set_path(StoredPath(identity, checkpoint, kept->ref.digest));
  if (!store_variables) return;
  for (auto& [name, value] : store_variables())
    AddVariable(name, std::move(value), *copy.mutable_environment());
}

void AddFetch(const State& state, const Trial& trial, const DesiredSources& sources,
              v1::ResumeFrom& resume) {
  const auto fetched = CheckpointToFetch(state, trial);
  if (!fetched) return;
  *resume.mutable_fetch() = server::ToProto(*fetched);
  const SweepId sweep = trial.id.sweep;
  AddStoredCopy(*state.Find(sweep), IdentityOf(state, sweep), *fetched, sources.store_variables,
                resume);
  if (!sources.server_of) return;
  for (const std::string& sender : SendersFor(state, trial)) {
    if (resume.servers_size() == kPieceServersMax) return;
    if (auto server = sources.server_of(sender)) *resume.add_servers() = *std::move(server);
  }
}

// The executors whose gangs of this sweep run with this code, and therefore have it.
std::vector<std::string> SendersOfCode(const Sweep& sweep, const std::string& digest,
                                       const std::string& receiver) {
  std::vector<std::string> senders;
  for (const TrialNumber number : sweep.live) {
    const Trial& trial = *sweep.Find(number);
    if (!trial.live || trial.live->state != AttemptState::kRunning ||
        CodeDigestOf(sweep.spec, trial) != digest)
      continue;
    for (const RankSlot& slot : trial.live->ranks) {
      if (slot.executor == receiver || std::ranges::find(senders, slot.executor) != senders.end())
        continue;
      senders.push_back(slot.executor);
      if (std::ssize(senders) == kPieceServersMax) return senders;
    }
  }
  return senders;
}

void AddCode(const Sweep& sweep, const Trial& trial, const std::string& executor,
             const PieceServers& server_of, v1::Program& out) {
  const auto& code = sweep.spec.program.code;
  if (!code) return;
  const std::string digest = CodeDigestOf(sweep.spec, trial);
  out.mutable_code()->set_digest(digest);
  out.mutable_code()->set_writable(code->writable);
  if (!server_of || trial.live->state != AttemptState::kAssigned) return;
  for (const std::string& sender : SendersOfCode(sweep, digest, executor)) {
    if (auto server = server_of(sender)) *out.mutable_code()->add_servers() = *std::move(server);
  }
}

void AddFiles(const Program& program, v1::Program& out) {
  for (const DataSpec& file : program.data) {
    v1::Data& data = *out.add_data();
    data.set_name(file.name);
    data.set_url(file.url);
    data.set_sha256(file.sha256);
    data.set_variable(DataVariable(file.name));
  }
  if (!program.packages) return;
  out.mutable_packages()->set_python(program.packages->python);
  out.mutable_packages()->set_wheels(program.packages->wheels);
  out.mutable_packages()->set_container(program.packages->container);
  out.mutable_packages()->set_engine(std::string(Name(program.packages->engine)));
}

void AddEnvironment(const Program& program, const SecretValues& value_of, v1::Program& out) {
  for (const auto& [name, value] : program.environment)
    AddVariable(name, value, *out.mutable_environment());
  for (const std::string& name : program.secrets) {
    auto value = value_of ? value_of(name) : std::nullopt;
    if (value) {
      AddVariable(name, *std::move(value), *out.mutable_environment());
    } else {
      out.add_missing_secrets(name);
    }
  }
}

// If a backup was restored after the sweep was created, the trial's folder may contain files of the
// lost part of the log.
void AddKnownFiles(const State& state, const Trial& trial, const Executor& executor,
                   v1::Assignment& out) {
  const bool has_newest_identity = IdentityOf(state, trial.id.sweep) == IdentityOf(state);
  if (has_newest_identity || IsOlderThanRestore(state, trial.live->epoch)) return;
  v1::KnownFiles& known = *out.mutable_known();
  known.set_attempts(trial.live->id.number - 1);
  for (const KeptCheckpoint& kept : trial.checkpoints) {
    const bool is_elsewhere =
        !kept.folder.empty() && !executor.folder.empty() && kept.folder != executor.folder;
    if (!is_elsewhere)
      *known.add_checkpoints() = server::ToProto({trial.id, kept.attempt, kept.ref.step});
  }
}

// Describes what the executor must run for this trial's live attempt. REQUIRES: trial.live.
void Assign(const State& state, const Sweep& sweep, const Trial& trial, const std::string& executor,
            const DesiredSources& sources, v1::Assignment& out) {
  const SweepSpec& spec = sweep.spec;
  const Attempt& attempt = *trial.live;
  *out.mutable_attempt() = server::ToProto(attempt.id, attempt.epoch);

  v1::Program& program = *out.mutable_program();
  for (const std::string& argument : spec.program.command) program.add_command(argument);
  AddEnvironment(spec.program, sources.value_of, program);
  AddCode(sweep, trial, executor, sources.server_of, program);
  AddFiles(spec.program, program);
  program.set_working_directory(spec.program.working_directory);
  program.set_report_pattern(spec.program.report_pattern);
  for (const LogPolicy& policy : spec.failure.on_log) out.add_log_patterns(policy.pattern);

  for (const auto& [name, value] : trial.config.entries()) {
    v1::NamedValue& entry = *out.add_config();
    entry.set_name(name);
    *entry.mutable_value() = ToProto(value);
  }
  out.set_seed(SeedOf(spec, trial.id.number));
  out.set_world_size(static_cast<uint32_t>(attempt.ranks.size()));
  size_t node = 0;
  for (size_t rank = 0; rank < attempt.ranks.size(); ++rank) {
    const RankSlot& slot = attempt.ranks[rank];
    if (rank > 0 && slot.executor != attempt.ranks[rank - 1].executor) ++node;
    if (slot.executor != executor) continue;
    out.set_node_rank(static_cast<uint32_t>(node));
    v1::RankSlot& out_slot = *out.add_ranks();
    out_slot.set_rank(static_cast<uint32_t>(rank));
    out_slot.set_local_rank(static_cast<uint32_t>(slot.local_rank));
    out_slot.set_cpus(static_cast<uint32_t>(slot.cpus));
    for (int gpu : slot.gpus) out_slot.add_gpus(static_cast<uint32_t>(gpu));
    if (slot.gpu_percent < 100) out_slot.set_gpu_percent(static_cast<uint32_t>(slot.gpu_percent));
  }
  out.set_nodes(static_cast<uint32_t>(node + 1));
  out.set_rank_zero_finished(attempt.ended_parts.contains(attempt.ranks.front().executor));
  if (attempt.rendezvous) {
    out.mutable_rendezvous()->set_address(attempt.rendezvous->address);
    out.mutable_rendezvous()->set_master_port(attempt.rendezvous->master_port);
    out.mutable_rendezvous()->set_host(attempt.rendezvous->host);
    out.mutable_rendezvous()->set_port(attempt.rendezvous->port);
  }
  out.set_time_attr(spec.time_attr);
  out.set_max_step(LastStep(sweep, trial).value);
  out.set_checkpoint_every(spec.checkpoint.every.value);
  if (attempt.resume) {
    out.mutable_resume()->set_step(attempt.resume->step.value);
    out.mutable_resume()->set_path(attempt.resume->path);
    out.mutable_resume()->set_digest(attempt.resume->digest);
    if (executor == attempt.ranks.front().executor)
      AddFetch(state, trial, sources, *out.mutable_resume());
  }
  constexpr double kMostMs = std::numeric_limits<uint32_t>::max();
  out.set_stall_timeout_ms(
      static_cast<uint32_t>(std::min(spec.failure.stall_timeout.value * 1000, kMostMs)));
  out.set_grace_ms(static_cast<uint32_t>(spec.failure.grace.value * 1000));
  out.set_max_restarts(static_cast<uint32_t>(spec.failure.max_restarts));
  out.set_decided_us(ShownTime(state, attempt.assigned_at).us);
  out.set_milestone(trial.milestone.value);
  out.set_verdict_step(attempt.verdict_step.value);
  out.set_action(ActionOf(attempt.verdict));
  out.set_yield(trial.yield_verdict.has_value() || attempt.HasUndeliveredVerdict());
  out.set_identity(IdentityOf(state, sweep.id).value);
  AddKnownFiles(state, trial, state.executors.at(executor), out);
}

}  // namespace

void AddVariable(const std::string& name, std::string value,
                 google::protobuf::RepeatedPtrField<v1::NamedValue>& variables) {
  v1::NamedValue& variable = *variables.Add();
  variable.set_name(name);
  variable.mutable_value()->set_text(std::move(value));
}

std::vector<v1::Inventory> ToInventory(const State& state, const std::string& executor) {
  std::vector<v1::Inventory> messages(1);
  const auto known = state.executors.find(executor);
  if (known == state.executors.end()) return messages;
  for (const auto& [id, sweep] : state.sweeps) {
    for (const auto& [number, trial] : sweep.trials) {
      for (const KeptCheckpoint& kept : trial.checkpoints) {
        if (!IsStoredOn(kept, known->second)) continue;
        if (messages.back().checkpoints_size() == kInventoryMax) messages.emplace_back();
        *messages.back().add_checkpoints() =
            server::ToProto({trial.id, kept.attempt, kept.ref.step});
      }
    }
  }
  return messages;
}

v1::Desired ToDesired(const State& state, const std::string& executor,
                      const DesiredSources& sources) {
  v1::Desired desired;
  for (const Trial* trial : TrialsToRunOn(state, executor)) {
    Assign(state, *state.Find(trial->id.sweep), *trial, executor, sources,
           *desired.add_assignments());
  }
  for (const Trial* trial : TrialsToEndOn(state, executor)) {
    const v1::AttemptRef attempt = ToProto(trial->live->id, trial->live->epoch);
    *desired.add_unwanted() = attempt;
    if (trial->live->part_outcome == Outcome::kFailed ||
        trial->live->part_outcome == Outcome::kLost)
      *desired.add_failed_elsewhere() = attempt;
  }
  AddRemovals(state, executor, desired);
  desired.set_identity(IdentityOf(state).value);
  if (state.parts.size() > 1) desired.set_last_epoch(state.parts.back().last_epoch.value);
  return desired;
}

}  // namespace attune::server
