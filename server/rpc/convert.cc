#include "server/rpc/convert.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/message_limits.h"
#include "core/log/sweep_keys.h"

namespace attune::server {
namespace {

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
    case v1::Failure::ENVIRONMENT:
      return FailureKind::kEnvironment;
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

v1::CheckpointName ToProto(const CheckpointId& checkpoint) {
  v1::CheckpointName name;
  name.set_sweep(checkpoint.trial.sweep.value);
  name.set_trial(checkpoint.trial.number.value);
  name.set_attempt(checkpoint.attempt);
  name.set_step(checkpoint.step.value);
  return name;
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
    case v1::Fact::kRecorded:
      if (fact.recorded().record().size() > kRecordBytesMax) return std::nullopt;
      return RecordEnvironment{
          attempt.trial.sweep, {}, std::move(*fact.mutable_recorded()->mutable_record())};
    case v1::Fact::kRemoved:
      return RecordRemoval{FromProto(fact.removed()), {}, LogIdentity(fact.removed().identity())};
    case v1::Fact::kStored:
      return RecordStored{FromProto(fact.stored().checkpoint()),
                          std::move(*fact.mutable_stored()->mutable_digest()),
                          std::move(*fact.mutable_stored()->mutable_address())};
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

}  // namespace attune::server
