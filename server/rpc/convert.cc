#include "server/rpc/convert.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/message_limits.h"
#include "core/log/sweep_keys.h"
#include "core/state/origin.h"

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

v1::CheckpointName ToProto(const CheckpointId& checkpoint) {
  v1::CheckpointName name;
  name.set_sweep(checkpoint.trial.sweep.value);
  name.set_trial(checkpoint.trial.number.value);
  name.set_attempt(checkpoint.attempt);
  name.set_step(checkpoint.step.value);
  return name;
}

// ---- Problems of facts; empty: no problem ---------------------------------------------------

bool IsStep(int64_t step) { return step >= 1 && step <= kIntegerMax; }
bool IsTime(double value) { return std::isfinite(value) && value >= 0; }
bool IsPort(uint32_t port) { return port <= std::numeric_limits<uint16_t>::max(); }
bool IsPathOrAddress(const std::string& text) {
  return text.size() <= kPlaceBytesMax && !HasControlCharacters(text);
}

std::string ProblemOf(const google::protobuf::RepeatedPtrField<v1::Metric>& metrics) {
  if (metrics.size() > kMetricsMax)
    return "has " + std::to_string(metrics.size()) + " metrics; at most " +
           std::to_string(kMetricsMax) + " are allowed";
  const auto is_named = [](const v1::Metric& metric) { return IsMetricName(metric.name()); };
  if (std::ranges::all_of(metrics, is_named)) return "";
  return "has a metric with an invalid name; names have 1 to " +
         std::to_string(kMetricNameBytesMax) + " bytes and no control characters";
}

std::string ProblemOf(const v1::Report& report) {
  if (!IsStep(report.step())) return "has the invalid step " + std::to_string(report.step());
  if (!IsTime(report.seconds()))
    return "has the invalid time " + FormatReal(report.seconds()) + " s";
  return ProblemOf(report.metrics());
}

std::string ProblemOf(const v1::Logged& logged) {
  if (!IsTime(logged.step())) return "has the invalid step " + FormatReal(logged.step());
  return ProblemOf(logged.metrics());
}

std::string ProblemOf(const v1::CheckpointSaved& saved, uint32_t attempt) {
  const std::string folder =
      "step-" + std::to_string(saved.step()) + "-attempt-" + std::to_string(attempt);
  if (!IsStep(saved.step())) return "has the invalid step " + std::to_string(saved.step());
  if (!IsPathOrAddress(saved.path()) || std::filesystem::path(saved.path()).filename() != folder)
    return "is not in a folder " + folder;
  if (!IsDigest(saved.digest())) return "has a digest that is not sha256: and 64 hex digits";
  if (saved.bytes() > static_cast<uint64_t>(kIntegerMax))
    return "has " + std::to_string(saved.bytes()) + " bytes";
  return "";
}

std::string ProblemOf(const v1::Rendezvous& opened) {
  const bool is_valid = IsPathOrAddress(opened.address()) && IsPathOrAddress(opened.host()) &&
                        IsPort(opened.master_port()) && IsPort(opened.port());
  return is_valid ? "" : "has an invalid address or port";
}

// A correct executor ends the gang instead of sending such a fact. Only a broken one sends it.
std::string ProblemOf(const v1::Fact& fact) {
  const auto sentence = [](const char* what, const std::string& problem) {
    return problem.empty() ? "" : "its executor sent " + std::string(what) + " that " + problem;
  };
  if (fact.has_report()) return sentence("a report", ProblemOf(fact.report()));
  if (fact.has_logged()) return sentence("a log", ProblemOf(fact.logged()));
  if (fact.has_rendezvous()) return sentence("a rendezvous", ProblemOf(fact.rendezvous()));
  if (fact.has_checkpoint())
    return sentence("a checkpoint", ProblemOf(fact.checkpoint(), fact.attempt().attempt()));
  return "";
}

// ---- From the protocol ----------------------------------------------------------------------

FailureKind FromProto(v1::Failure::Kind kind) {
  switch (kind) {
    case v1::Failure::EXIT:
      return FailureKind::kExit;
    case v1::Failure::SIGNAL:
      return FailureKind::kSignal;
    case v1::Failure::STALL:
      return FailureKind::kStall;
    case v1::Failure::START:
      return FailureKind::kStart;
    case v1::Failure::PROTOCOL:
      return FailureKind::kProtocol;
    case v1::Failure::LEASE:
      return FailureKind::kLease;
    case v1::Failure::HOST:
      return FailureKind::kHost;
    case v1::Failure::DISK:
      return FailureKind::kDisk;
    default:
      return FailureKind::kNone;
  }
}

CheckpointSaved FromProto(const AttemptId& attempt, v1::CheckpointSaved&& saved) {
  return {
      attempt,
      {Step(saved.step()), std::move(*saved.mutable_path()), std::move(*saved.mutable_digest())},
      static_cast<int64_t>(saved.bytes())};
}

Metrics FromProto(const google::protobuf::RepeatedPtrField<v1::Metric>& values) {
  Metrics metrics;
  for (const v1::Metric& metric : values) metrics[metric.name()] = metric.value();
  return metrics;
}

TrialReported FromProto(const AttemptId& attempt, const v1::Report& report) {
  TrialReported fact{
      attempt,
      {.step = Step(report.step()), .seconds = Seconds(report.seconds()), .waits = report.waits()}};
  fact.report.metrics = FromProto(report.metrics());
  return fact;
}

MetricsLogged FromProto(const AttemptId& attempt, const v1::Logged& logged) {
  return {attempt, logged.number(), logged.step(), FromProto(logged.metrics())};
}

AttemptEnded FromProto(const AttemptId& attempt, const v1::Ended& ended) {
  AttemptEnded fact{.attempt = attempt, .outcome = Outcome::kKilled};
  if (ended.outcome() == v1::Ended::FINISHED) {
    fact.outcome = Outcome::kFinished;
    fact.failure.message = CutEnd(ended.silence(), kErrorTextBytesMax);
  }
  if (ended.outcome() == v1::Ended::FAILED) {
    const v1::Failure& failure = ended.failure();
    fact.outcome = Outcome::kFailed;
    fact.failure = {.kind = FromProto(failure.kind()),
                    .rank = failure.rank(),
                    .exit_code = failure.exit_code(),
                    .signal = failure.signal(),
                    .message = CutEnd(failure.message(), kErrorTextBytesMax),
                    .log_tail = CutBeginning(failure.log_tail(), kLogTailBytesMax),
                    .lost_peer = failure.lost_peer(),
                    .pattern = CutEnd(failure.pattern(), kMaxPatternBytes),
                    .line = CutEnd(failure.line(), kMatchedLineBytesMax)};
  }
  return fact;
}

CheckpointId FromProto(const v1::CheckpointRemoved& removed) {
  return {TrialId(SweepId(removed.sweep()), TrialNumber(removed.trial())), removed.attempt(),
          Step(removed.step())};
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

void AddFetch(const State& state, const Trial& trial, const PieceServers& server_of,
              v1::ResumeFrom& resume) {
  const auto fetched = CheckpointToFetch(state, trial);
  if (!fetched) return;
  *resume.mutable_fetch() = ToProto(*fetched);
  if (!server_of) return;
  for (const std::string& sender : SendersFor(state, trial)) {
    if (resume.servers_size() == kPieceServersMax) return;
    if (auto server = server_of(sender)) *resume.add_servers() = *std::move(server);
  }
}

// The executors whose gangs of this sweep run, and therefore have its code.
std::vector<std::string> SendersOfCode(const Sweep& sweep, const std::string& receiver) {
  std::vector<std::string> senders;
  for (const TrialNumber number : sweep.live) {
    const Trial& trial = *sweep.Find(number);
    if (!trial.live || trial.live->state != AttemptState::kRunning) continue;
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
  out.mutable_code()->set_digest(code->digest);
  out.mutable_code()->set_writable(code->writable);
  if (!server_of || trial.live->state != AttemptState::kAssigned) return;
  for (const std::string& sender : SendersOfCode(sweep, executor)) {
    if (auto server = server_of(sender)) *out.mutable_code()->add_servers() = *std::move(server);
  }
}

void AddVariable(const std::string& name, std::string value, v1::Program& program) {
  v1::NamedValue& variable = *program.add_environment();
  variable.set_name(name);
  variable.mutable_value()->set_text(std::move(value));
}

void AddEnvironment(const Program& program, const SecretValues& value_of, v1::Program& out) {
  for (const auto& [name, value] : program.environment) AddVariable(name, value, out);
  for (const std::string& name : program.secrets) {
    auto value = value_of ? value_of(name) : std::nullopt;
    if (value) {
      AddVariable(name, *std::move(value), out);
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
    if (!is_elsewhere) *known.add_checkpoints() = ToProto({trial.id, kept.attempt, kept.ref.step});
  }
}

// Describes what the executor must run for this trial's live attempt. REQUIRES: trial.live.
void Assign(const State& state, const Sweep& sweep, const Trial& trial, const std::string& executor,
            const PieceServers& server_of, const SecretValues& value_of, v1::Assignment& out) {
  const SweepSpec& spec = sweep.spec;
  const Attempt& attempt = *trial.live;
  *out.mutable_attempt() = server::ToProto(attempt.id, attempt.epoch);

  v1::Program& program = *out.mutable_program();
  for (const std::string& argument : spec.program.command) program.add_command(argument);
  AddEnvironment(spec.program, value_of, program);
  AddCode(sweep, trial, executor, server_of, program);
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
      AddFetch(state, trial, server_of, *out.mutable_resume());
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

v1::AttemptRef ToProto(const AttemptId& id, Epoch epoch) {
  v1::AttemptRef ref;
  ref.set_sweep(id.trial.sweep.value);
  ref.set_trial(id.trial.number.value);
  ref.set_attempt(id.number);
  ref.set_epoch(epoch.value);
  return ref;
}

AttemptId FromProto(const v1::AttemptRef& ref) {
  return {TrialId(SweepId(ref.sweep()), TrialNumber(ref.trial())), ref.attempt()};
}

CheckpointId FromProto(const v1::CheckpointName& checkpoint) {
  return {TrialId(SweepId(checkpoint.sweep()), TrialNumber(checkpoint.trial())),
          checkpoint.attempt(), Step(checkpoint.step())};
}

std::vector<SweepFiles> FromProto(const google::protobuf::RepeatedPtrField<v1::SweepFiles>& files) {
  std::vector<SweepFiles> all;
  for (const v1::SweepFiles& group : files) {
    for (const uint64_t sweep : group.sweeps())
      all.push_back({SweepId(sweep), LogIdentity(group.identity())});
  }
  return all;
}

void Add(const SweepFiles& files, google::protobuf::RepeatedPtrField<v1::SweepFiles>& out) {
  auto group = std::ranges::find(out, files.identity.value, &v1::SweepFiles::identity);
  if (group == out.end()) {
    out.Add()->set_identity(files.identity.value);
    group = std::prev(out.end());
  }
  group->add_sweeps(files.sweep.value);
}

Resources FromProto(const v1::Resources& resources) {
  // A value that is too large for the type becomes negative, and CheckJoin refuses it.
  return {.cpus = static_cast<int>(resources.cpus()),
          .gpus = static_cast<int>(resources.gpus()),
          .memory_bytes = static_cast<int64_t>(resources.memory_bytes())};
}

Labels FromProto(const google::protobuf::Map<std::string, std::string>& labels) {
  return {labels.begin(), labels.end()};
}

std::optional<Command> FromProto(v1::Fact&& fact) {
  const AttemptId attempt = FromProto(fact.attempt());
  const Epoch epoch(fact.attempt().epoch());
  if (std::string problem = ProblemOf(fact); !problem.empty()) {
    AttemptEnded ended{.attempt = attempt, .outcome = Outcome::kFailed};
    ended.failure = {.kind = FailureKind::kProtocol, .rank = 0, .message = std::move(problem)};
    return RecordFact{epoch, std::move(ended)};
  }
  switch (fact.fact_case()) {
    case v1::Fact::kStarted: {
      const auto& pids = fact.started().pids();
      return RecordFact{epoch, AttemptStarted{attempt, {pids.begin(), pids.end()}}};
    }
    case v1::Fact::kFirstStep:
      return RecordFact{epoch, AttemptFirstStep{attempt, Time{fact.time_us()}}};
    case v1::Fact::kRendezvous: {
      v1::Rendezvous& opened = *fact.mutable_rendezvous();
      return RecordFact{
          epoch, RendezvousOpened{
                     attempt,
                     {std::move(*opened.mutable_address()), static_cast<int>(opened.master_port()),
                      std::move(*opened.mutable_host()), static_cast<int>(opened.port())}}};
    }
    case v1::Fact::kReport:
      return RecordFact{epoch, FromProto(attempt, fact.report())};
    case v1::Fact::kLogged:
      return RecordFact{epoch, FromProto(attempt, fact.logged())};
    case v1::Fact::kCheckpoint:
      return RecordFact{epoch, FromProto(attempt, std::move(*fact.mutable_checkpoint()))};
    case v1::Fact::kEnded:
      return RecordFact{epoch, FromProto(attempt, fact.ended())};
    case v1::Fact::kRemoved:
      return RecordRemoval{FromProto(fact.removed()), {}, LogIdentity(fact.removed().identity())};
    case v1::Fact::kSweepRemoved:
      return RecordSweepRemoval{SweepId(fact.sweep_removed().sweep()),
                                {},
                                {},
                                LogIdentity(fact.sweep_removed().identity())};
    case v1::Fact::FACT_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

FactBatch FromProto(v1::Facts& facts) {
  FactBatch batch{.bytes = facts.ByteSizeLong() + facts.facts_size() * sizeof(Command)};
  batch.commands.reserve(facts.facts_size());
  for (v1::Fact& fact : *facts.mutable_facts()) {
    batch.last = std::max<uint64_t>(batch.last, fact.seq());
    if (auto command = FromProto(std::move(fact))) batch.commands.push_back(std::move(*command));
  }
  return batch;
}

void MaskFailures(v1::Facts& facts, const std::function<void(std::string& text)>& mask) {
  for (v1::Fact& fact : *facts.mutable_facts()) {
    if (!fact.has_ended() || !fact.ended().has_failure()) continue;
    v1::Failure& failure = *fact.mutable_ended()->mutable_failure();
    mask(*failure.mutable_message());
    mask(*failure.mutable_log_tail());
    mask(*failure.mutable_line());
  }
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
        *messages.back().add_checkpoints() = ToProto({trial.id, kept.attempt, kept.ref.step});
      }
    }
  }
  return messages;
}

v1::Desired ToDesired(const State& state, const std::string& executor,
                      const PieceServers& server_of, const SecretValues& value_of) {
  v1::Desired desired;
  for (const Trial* trial : TrialsToRunOn(state, executor)) {
    Assign(state, *state.Find(trial->id.sweep), *trial, executor, server_of, value_of,
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
