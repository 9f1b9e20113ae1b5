#include "server/http/answers/event_stream.h"

#include <cmath>
#include <utility>

#include "server/http/answers/render.h"
#include "server/store/format_time.h"
#include "server/store/json.h"

namespace attune::server {
namespace {

Json NullIfNan(double value) {
  if (std::isnan(value)) return nullptr;
  return sweepfile::RealToJson(value);
}

// Collects the events of one fact.
class Translator {
 public:
  Translator(const Event& event, Reader& reader) : event_(event), reader_(reader) {}

  void operator()(const SweepCreated& fact) {
    Json taken = Json::array();
    for (const WarmStart& start : *fact.warm_start) taken.push_back(start.text);
    Add("sweep_created", {{"name", fact.spec->name}, {"warm_start", std::move(taken)}});
  }

  void operator()(const SweepPaused& fact) { AddSweepState(SweepState::kPaused, fact.reason); }
  void operator()(const SweepResumed&) { AddSweepState(SweepState::kRunning, ""); }
  void operator()(const SweepReopened& fact) { AddSweepState(SweepState::kRunning, fact.reason); }
  void operator()(const SweepEnded& fact) { AddSweepState(fact.state, fact.reason); }

  void operator()(const SweepAnnotated& fact) {
    Add("sweep_annotated", AnnotationMembers(fact.annotation));
  }
  void operator()(const TrialAnnotated& fact) {
    Add("trial_annotated", AnnotationMembers(fact.annotation));
  }

  void operator()(const SweepDeletionScheduled&) {
    Add("sweep_deletion_scheduled", Json::object());
  }
  void operator()(const SweepUndeleted&) { Add("sweep_undeleted", Json::object()); }
  void operator()(const SweepDeleted& fact) {
    Json members = Json::object();
    if (!fact.requester.empty()) members["actor"] = fact.requester;
    Add("sweep_deleted", members);
  }

  void operator()(const SweepStopping& fact) {
    Add("sweep_changed",
        {{"state", nullptr}, {"reason", fact.reason}, {"end_state", Name(fact.outcome)}});
  }

  void operator()(const SweepEdited& fact) {
    Add("sweep_edited", {{"name", fact.spec->name},
                         {"max_trials", fact.spec->stop.max_trials},
                         {"max_step", fact.spec->max_step.value},
                         {"priority", fact.spec->priority},
                         {"max_concurrent_trials", fact.spec->max_concurrent_trials},
                         {"limits", rest::ToJson(RenderLimits(fact.spec->stop))},
                         {"changes", fact.changes}});
  }

  void operator()(const TrialCreated& fact) {
    Add("trial_created", {{"config", sweepfile::ToJson(fact.config)},
                          {"state", Name(TrialState::kPending)},
                          {"origin", fact.origin},
                          {"reason", fact.rationale ? (*fact.rationale)->text : ""}});
  }

  void operator()(const TrialReopened& fact) { AddTrialState(TrialState::kPending, fact.reason); }

  void operator()(const TrialYielding& fact) {
    Add("trial_yielding",
        {{"verdict", Name(fact.verdict.kind)}, {"reason", fact.verdict.reason.text}});
  }

  void operator()(const AttemptAssigned& fact) {
    Json attempt = AttemptMembers(fact.attempt, AttemptState::kAssigned);
    attempt["executor"] = fact.ranks.empty() ? "" : fact.ranks.front().executor;
    if (fact.resume) attempt["resumed_from"] = fact.resume->step.value;
    Add("attempt_changed", std::move(attempt));
    AddTrialState(TrialState::kRunning, "");
  }

  void operator()(const AttemptStarted& fact) {
    Add("attempt_changed", KnownAttempt(fact.attempt, AttemptState::kRunning));
  }

  void operator()(const TrialReported& fact) {
    Add("trial_reported", {{"attempt", fact.attempt.number},
                           {"step", fact.report.step.value},
                           {"seconds", sweepfile::RealToJson(fact.report.seconds.value)},
                           {"metrics", sweepfile::ToJson(fact.report.metrics)}});
  }

  void operator()(const MetricsLogged& fact) {
    Add("metrics_logged", {{"attempt", fact.attempt.number},
                           {"step", fact.step},
                           {"metrics", sweepfile::ToJson(fact.metrics)}});
  }

  void operator()(const TrialDecided& fact) {
    const Reason& reason = fact.verdict.reason;
    Json decision = {{"step", fact.step.value},
                     {"verdict", Name(fact.verdict.kind)},
                     {"reason", reason.text},
                     {"rule", reason.rule},
                     {"rung", reason.rung.value},
                     {"value", NullIfNan(reason.value)},
                     {"cutoff", NullIfNan(reason.cutoff)},
                     {"rank", reason.rank},
                     {"peers", reason.peers},
                     {"milestone", fact.milestone.value}};
    if (fact.verdict.kind == VerdictKind::kExploit) {
      AddDonor(decision, fact.verdict.donor);
      decision["config"] = sweepfile::ToJson(fact.verdict.config);
    }
    Add("trial_decided", decision);
    if (fact.verdict.kind == VerdictKind::kPause) AddTrialState(TrialState::kPaused, reason.text);
  }

  void operator()(const TrialPromoted& fact) {
    Json change = {{"state", Name(TrialState::kPending)}, {"reason", fact.reason.text}};
    if (fact.donor) AddDonor(change, *fact.donor);
    if (fact.config) change["config"] = sweepfile::ToJson(*fact.config);
    Add("trial_changed", change);
  }

  void operator()(const CheckpointSaved& fact) {
    Add("checkpoint_saved", {{"attempt", fact.attempt.number},
                             {"step", fact.checkpoint.step.value},
                             {"path", fact.checkpoint.path},
                             {"digest", fact.checkpoint.digest},
                             {"bytes", fact.bytes}});
  }

  void operator()(const CheckpointPinned& fact) {
    Add("checkpoint_pinned", {{"attempt", fact.checkpoint.attempt},
                              {"step", fact.checkpoint.step.value},
                              {"pinned", fact.pinned}});
  }

  void operator()(const CheckpointDropped& fact) {
    Add("checkpoint_dropped", {{"attempt", fact.checkpoint.attempt},
                               {"step", fact.checkpoint.step.value},
                               {"reason", fact.reason}});
  }

  void operator()(const AttemptEnded& fact) {
    Json attempt = KnownAttempt(fact.attempt, AttemptState::kEnded);
    attempt["outcome"] = Name(fact.outcome);
    attempt["failure"] = fact.failure.message;
    Add("attempt_changed", std::move(attempt));
  }

  void operator()(const TrialRequeued& fact) {
    Json change = {{"state", Name(TrialState::kPending)}, {"reason", fact.reason}};
    const Time shown = DisplayTime(fact.not_before);
    if (shown > event_.time) change["not_before"] = FormatTime(shown);
    Add("trial_changed", change);
  }

  void operator()(const TrialEnded& fact) { AddTrialState(fact.state, fact.reason); }

  void operator()(const ExecutorJoined& fact) {
    Add("executor_changed", {{"executor", fact.name},
                             {"state", "online"},
                             {"cpus", fact.resources.cpus},
                             {"gpus", fact.resources.gpus},
                             {"memory_bytes", fact.resources.memory_bytes}});
  }

  void operator()(const ExecutorLost& fact) {
    Add("executor_changed", {{"executor", fact.name}, {"state", "lost"}});
  }

  // The event does not change whether the executor is connected, so `state` is null.
  void operator()(const ExecutorDrained& fact) {
    Add("executor_changed", {{"executor", fact.name},
                             {"state", nullptr},
                             {"drained", true},
                             {"reason", fact.reason},
                             {"now", fact.now}});
  }

  void operator()(const ExecutorResumed& fact) {
    Add("executor_changed", {{"executor", fact.name}, {"state", nullptr}, {"drained", false}});
  }

  void operator()(const ExecutorHealth& fact) {
    Add("executor_changed",
        {{"executor", fact.name}, {"state", nullptr}, {"health_problem", fact.problem}});
  }

  void operator()(const ExecutorQuarantined& fact) {
    Add("executor_changed", {{"executor", fact.name},
                             {"state", nullptr},
                             {"quarantined", true},
                             {"reason", fact.reason},
                             {"until", FormatTime(DisplayTime(fact.until))}});
  }

  void operator()(const ExecutorQuarantineEnded& fact) {
    Add("executor_changed", {{"executor", fact.name},
                             {"state", nullptr},
                             {"quarantined", false},
                             {"reason", fact.reason}});
  }

  void operator()(const ExecutorExcluded& fact) {
    Add("executor_excluded", {{"executor", fact.name}, {"reason", fact.reason}});
  }

  std::vector<StreamEvent> Take() { return std::move(events_); }

 private:
  void Add(std::string name, const Json& members) {
    Json data = {{"seq", event_.seq.value}};
    if (const auto sweep = SweepOf(event_.fact)) data["sweep"] = ToString(*sweep);
    if (const auto trial = TrialOf(event_.fact)) data["trial"] = trial->number.value;
    data["time"] = FormatTime(event_.time);
    data["actor"] = event_.actor;
    for (const auto& [key, value] : members.items()) data[key] = value;
    events_.push_back({std::move(name), Dump(data)});
  }

  void AddSweepState(SweepState state, const std::string& reason) {
    Add("sweep_changed", {{"state", Name(state)}, {"reason", reason}, {"end_state", ""}});
  }

  void AddTrialState(TrialState state, const std::string& reason) {
    Add("trial_changed", {{"state", Name(state)}, {"reason", reason}});
  }

  static Json AnnotationMembers(const Annotation& annotation) {
    Json members = Json::object();
    if (annotation.note) members["note"] = *annotation.note;
    if (annotation.tags) members["tags"] = *annotation.tags;
    return members;
  }

  static void AddDonor(Json& json, const CheckpointId& donor) {
    json["donor"] = donor.trial.number.value;
    json["donor_step"] = donor.step.value;
  }

  static Json AttemptMembers(const AttemptId& id, AttemptState state) {
    return {{"attempt", id.number}, {"state", Name(state)}, {"outcome", ""},
            {"failure", ""},        {"executor", ""},       {"resumed_from", nullptr}};
  }

  // Converts a time in the fact from the log's time to the time that people see.
  Time DisplayTime(Time time) const {
    const auto shown = reader_.DisplayTime(event_.seq, time);
    return shown.ok() ? *shown : time;
  }

  // The members of an attempt that its assignment has set and that never change.
  Json KnownAttempt(const AttemptId& id, AttemptState state) {
    Json members = AttemptMembers(id, state);
    if (const auto known = reader_.Attempt(id); known.ok()) {
      members["executor"] = known->executor;
      if (known->resumed_from) members["resumed_from"] = *known->resumed_from;
    }
    return members;
  }

  const Event& event_;
  Reader& reader_;
  std::vector<StreamEvent> events_;
};

}  // namespace

std::vector<StreamEvent> Translate(const Event& event, Reader& reader) {
  Translator translator(event, reader);
  Dispatch<kStream>(event.fact,
                    [&](const auto& fact) -> decltype(translator(fact)) { translator(fact); });
  return translator.Take();
}

// In the format of https://html.spec.whatwg.org/#server-sent-events; data is JSON, so one line.
std::string EventText(const Event& event, Reader& reader) {
  const std::vector<StreamEvent> events = Translate(event, reader);
  std::string text;
  for (size_t i = 0; i < events.size(); ++i) {
    if (i + 1 == events.size()) text += "id: " + std::to_string(event.seq.value) + "\n";
    text += "event: " + events[i].name + "\ndata: " + events[i].data + "\n\n";
  }
  return text;
}

EventSeq EventStream::WaitForEvents(EventSeq seq, int timeout_ms) {
  return backend_.WaitForEvents(seq, timeout_ms);
}

std::optional<EventFeed::Page> EventStream::ReadAfter(EventSeq after,
                                                      std::optional<SweepId> sweep) {
  const auto events = reader_.EventsAfter(after, sweep, kEventsPerTurn);
  if (!events.ok()) return std::nullopt;  // the client reconnects and then gets the error
  Page page{.seen = events->seen, .text = "", .more = events->more};
  for (const Event& event : events->events) page.text += EventText(event, reader_);
  return page;
}

}  // namespace attune::server
