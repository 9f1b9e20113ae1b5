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
    default:
      return FailureKind::kNone;
  }
}

AttemptEnded FromProto(const AttemptId& attempt, const v1::Ended& ended) {
  AttemptEnded fact{.attempt = attempt, .outcome = Outcome::kKilled};
  if (ended.outcome() == v1::Ended::FINISHED) fact.outcome = Outcome::kFinished;
  if (ended.outcome() == v1::Ended::FAILED) {
    const v1::Failure& failure = ended.failure();
    fact.outcome = Outcome::kFailed;
    fact.failure = {.kind = FromProto(failure.kind()),
                    .rank = failure.rank(),
                    .exit_code = failure.exit_code(),
                    .signal = failure.signal(),
                    .message = failure.message(),
                    .log_tail = failure.log_tail()};
  }
  return fact;
}

v1::Action ActionOf(VerdictKind verdict) {
  switch (verdict) {
    case VerdictKind::kContinue:
      return v1::CONTINUE;
    case VerdictKind::kPause:
      return v1::PAUSE;
    case VerdictKind::kStop:
    case VerdictKind::kExploit:
      return v1::STOP;
  }
  return v1::STOP;
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

Resources FromProto(const v1::Resources& resources) {
  return {.cpus = static_cast<int>(resources.cpus()),
          .gpus = static_cast<int>(resources.gpus()),
          .memory_bytes = static_cast<int64_t>(resources.memory_bytes())};
}

std::optional<RecordFact> FromProto(const v1::Fact& fact) {
  const AttemptId attempt = FromProto(fact.attempt());
  RecordFact command{.epoch = Epoch(fact.attempt().epoch())};
  switch (fact.fact_case()) {
    case v1::Fact::kStarted:
      command.fact =
          AttemptStarted{attempt, {fact.started().pids().begin(), fact.started().pids().end()}};
      break;
    case v1::Fact::kFirstStep:
      command.fact = AttemptFirstStep{attempt, Time{fact.time_us()}};
      break;
    case v1::Fact::kReport: {
      Report report{.step = Step(fact.report().step()),
                    .seconds = Seconds(fact.report().seconds())};
      for (const v1::Metric& metric : fact.report().metrics())
        report.metrics[metric.name()] = metric.value();
      command.fact = TrialReported{attempt, std::move(report)};
      break;
    }
    case v1::Fact::kCheckpoint: {
      const v1::CheckpointSaved& saved = fact.checkpoint();
      command.fact = CheckpointSaved{attempt,
                                     {Step(saved.step()), saved.path(), saved.digest()},
                                     static_cast<int64_t>(saved.bytes())};
      break;
    }
    case v1::Fact::kEnded:
      command.fact = FromProto(attempt, fact.ended());
      break;
    case v1::Fact::FACT_NOT_SET:
      return std::nullopt;
  }
  return command;
}

v1::Assignment ToAssignment(const SweepSpec& spec, const Trial& trial,
                            const std::string& executor) {
  const Attempt& attempt = *trial.live;
  v1::Assignment out;
  *out.mutable_attempt() = ToProto(attempt.id, attempt.epoch);

  v1::Program& program = *out.mutable_program();
  for (const std::string& argument : spec.program.command) program.add_command(argument);
  for (const auto& [name, value] : spec.program.environment) {
    v1::NamedValue& variable = *program.add_environment();
    variable.set_name(name);
    variable.mutable_value()->set_text(value);
  }
  program.set_working_directory(spec.program.working_directory);

  for (const auto& [name, value] : trial.config.entries()) {
    v1::NamedValue& entry = *out.add_config();
    entry.set_name(name);
    *entry.mutable_value() = ToProto(value);
  }
  out.set_seed(SeedOf(spec, trial.id.number));
  out.set_world_size(static_cast<uint32_t>(attempt.ranks.size()));
  for (size_t rank = 0; rank < attempt.ranks.size(); ++rank) {
    const RankSlot& slot = attempt.ranks[rank];
    if (slot.executor != executor) continue;
    v1::RankSlot& out_slot = *out.add_ranks();
    out_slot.set_rank(static_cast<uint32_t>(rank));
    out_slot.set_local_rank(static_cast<uint32_t>(slot.local_rank));
    out_slot.set_cpus(static_cast<uint32_t>(slot.cpus));
    for (int gpu : slot.gpus) out_slot.add_gpus(static_cast<uint32_t>(gpu));
  }
  out.set_max_step(spec.max_step.value);
  out.set_checkpoint_every(spec.checkpoint_every.value);
  if (attempt.resume) {
    out.mutable_resume()->set_step(attempt.resume->step.value);
    out.mutable_resume()->set_path(attempt.resume->path);
    out.mutable_resume()->set_digest(attempt.resume->digest);
  }
  out.set_stall_timeout_ms(static_cast<uint32_t>(spec.failure.stall_timeout.value * 1000));
  out.set_decided_us(attempt.decided.us);
  out.set_milestone(trial.milestone.value);
  out.set_verdict_step(attempt.verdict_step.value);
  out.set_action(ActionOf(attempt.verdict));
  return out;
}

}  // namespace attune::server
