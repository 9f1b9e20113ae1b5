#include "server/store/fact_json.h"

namespace attune::server {
namespace {

template <class Enum>
Enum ParseName(const Json& json, std::initializer_list<Enum> known) {
  const auto& text = json.get_ref<const std::string&>();
  for (Enum value : known) {
    if (Name(value) == text) return value;
  }
  throw Json::other_error::create(501, "'" + text + "' is not a known word", &json);
}

FailureKind ParseFailureKind(const Json& json) {
  using enum FailureKind;
  return ParseName(json, {kNone, kExit, kSignal, kStall, kStart, kProtocol, kLease});
}

VerdictKind ParseVerdictKind(const Json& json) {
  using enum VerdictKind;
  return ParseName(json, {kContinue, kPause, kStop, kExploit});
}

Json ToJson(const Reason& reason) {
  return {{"rule", reason.rule},
          {"step", reason.step.value},
          {"rung", reason.rung.value},
          {"value", sweepfile::RealToJson(reason.value)},
          {"cutoff", sweepfile::RealToJson(reason.cutoff)},
          {"rank", reason.rank},
          {"peers", reason.peers},
          {"text", reason.text}};
}

Reason ReasonFromJson(const Json& json) {
  return {.rule = Text(json, "rule"),
          .step = Step(Integer<int64_t>(json.at("step"))),
          .rung = Step(Integer<int64_t>(json.at("rung"))),
          .value = Real(json, "value"),
          .cutoff = Real(json, "cutoff"),
          .rank = Integer<int64_t>(json.at("rank")),
          .peers = Integer<int64_t>(json.at("peers")),
          .text = Text(json, "text")};
}

}  // namespace

SweepState ParseSweepState(const Json& json) {
  using enum SweepState;
  return ParseName(json, {kRunning, kPaused, kCompleted, kStopped, kFailed, kKilled});
}

TrialState ParseTrialState(const Json& json) {
  using enum TrialState;
  return ParseName(json, {kPending, kRunning, kPaused, kCompleted, kStopped, kFailed, kKilled});
}

Outcome ParseOutcome(const Json& json) {
  using enum Outcome;
  return ParseName(json, {kFinished, kStopped, kPaused, kFailed, kLost, kKilled});
}

std::string Text(const Json& json, const char* key) { return json.at(key).get<std::string>(); }

double Real(const Json& json, const char* key) {
  return ValueOrThrow(sweepfile::RealFromJson(json.at(key)));
}

Json ToJson(const CheckpointRef& checkpoint) {
  return {
      {"step", checkpoint.step.value}, {"path", checkpoint.path}, {"digest", checkpoint.digest}};
}

CheckpointRef CheckpointFromJson(const Json& json) {
  return {.step = Step(Integer<int64_t>(json.at("step"))),
          .path = Text(json, "path"),
          .digest = Text(json, "digest")};
}

Json ToJson(const KeptCheckpoint& kept) {
  Json json = ToJson(kept.ref);
  json["attempt"] = kept.attempt;
  json["executor"] = kept.executor;
  json["value"] = kept.value ? sweepfile::RealToJson(*kept.value) : Json();
  json["pinned"] = kept.pinned;
  return json;
}

KeptCheckpoint KeptFromJson(const Json& json) {
  KeptCheckpoint kept{.attempt = Integer<uint32_t>(json.at("attempt")),
                      .ref = CheckpointFromJson(json),
                      .executor = Text(json, "executor"),
                      .pinned = json.at("pinned").get<bool>()};
  if (!json.at("value").is_null()) kept.value = Real(json, "value");
  return kept;
}

Json ToJson(const StopPolicy& stop) {
  return {{"max_trials", stop.max_trials},
          {"max_seconds", sweepfile::RealToJson(stop.max_time.value)},
          {"max_gpu_hours", sweepfile::RealToJson(stop.max_gpu_hours)},
          {"patience", stop.patience},
          {"max_trial_seconds", sweepfile::RealToJson(stop.max_trial_time.value)},
          {"trial_patience", stop.trial_patience},
          {"target", stop.target ? sweepfile::RealToJson(*stop.target) : Json()}};
}

StopPolicy StopFromJson(const Json& json) {
  StopPolicy stop{.max_trials = Integer<int>(json.at("max_trials")),
                  .max_time = Seconds(Real(json, "max_seconds")),
                  .max_gpu_hours = Real(json, "max_gpu_hours"),
                  .patience = Integer<int>(json.at("patience")),
                  .max_trial_time = Seconds(Real(json, "max_trial_seconds")),
                  .trial_patience = Integer<int>(json.at("trial_patience"))};
  if (!json.at("target").is_null()) stop.target = Real(json, "target");
  return stop;
}

Json ToJson(const RankSlot& slot) {
  return {{"executor", slot.executor},
          {"local_rank", slot.local_rank},
          {"cpus", slot.cpus},
          {"gpus", slot.gpus},
          {"memory_bytes", slot.memory_bytes}};
}

RankSlot SlotFromJson(const Json& json) {
  return {.executor = Text(json, "executor"),
          .local_rank = Integer<int>(json.at("local_rank")),
          .cpus = Integer<int>(json.at("cpus")),
          .gpus = Integers<int>(json.at("gpus")),
          .memory_bytes = Integer<int64_t>(json.at("memory_bytes"))};
}

Json ToJson(const Failure& failure) {
  return {{"kind", Name(failure.kind)},     {"rank", failure.rank},
          {"exit_code", failure.exit_code}, {"signal", failure.signal},
          {"message", failure.message},     {"log_tail", failure.log_tail}};
}

Failure FailureFromJson(const Json& json) {
  return {.kind = ParseFailureKind(json.at("kind")),
          .rank = Integer<int>(json.at("rank")),
          .exit_code = Integer<int>(json.at("exit_code")),
          .signal = Integer<int>(json.at("signal")),
          .message = Text(json, "message"),
          .log_tail = Text(json, "log_tail")};
}

Json ToJson(const Verdict& verdict) {
  Json json = {{"verdict", Name(verdict.kind)}, {"reason", ToJson(verdict.reason)}};
  if (verdict.kind == VerdictKind::kExploit) {
    json["donor"] = verdict.donor.value;
    json["config"] = sweepfile::ToJson(verdict.config);
  }
  return json;
}

Verdict VerdictFromJson(const Json& json) {
  Verdict verdict{.kind = ParseVerdictKind(json.at("verdict")),
                  .reason = ReasonFromJson(json.at("reason"))};
  if (verdict.kind == VerdictKind::kExploit) {
    verdict.donor = TrialNumber(Integer<uint32_t>(json.at("donor")));
    if (const auto config = json.find("config"); config != json.end())
      verdict.config = ValueOrThrow(sweepfile::ConfigFromJson(*config));
  }
  return verdict;
}

}  // namespace attune::server
