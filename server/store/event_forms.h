#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/log/event.h"
#include "server/store/fact_json.h"

// For event_codec.cc alone: what the payload of each kind of fact looks like. Reading throws
// Json::exception for a payload that lacks a field or has one of another type.
namespace attune::server {

// What the row's own columns say; a payload does not repeat it.
struct About {
  std::optional<SweepId> sweep;
  std::optional<TrialNumber> trial;

  SweepId Sweep() const {
    if (!sweep) throw Json::other_error::create(501, "the row names no sweep", nullptr);
    return *sweep;
  }
  TrialId Trial() const {
    if (!trial) throw Json::other_error::create(501, "the row names no trial", nullptr);
    return {Sweep(), *trial};
  }
  AttemptId Attempt(const Json& number) const { return {Trial(), Integer<uint32_t>(number)}; }
  CheckpointId Checkpoint(const Json& json) const {
    return {Trial(), Integer<uint32_t>(json.at("attempt")),
            Step(Integer<int64_t>(json.at("step")))};
  }
};

// Absent where it is empty, and in logs of versions that did not know it.
inline void SetKey(Json& json, const std::string& idempotency_key) {
  if (!idempotency_key.empty()) json["idempotency_key"] = idempotency_key;
}

inline std::string KeyOf(const Json& json) { return json.value("idempotency_key", std::string()); }

template <class T>
struct Form;  // kind, its version where that is not 1, Write, Read

template <>
struct Form<SweepCreated> {
  static constexpr std::string_view kKind = "sweep_created";
  static Json Write(const SweepCreated& fact) {
    return {{"spec", sweepfile::ToJson(fact.spec)},
            {"source", fact.source},
            {"idempotency_key", fact.idempotency_key}};
  }
  static SweepCreated Read(const About& about, const Json& json) {
    return {.sweep = about.Sweep(),
            .spec = ValueOrThrow(sweepfile::SpecFromJson(json.at("spec"))),
            .source = Text(json, "source"),
            .idempotency_key = Text(json, "idempotency_key")};
  }
};

template <>
struct Form<SweepPaused> {
  static constexpr std::string_view kKind = "sweep_paused";
  static Json Write(const SweepPaused& fact) { return {{"reason", fact.reason}}; }
  static SweepPaused Read(const About& about, const Json& json) {
    return {.sweep = about.Sweep(), .reason = Text(json, "reason")};
  }
};

template <>
struct Form<SweepResumed> {
  static constexpr std::string_view kKind = "sweep_resumed";
  static Json Write(const SweepResumed&) { return Json::object(); }
  static SweepResumed Read(const About& about, const Json&) { return {about.Sweep()}; }
};

template <>
struct Form<SweepExtended> {
  static constexpr std::string_view kKind = "sweep_extended";
  static Json Write(const SweepExtended& fact) {
    return {{"stop", ToJson(fact.stop)}, {"max_step", fact.max_step.value}};
  }
  static SweepExtended Read(const About& about, const Json& json) {
    return {.sweep = about.Sweep(),
            .stop = StopFromJson(json.at("stop")),
            .max_step = Step(Integer<int64_t>(json.at("max_step")))};
  }
};

template <>
struct Form<SweepReopened> {
  static constexpr std::string_view kKind = "sweep_reopened";
  static Json Write(const SweepReopened& fact) { return {{"reason", fact.reason}}; }
  static SweepReopened Read(const About& about, const Json& json) {
    return {.sweep = about.Sweep(), .reason = Text(json, "reason")};
  }
};

template <>
struct Form<SweepStopping> {
  static constexpr std::string_view kKind = "sweep_stopping";
  static Json Write(const SweepStopping& fact) {
    return {{"outcome", Name(fact.outcome)}, {"reason", fact.reason}};
  }
  static SweepStopping Read(const About& about, const Json& json) {
    return {.sweep = about.Sweep(),
            .outcome = ParseSweepState(json.at("outcome")),
            .reason = Text(json, "reason")};
  }
};

template <>
struct Form<SweepEnded> {
  static constexpr std::string_view kKind = "sweep_ended";
  static Json Write(const SweepEnded& fact) {
    return {{"state", Name(fact.state)}, {"reason", fact.reason}};
  }
  static SweepEnded Read(const About& about, const Json& json) {
    return {.sweep = about.Sweep(),
            .state = ParseSweepState(json.at("state")),
            .reason = Text(json, "reason")};
  }
};

template <>
struct Form<SearchExhausted> {
  static constexpr std::string_view kKind = "search_exhausted";
  static Json Write(const SearchExhausted&) { return Json::object(); }
  static SearchExhausted Read(const About& about, const Json&) { return {about.Sweep()}; }
};

template <>
struct Form<TrialCreated> {
  static constexpr std::string_view kKind = "trial_created";
  static Json Write(const TrialCreated& fact) {
    Json json = {{"config", sweepfile::ToJson(fact.config)}, {"origin", fact.origin}};
    SetKey(json, fact.idempotency_key);
    return json;
  }
  static TrialCreated Read(const About& about, const Json& json) {
    return {.trial = about.Trial(),
            .config = ValueOrThrow(sweepfile::ConfigFromJson(json.at("config"))),
            .origin = Text(json, "origin"),
            .idempotency_key = KeyOf(json)};
  }
};

template <>
struct Form<TrialReopened> {
  static constexpr std::string_view kKind = "trial_reopened";
  static Json Write(const TrialReopened& fact) {
    const TrialRecord& record = fact.record;
    Json checkpoints = Json::array();
    for (const KeptCheckpoint& kept : record.checkpoints) checkpoints.push_back(ToJson(kept));
    return {{"config", sweepfile::ToJson(record.config)},
            {"state", Name(record.state)},
            {"attempts", record.attempts},
            {"last_step", record.last_step.value},
            {"seconds", sweepfile::RealToJson(record.seconds.value)},
            {"checkpoints", std::move(checkpoints)},
            {"until", fact.until.value},
            {"from_start", fact.from_start},
            {"reason", fact.reason}};
  }
  static TrialReopened Read(const About& about, const Json& json) {
    TrialReopened fact{
        .record = {.id = about.Trial(),
                   .config = ValueOrThrow(sweepfile::ConfigFromJson(json.at("config"))),
                   .state = ParseTrialState(json.at("state")),
                   .attempts = Integer<uint32_t>(json.at("attempts")),
                   .last_step = Step(Integer<int64_t>(json.at("last_step"))),
                   .seconds = Seconds(Real(json, "seconds"))},
        .until = Step(Integer<int64_t>(json.at("until"))),
        .from_start = json.at("from_start").get<bool>(),
        .reason = Text(json, "reason")};
    for (const Json& kept : json.at("checkpoints"))
      fact.record.checkpoints.push_back(KeptFromJson(kept));
    return fact;
  }
};

template <>
struct Form<AttemptAssigned> {
  static constexpr std::string_view kKind = "attempt_assigned";
  static Json Write(const AttemptAssigned& fact) {
    Json ranks = Json::array();
    for (const RankSlot& slot : fact.ranks) ranks.push_back(ToJson(slot));
    Json json = {{"attempt", fact.attempt.number},
                 {"epoch", fact.epoch.value},
                 {"ranks", std::move(ranks)},
                 {"resume", fact.resume ? ToJson(*fact.resume) : Json()},
                 {"milestone", fact.milestone.value}};
    SetKey(json, fact.idempotency_key);
    return json;
  }
  static AttemptAssigned Read(const About& about, const Json& json) {
    AttemptAssigned fact{.attempt = about.Attempt(json.at("attempt")),
                         .epoch = Epoch(Integer<uint64_t>(json.at("epoch"))),
                         .milestone = Step(Integer<int64_t>(json.at("milestone"))),
                         .idempotency_key = KeyOf(json)};
    for (const Json& slot : json.at("ranks")) fact.ranks.push_back(SlotFromJson(slot));
    if (const Json& resume = json.at("resume"); !resume.is_null())
      fact.resume = CheckpointFromJson(resume);
    return fact;
  }
};

template <>
struct Form<AttemptStarted> {
  static constexpr std::string_view kKind = "attempt_started";
  static Json Write(const AttemptStarted& fact) {
    return {{"attempt", fact.attempt.number}, {"pids", fact.pids}};
  }
  static AttemptStarted Read(const About& about, const Json& json) {
    return {.attempt = about.Attempt(json.at("attempt")),
            .pids = Integers<int64_t>(json.at("pids"))};
  }
};

template <>
struct Form<AttemptFirstStep> {
  static constexpr std::string_view kKind = "attempt_first_step";
  static Json Write(const AttemptFirstStep& fact) {
    return {{"attempt", fact.attempt.number}, {"at_us", fact.at.us}};
  }
  static AttemptFirstStep Read(const About& about, const Json& json) {
    return {.attempt = about.Attempt(json.at("attempt")),
            .at = Time{Integer<int64_t>(json.at("at_us"))}};
  }
};

// Version 2 is an array, written and read by report_form.h; version 1 was an object.
template <>
struct Form<TrialReported> {
  static constexpr std::string_view kKind = "trial_reported";
  static constexpr int kVersion = 2;
  static TrialReported Read(const About& about, const Json& json) {
    if (json.is_object())
      return {about.Attempt(json.at("attempt")),
              Report(json.at("step"), json.at("seconds"), json.at("metrics"), false)};
    const bool waits = json.size() > 4 && json.at(4).get<bool>();
    return {about.Attempt(json.at(0)), Report(json.at(1), json.at(2), json.at(3), waits)};
  }

 private:
  static attune::Report Report(const Json& step, const Json& seconds, const Json& metrics,
                               bool waits) {
    return {.step = Step(Integer<int64_t>(step)),
            .metrics = ValueOrThrow(sweepfile::MetricsFromJson(metrics)),
            .seconds = Seconds(ValueOrThrow(sweepfile::RealFromJson(seconds))),
            .waits = waits};
  }
};

template <>
struct Form<TrialYielding> {
  static constexpr std::string_view kKind = "trial_yielding";
  static Json Write(const TrialYielding& fact) { return ToJson(fact.verdict); }
  static TrialYielding Read(const About& about, const Json& json) {
    return {.trial = about.Trial(), .verdict = VerdictFromJson(json)};
  }
};

template <>
struct Form<TrialDecided> {
  static constexpr std::string_view kKind = "trial_decided";
  static Json Write(const TrialDecided& fact) {
    Json json = {{"attempt", fact.attempt.number}, {"step", fact.step.value}};
    json.update(ToJson(fact.verdict));
    json["milestone"] = fact.milestone.value;
    if (fact.cloned) json["cloned"] = ToJson(*fact.cloned);
    return json;
  }
  static TrialDecided Read(const About& about, const Json& json) {
    TrialDecided fact{.attempt = about.Attempt(json.at("attempt")),
                      .step = Step(Integer<int64_t>(json.at("step"))),
                      .verdict = VerdictFromJson(json),
                      .milestone = Step(Integer<int64_t>(json.at("milestone")))};
    if (const auto cloned = json.find("cloned"); cloned != json.end())
      fact.cloned = KeptFromJson(*cloned);
    return fact;
  }
};

template <>
struct Form<CheckpointSaved> {
  static constexpr std::string_view kKind = "checkpoint_saved";
  static Json Write(const CheckpointSaved& fact) {
    return {{"attempt", fact.attempt.number},
            {"step", fact.checkpoint.step.value},
            {"path", fact.checkpoint.path},
            {"digest", fact.checkpoint.digest},
            {"bytes", fact.bytes}};
  }
  static CheckpointSaved Read(const About& about, const Json& json) {
    return {.attempt = about.Attempt(json.at("attempt")),
            .checkpoint = CheckpointFromJson(json),
            .bytes = Integer<int64_t>(json.at("bytes"))};
  }
};

template <>
struct Form<CheckpointPinned> {
  static constexpr std::string_view kKind = "checkpoint_pinned";
  static Json Write(const CheckpointPinned& fact) {
    return {{"attempt", fact.checkpoint.attempt},
            {"step", fact.checkpoint.step.value},
            {"pinned", fact.pinned}};
  }
  static CheckpointPinned Read(const About& about, const Json& json) {
    return {.checkpoint = about.Checkpoint(json), .pinned = json.at("pinned").get<bool>()};
  }
};

template <>
struct Form<CheckpointDropped> {
  static constexpr std::string_view kKind = "checkpoint_dropped";
  static Json Write(const CheckpointDropped& fact) {
    return {{"attempt", fact.checkpoint.attempt},
            {"step", fact.checkpoint.step.value},
            {"executor", fact.executor},
            {"path", fact.path},
            {"reason", fact.reason}};
  }
  static CheckpointDropped Read(const About& about, const Json& json) {
    return {.checkpoint = about.Checkpoint(json),
            .executor = Text(json, "executor"),
            .path = Text(json, "path"),
            .reason = Text(json, "reason")};
  }
};

template <>
struct Form<CheckpointRemoved> {
  static constexpr std::string_view kKind = "checkpoint_removed";
  static Json Write(const CheckpointRemoved& fact) {
    return {{"attempt", fact.checkpoint.attempt}, {"step", fact.checkpoint.step.value}};
  }
  static CheckpointRemoved Read(const About& about, const Json& json) {
    return {.checkpoint = about.Checkpoint(json)};
  }
};

template <>
struct Form<AttemptEnded> {
  static constexpr std::string_view kKind = "attempt_ended";
  static Json Write(const AttemptEnded& fact) {
    Json json = {{"attempt", fact.attempt.number}, {"outcome", Name(fact.outcome)}};
    if (fact.outcome == Outcome::kFailed) json["failure"] = ToJson(fact.failure);
    return json;
  }
  static AttemptEnded Read(const About& about, const Json& json) {
    AttemptEnded fact{.attempt = about.Attempt(json.at("attempt")),
                      .outcome = ParseOutcome(json.at("outcome"))};
    if (const auto failure = json.find("failure"); failure != json.end())
      fact.failure = FailureFromJson(*failure);
    return fact;
  }
};

template <>
struct Form<TrialRequeued> {
  static constexpr std::string_view kKind = "trial_requeued";
  static Json Write(const TrialRequeued& fact) {
    return {{"reason", fact.reason}, {"not_before_us", fact.not_before.us}};
  }
  static TrialRequeued Read(const About& about, const Json& json) {
    return {.trial = about.Trial(),
            .reason = Text(json, "reason"),
            .not_before = Time{json.value("not_before_us", int64_t{0})}};
  }
};

template <>
struct Form<TrialEnded> {
  static constexpr std::string_view kKind = "trial_ended";
  static Json Write(const TrialEnded& fact) {
    return {{"state", Name(fact.state)}, {"reason", fact.reason}};
  }
  static TrialEnded Read(const About& about, const Json& json) {
    return {.trial = about.Trial(),
            .state = ParseTrialState(json.at("state")),
            .reason = Text(json, "reason")};
  }
};

template <>
struct Form<SlotsReserved> {
  static constexpr std::string_view kKind = "slots_reserved";
  static Json Write(const SlotsReserved& fact) {
    return {{"executor", fact.executor}, {"reason", fact.reason}};
  }
  static SlotsReserved Read(const About& about, const Json& json) {
    return {
        .sweep = about.Sweep(), .executor = Text(json, "executor"), .reason = Text(json, "reason")};
  }
};

template <>
struct Form<ReservationReleased> {
  static constexpr std::string_view kKind = "reservation_released";
  static Json Write(const ReservationReleased& fact) { return {{"reason", fact.reason}}; }
  static ReservationReleased Read(const About& about, const Json& json) {
    return {.sweep = about.Sweep(), .reason = Text(json, "reason")};
  }
};

template <>
struct Form<ExecutorJoined> {
  static constexpr std::string_view kKind = "executor_joined";
  static Json Write(const ExecutorJoined& fact) {
    return {{"name", fact.name},
            {"instance", fact.instance},
            {"incarnation", fact.incarnation.value},
            {"address", fact.address},
            {"cpus", fact.resources.cpus},
            {"gpus", fact.resources.gpus},
            {"memory_bytes", fact.resources.memory_bytes}};
  }
  static ExecutorJoined Read(const About&, const Json& json) {
    return {.name = Text(json, "name"),
            .instance = Text(json, "instance"),
            .incarnation = Incarnation(Integer<uint64_t>(json.at("incarnation"))),
            .address = Text(json, "address"),
            .resources = {.cpus = Integer<int>(json.at("cpus")),
                          .gpus = Integer<int>(json.at("gpus")),
                          .memory_bytes = Integer<int64_t>(json.at("memory_bytes"))}};
  }
};

template <>
struct Form<ExecutorLost> {
  static constexpr std::string_view kKind = "executor_lost";
  static Json Write(const ExecutorLost& fact) {
    return {{"name", fact.name}, {"incarnation", fact.incarnation.value}, {"reason", fact.reason}};
  }
  static ExecutorLost Read(const About&, const Json& json) {
    return {.name = Text(json, "name"),
            .incarnation = Incarnation(Integer<uint64_t>(json.at("incarnation"))),
            .reason = Text(json, "reason")};
  }
};

}  // namespace attune::server
