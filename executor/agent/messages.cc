#include "executor/agent/messages.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/utf8.h"
#include "executor/transfer/variables.h"

namespace attune::agent {
namespace {

Result<std::vector<gang::NamedValue>> ToConfig(const v1::Assignment& assignment) {
  std::vector<gang::NamedValue> config;
  for (const v1::NamedValue& entry : assignment.config()) {
    const v1::Value& value = entry.value();
    switch (value.kind_case()) {
      case v1::Value::kReal:
        config.push_back({entry.name(), value.real()});
        break;
      case v1::Value::kInteger:
        config.push_back({entry.name(), value.integer()});
        break;
      case v1::Value::kBoolean:
        config.push_back({entry.name(), value.boolean()});
        break;
      case v1::Value::kText:
        config.push_back({entry.name(), value.text()});
        break;
      case v1::Value::KIND_NOT_SET:
        return Invalid("the value of '" + entry.name() +
                       "' has a type that this executor does not know; install the version of the "
                       "server on this host");
    }
  }
  return config;
}

gang::SharedRendezvous ToRendezvous(const v1::Rendezvous& rendezvous) {
  gang::SharedRendezvous shared{.address = rendezvous.address(),
                                .master_port = static_cast<int>(rendezvous.master_port())};
  if (!rendezvous.host().empty())
    shared.rank_zero = {rendezvous.host(), static_cast<int>(rendezvous.port())};
  return shared;
}

gang::Action ToAction(v1::Action action) {
  switch (action) {
    case v1::STOP:
      return gang::Action::kStop;
    case v1::PAUSE:
      return gang::Action::kPause;
    default:
      return gang::Action::kContinue;
  }
}

v1::Failure::Kind ToProto(gang::FailureKind kind) {
  switch (kind) {
    case gang::FailureKind::kExit:
      return v1::Failure::EXIT;
    case gang::FailureKind::kSignal:
      return v1::Failure::SIGNAL;
    case gang::FailureKind::kStall:
      return v1::Failure::STALL;
    case gang::FailureKind::kStart:
      return v1::Failure::START;
    case gang::FailureKind::kProtocol:
      return v1::Failure::PROTOCOL;
    case gang::FailureKind::kLease:
      return v1::Failure::LEASE;
    case gang::FailureKind::kHost:
      return v1::Failure::HOST;
    case gang::FailureKind::kDisk:
      return v1::Failure::DISK;
    case gang::FailureKind::kEnvironment:
      return v1::Failure::ENVIRONMENT;
  }
  return v1::Failure::KIND_UNSPECIFIED;
}

v1::Ended::Outcome ToProto(gang::Outcome outcome) {
  switch (outcome) {
    case gang::Outcome::kFinished:
      return v1::Ended::FINISHED;
    case gang::Outcome::kFailed:
      return v1::Ended::FAILED;
    case gang::Outcome::kCancelled:
      return v1::Ended::CANCELLED;
  }
  return v1::Ended::OUTCOME_UNSPECIFIED;
}

void AddMetrics(const std::vector<std::pair<std::string, double>>& metrics,
                google::protobuf::RepeatedPtrField<v1::Metric>& out) {
  for (const auto& [name, value] : metrics) {
    v1::Metric& metric = *out.Add();
    metric.set_name(name);
    metric.set_value(value);
  }
}

// Visitor that fills the field of `out` for its kind of fact.
struct FactWriter {
  v1::Fact& out;

  void operator()(const gang::Started& started) const {
    v1::Started& message = *out.mutable_started();
    for (const pid_t pid : started.pids) message.add_pids(pid);
  }
  void operator()(const gang::FirstStep&) const { out.mutable_first_step(); }
  void operator()(const gang::SharedRendezvous& shared) const {
    v1::Rendezvous& message = *out.mutable_rendezvous();
    message.set_address(shared.address);
    message.set_master_port(static_cast<uint32_t>(shared.master_port));
    if (!shared.rank_zero) return;
    message.set_host(shared.rank_zero->host);
    message.set_port(static_cast<uint32_t>(shared.rank_zero->port));
  }
  void operator()(const gang::Report& report) const {
    v1::Report& message = *out.mutable_report();
    message.set_step(report.step);
    message.set_seconds(report.seconds);
    message.set_waits(report.waits.value_or(false));
    AddMetrics(report.metrics, *message.mutable_metrics());
  }
  void operator()(const gang::NumberedLog& log) const {
    v1::Logged& message = *out.mutable_logged();
    message.set_number(log.number);
    message.set_step(log.logged.step);
    AddMetrics(log.logged.metrics, *message.mutable_metrics());
  }
  void operator()(const gang::CheckpointSaved& checkpoint) const {
    v1::CheckpointSaved& message = *out.mutable_checkpoint();
    message.set_step(checkpoint.step);
    message.set_path(checkpoint.path);
    message.set_digest(checkpoint.digest);
    message.set_bytes(checkpoint.bytes);
  }
  void operator()(const gang::Ended& ended) const {
    v1::Ended& message = *out.mutable_ended();
    message.set_outcome(ToProto(ended.outcome));
    message.set_silence(ended.silence);
    if (!ended.failure) return;
    v1::Failure& failure = *message.mutable_failure();
    failure.set_kind(ToProto(ended.failure->kind));
    failure.set_rank(ended.failure->rank);
    failure.set_exit_code(ended.failure->exit_code);
    failure.set_signal(ended.failure->signal);
    failure.set_message(ValidUtf8(ended.failure->message));
    failure.set_log_tail(ValidUtf8(ended.failure->log_tail));
    failure.set_lost_peer(ended.failure->lost_peer);
    failure.set_pattern(ended.failure->match.pattern);
    failure.set_line(ValidUtf8(ended.failure->match.line));
  }
};

std::vector<gang::PieceServer> FromProto(
    const google::protobuf::RepeatedPtrField<v1::PieceServer>& servers) {
  std::vector<gang::PieceServer> all;
  for (const v1::PieceServer& server : servers) {
    all.push_back(
        {server.executor(), server.address(), static_cast<uint16_t>(server.port()), server.key()});
  }
  return all;
}

gang::RemoteFiles ToRemoteFiles(const v1::ResumeFrom& resume) {
  const v1::CheckpointName& name = resume.fetch();
  gang::RemoteFiles files{.name = {name.sweep(), name.trial(), name.attempt(), name.step()},
                          .folder = std::filesystem::path(resume.path()).filename(),
                          .servers = FromProto(resume.servers()),
                          .code = {}};
  if (resume.has_stored())
    files.stored = gang::StoredCopy{resume.stored().address(), resume.stored().path(),
                                    ToVariables(resume.stored().environment())};
  return files;
}

gang::Code ToCode(const v1::Code& code) {
  return {.files = {.name = {},
                    .folder = {},
                    .servers = FromProto(code.servers()),
                    .code = code.digest()},
          .writable = code.writable()};
}

gang::DataFile ToDataFile(const v1::Data& data) {
  return {
      .name = data.name(), .url = data.url(), .sha256 = data.sha256(), .variable = data.variable()};
}

gang::KnownFiles ToKnownFiles(const v1::KnownFiles& files) {
  gang::KnownFiles known{.attempts = files.attempts(), .checkpoints = {}};
  for (const v1::CheckpointName& checkpoint : files.checkpoints())
    known.checkpoints.insert(gang::CheckpointFolder(checkpoint.step(), checkpoint.attempt()));
  return known;
}

}  // namespace

gang::AttemptId FromProto(const v1::AttemptRef& ref) {
  return {
      .sweep = ref.sweep(), .trial = ref.trial(), .attempt = ref.attempt(), .epoch = ref.epoch()};
}

v1::AttemptRef ToProto(const gang::AttemptId& attempt) {
  v1::AttemptRef ref;
  ref.set_sweep(attempt.sweep);
  ref.set_trial(attempt.trial);
  ref.set_attempt(attempt.attempt);
  ref.set_epoch(attempt.epoch);
  return ref;
}

v1::CheckpointName ToProto(const gang::CheckpointName& checkpoint) {
  v1::CheckpointName name;
  name.set_sweep(checkpoint.sweep);
  name.set_trial(checkpoint.trial);
  name.set_attempt(checkpoint.attempt);
  name.set_step(checkpoint.step);
  return name;
}

Result<gang::GangSpec> ToSpec(const v1::Assignment& assignment, const gang::Folders& folders) {
  Result<std::vector<gang::NamedValue>> config = ToConfig(assignment);
  if (!config.ok()) return config.error();

  gang::GangSpec spec;
  spec.attempt = FromProto(assignment.attempt());
  const v1::Program& program = assignment.program();
  spec.program.command.assign(program.command().begin(), program.command().end());
  spec.program.environment = ToVariables(program.environment());
  spec.program.missing_secrets.assign(program.missing_secrets().begin(),
                                      program.missing_secrets().end());
  spec.program.working_directory = program.working_directory();
  spec.program.report_pattern = program.report_pattern();
  if (program.has_code()) spec.code = ToCode(program.code());
  for (const v1::Data& data : program.data()) spec.data.push_back(ToDataFile(data));
  if (program.has_packages() && !program.packages().container().empty()) {
    spec.container = {.image = program.packages().container(),
                      .engine = program.packages().engine()};
  } else if (program.has_packages()) {
    spec.environment_files = {
        .python = program.packages().python(), .wheels = program.packages().wheels(), .root = {}};
  }
  spec.program.log_patterns.assign(assignment.log_patterns().begin(),
                                   assignment.log_patterns().end());
  spec.config = std::move(config.value());
  spec.seed = assignment.seed();
  spec.world_size = static_cast<int>(assignment.world_size());
  for (const v1::RankSlot& slot : assignment.ranks()) {
    spec.ranks.push_back(
        {.rank = static_cast<int>(slot.rank()),
         .local_rank = static_cast<int>(slot.local_rank()),
         .cpus = static_cast<int>(slot.cpus()),
         .gpus = {slot.gpus().begin(), slot.gpus().end()},
         .gpu_percent = slot.gpu_percent() == 0 ? 100 : static_cast<int>(slot.gpu_percent())});
  }
  spec.node_rank = static_cast<int>(assignment.node_rank());
  spec.nodes = static_cast<int>(assignment.nodes());
  spec.max_restarts = static_cast<int>(assignment.max_restarts());
  if (assignment.has_rendezvous()) spec.rendezvous = ToRendezvous(assignment.rendezvous());
  spec.milestone = assignment.milestone();
  spec.time_attr = assignment.time_attr();
  spec.max_step = assignment.max_step();
  spec.checkpoint_every = assignment.checkpoint_every();
  if (assignment.has_resume()) {
    spec.resume = gang::Resume{assignment.resume().step(), assignment.resume().path(),
                               assignment.resume().digest()};
    if (assignment.resume().has_fetch()) spec.fetch = ToRemoteFiles(assignment.resume());
  }
  spec.stall_timeout = std::chrono::milliseconds(assignment.stall_timeout_ms());
  spec.grace = std::chrono::milliseconds(assignment.grace_ms());
  spec.identity = assignment.identity();
  if (assignment.has_known()) spec.known = ToKnownFiles(assignment.known());
  spec.sweep_dir = folders.Sweep(spec.attempt.sweep);
  spec.attempt_dir = folders.Attempt(spec.attempt);
  spec.checkpoint_dir = folders.Checkpoints(spec.attempt);
  spec.files_dir = folders.Files(spec.attempt);
  spec.work_dir = folders.Work(spec.attempt);
  spec.set_aside_dir = folders.SetAside();
  return spec;
}

std::vector<SweepFiles> FromProto(const google::protobuf::RepeatedPtrField<v1::SweepFiles>& files) {
  std::vector<SweepFiles> all;
  for (const v1::SweepFiles& group : files) {
    for (const uint64_t sweep : group.sweeps()) all.push_back({sweep, group.identity()});
  }
  return all;
}

void AddSweepFiles(const SweepFiles& files,
                   google::protobuf::RepeatedPtrField<v1::SweepFiles>& out) {
  auto group = std::ranges::find(out, files.identity, &v1::SweepFiles::identity);
  if (group == out.end()) {
    out.Add()->set_identity(files.identity);
    group = std::prev(out.end());
  }
  group->add_sweeps(files.sweep);
}

gang::Verdict ToVerdict(const v1::Assignment& assignment) {
  return {.step = assignment.verdict_step(),
          .action = ToAction(assignment.action()),
          .milestone = assignment.milestone()};
}

v1::Fact ToProto(const gang::Fact& fact) {
  v1::Fact message;
  *message.mutable_attempt() = ToProto(fact.attempt);
  message.set_time_us(fact.time_us);
  std::visit(FactWriter{message}, fact.what);
  return message;
}

}  // namespace attune::agent
