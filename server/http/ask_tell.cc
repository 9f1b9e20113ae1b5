#include "server/http/ask_tell.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/http/answers.h"
#include "server/http/control.h"
#include "server/http/problem.h"

namespace attune::server {
namespace {

Json Offer(const Sweep& sweep, const Trial& trial) {
  return {{"state", Name(sweep.state)},
          {"reason", ""},
          {"trial", trial.id.number.value},
          {"config", sweepfile::ToJson(trial.config)},
          {"attempt", trial.live->id.number},
          {"epoch", trial.live->epoch.value},
          {"seed", SeedOf(sweep.spec, trial.id.number)},
          {"milestone", trial.milestone.value},
          {"max_step", LastStep(sweep, trial).value}};
}

Json VerdictToJson(std::string_view verdict, const std::string& reason, Step milestone) {
  return {{"verdict", verdict}, {"reason", reason}, {"milestone", milestone.value}};
}

template <class T>
const T* Find(const std::vector<Event>& events) {
  for (const Event& event : events) {
    if (const T* fact = std::get_if<T>(&event.fact)) return fact;
  }
  return nullptr;
}

// The trial that a request got: this one just now, or an earlier one with the same key.
const Trial* Given(const Sweep& sweep, const AttemptAssigned* assigned, const std::string& key) {
  if (assigned != nullptr) return sweep.Find(assigned->attempt.trial.number);
  const auto known = key.empty() ? sweep.by_key.end() : sweep.by_key.find(key);
  return known == sweep.by_key.end() ? nullptr : sweep.Find(known->second);
}

Response Superseded(const TrialId& trial, Epoch epoch) {
  return Problem(409, "trial " + ToString(trial) + " has no attempt with epoch " +
                          std::to_string(epoch.value) +
                          " any more: ask for a trial, and tell its epoch");
}

}  // namespace

Response AskTell::Ask(const Request& request, const Target& target) {
  const auto key = IdempotencyKey(request);
  if (!key.ok()) return Problem(key.error());
  const auto row = reader_.Sweep(target.sweep());
  if (!row.ok()) return Problem(row.error());
  const auto events = backend_.Execute(AskTrial{target.sweep(), *key}, request.actor);
  if (!events.ok()) {
    const bool none_now = row->spec.External() && events.error().code == ErrorCode::kConflict;
    return none_now ? NoTrial(target.sweep(), events.error().message) : Problem(events.error());
  }

  const auto* assigned = Find<AttemptAssigned>(*events);
  std::optional<Json> offer;
  bool thinks = false;
  backend_.Look([&](const Brain& brain) {
    const Sweep* sweep = brain.state().Find(target.sweep());
    if (sweep == nullptr) return;
    thinks = sweep->thinking.has_value();
    const Trial* trial = Given(*sweep, assigned, *key);
    if (trial != nullptr && trial->live) offer = Offer(*sweep, *trial);
  });
  if (offer) return JsonAnswer(*offer);
  return NoTrial(target.sweep(), thinks ? "the searcher thinks about the next trial: ask again"
                                        : "every trial is running, or waits after a failure");
}

Response AskTell::NoTrial(SweepId sweep, std::string reason) {
  const auto row = reader_.Sweep(sweep);
  if (!row.ok()) return Problem(row.error());
  return JsonAnswer({{"state", row->state}, {"reason", std::move(reason)}, {"trial", nullptr}});
}

Response AskTell::Tell(const Request& request, const Target& target) {
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  if (!sweep->spec.External())
    return Problem(409, "sweep " + ToString(target.sweep()) +
                            " has a program, whose workers report: only the trials of a sweep "
                            "without `command` are told about");
  if (const auto trial = reader_.Trial(target.trial); !trial.ok()) return Problem(trial.error());
  const auto body = ReadTell(request.body, sweep->spec.ReportedMetrics());
  if (!body.value) return Refuse(body.faults);
  const TellBody& tell = *body.value;

  std::optional<AttemptId> attempt;
  backend_.Look([&](const Brain& brain) {
    const Trial* trial = brain.state().Find(target.trial);
    if (trial != nullptr && trial->live && trial->live->epoch == tell.epoch)
      attempt = trial->live->id;
  });
  if (!attempt) return ToldBefore(target.trial, tell);
  if (!tell.report) return End(*attempt, tell, request.actor);

  const auto events = backend_.Execute(
      RecordFact{tell.epoch, TrialReported{*attempt, *tell.report}}, request.actor);
  if (!events.ok()) return Problem(events.error());
  const auto* decided = Find<TrialDecided>(*events);
  if (decided == nullptr) return ToldBefore(target.trial, tell);
  return JsonAnswer(
      VerdictToJson(Name(decided->verdict.kind), decided->verdict.reason.text, decided->milestone));
}

Response AskTell::End(const AttemptId& attempt, const TellBody& tell, const std::string& actor) {
  AttemptEnded ended{.attempt = attempt, .outcome = tell.outcome};
  if (tell.outcome == Outcome::kFailed)
    ended.failure = {
        .kind = FailureKind::kExit,
        .message = tell.message.empty() ? "its asker said that it failed" : tell.message};
  const auto events = backend_.Execute(RecordFact{tell.epoch, std::move(ended)}, actor);
  if (!events.ok()) return Problem(events.error());
  if (events->empty()) return Superseded(attempt.trial, tell.epoch);
  return Response{.status = 204};
}

Response AskTell::ToldBefore(const TrialId& trial, const TellBody& tell) {
  const auto detail = reader_.Detail(trial);
  if (!detail.ok()) return Problem(detail.error());
  const auto attempt = std::ranges::find(detail->attempts, tell.epoch.value, &AttemptRow::epoch);
  if (attempt == detail->attempts.end()) return Superseded(trial, tell.epoch);
  if (!tell.report) {
    if (attempt->outcome == Name(tell.outcome)) return Response{.status = 204};
    return Superseded(trial, tell.epoch);
  }
  for (const DecisionRow& decision : detail->decisions) {
    if (decision.attempt == attempt->number && decision.step == tell.report->step)
      return JsonAnswer(VerdictToJson(decision.verdict, decision.reason, decision.milestone));
  }
  return Superseded(trial, tell.epoch);
}

}  // namespace attune::server
