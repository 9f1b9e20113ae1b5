#include "server/http/ask_tell.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "core/brain/next_trial.h"
#include "server/http/answers.h"
#include "server/http/control.h"
#include "server/http/problem.h"

namespace attune::server {
namespace {

// The answer to who asked: an attempt as it was assigned.
Json Offer(std::string_view state, const SweepSpec& spec, const AttemptAssigned& fact,
           const Config& config, Step last) {
  const TrialNumber trial = fact.attempt.trial.number;
  return {{"state", state},
          {"reason", ""},
          {"trial", trial.value},
          {"config", sweepfile::ToJson(config)},
          {"attempt", fact.attempt.number},
          {"epoch", fact.epoch.value},
          {"seed", SeedOf(spec, trial)},
          {"milestone", fact.milestone.value},
          {"max_step", last.value},
          {"lease", (fact.lease.value > 0 ? fact.lease : kAskedLease).value}};
}

// Of a trial that the brain still knows.
std::optional<Json> OfferNow(const Sweep& sweep, const AttemptAssigned& fact) {
  const Trial* trial = sweep.Find(fact.attempt.trial.number);
  if (trial == nullptr) return std::nullopt;
  return Offer(Name(sweep.state), sweep.spec, fact, trial->config, LastStep(sweep, *trial));
}

Json VerdictToJson(std::string_view verdict, const std::string& reason, Step milestone) {
  return {{"verdict", verdict}, {"reason", reason}, {"milestone", milestone.value}};
}

template <class T>
const T* Find(std::span<const Event> events) {
  for (const Event& event : events) {
    if (const T* fact = std::get_if<T>(&event.fact)) return fact;
  }
  return nullptr;
}

Response Superseded(const TrialId& trial, Epoch epoch) {
  return Problem(409, "trial " + ToString(trial) + " has no attempt with epoch " +
                          std::to_string(epoch.value) +
                          " any more: ask for a trial, and tell its epoch");
}

Response RanOut(const TrialId& trial, Epoch epoch) {
  return Problem(409, "the lease of epoch " + std::to_string(epoch.value) + " of trial " +
                          ToString(trial) +
                          " has run out, because nothing was told of it for so long, and the trial "
                          "waits for another asker: ask again");
}

}  // namespace

Response AskTell::Ask(const Request& request, const Target& target) {
  const auto key = IdempotencyKey(request);
  if (!key.ok()) return Problem(key.error());
  const auto lease = ReadAsk(request.body);
  if (!lease.value) return Refuse(lease.faults);
  std::optional<Json> offer;
  const auto events = backend_.Execute(AskTrial{target.sweep(), *key, *lease.value}, request.actor,
                                       [&](std::span<const Event> led_to, const Brain& brain) {
                                         const auto* assigned = Find<AttemptAssigned>(led_to);
                                         if (assigned == nullptr) return;
                                         const Sweep& sweep = *brain.state().Find(target.sweep());
                                         offer = OfferNow(sweep, *assigned);
                                         Keep(*assigned, sweep.spec);
                                       });
  if (offer) return JsonAnswer(*offer);
  if (!key->empty()) {
    const auto earlier = reader_.Requested(target.sweep(), *key);
    if (!earlier.ok()) return Problem(earlier.error());
    const auto* assigned = *earlier ? std::get_if<AttemptAssigned>(&(*earlier)->fact) : nullptr;
    if (assigned != nullptr) return Offered(*assigned);
  }
  if (events.ok()) return NothingNow(target.sweep(), request.patient);
  const auto row = reader_.Sweep(target.sweep());
  if (!row.ok()) return Problem(row.error());
  const bool none_now = row->spec.External() && events.error().code == ErrorCode::kConflict;
  return none_now ? NoTrial(target.sweep(), events.error().message) : Problem(events.error());
}

// Whoever asks while a searcher thinks gets the trial as soon as it is there, which may be now, or
// is told to ask again.
Response AskTell::NothingNow(SweepId id, bool patient) {
  std::string reason = "every trial is running, or waits after a failure";
  bool thinks = false;
  backend_.Look([&](const Brain& brain) {
    const Sweep* sweep = brain.state().Find(id);
    if (sweep == nullptr) return;
    thinks =
        sweep->thinking || (sweep->searcher->Thinks() && HasNext(*sweep, brain.state().last_time));
    if (thinks) reason = "the searcher thinks about the next trial: ask again";
    if (sweep->search_waits) reason = "the searcher waits for what the running trials tell";
  });
  return thinks && patient ? Response{.later = true} : NoTrial(id, std::move(reason));
}

// Of a trial that runs the brain knows all; of one that has ended since, the tables do.
Response AskTell::Offered(const AttemptAssigned& fact) {
  const TrialId& id = fact.attempt.trial;
  std::optional<Json> offer;
  backend_.Look([&](const Brain& brain) {
    if (const Sweep* sweep = brain.state().Find(id.sweep)) offer = OfferNow(*sweep, fact);
  });
  if (offer) return JsonAnswer(*offer);
  const auto sweep = reader_.Sweep(id.sweep);
  if (!sweep.ok()) return Problem(sweep.error());
  const auto trial = reader_.Trial(id);
  if (!trial.ok()) return Problem(trial.error());
  return JsonAnswer(Offer(sweep->state, sweep->spec, fact, trial->config, sweep->spec.max_step));
}

Response AskTell::NoTrial(SweepId sweep, std::string reason) {
  const auto row = reader_.Sweep(sweep);
  if (!row.ok()) return Problem(row.error());
  return JsonAnswer({{"state", row->state}, {"reason", std::move(reason)}, {"trial", nullptr}});
}

void AskTell::Keep(const AttemptAssigned& fact, const SweepSpec& spec) {
  const TrialId& id = fact.attempt.trial;
  Told told = About(spec);
  told.attempt = fact.attempt;
  told.epoch = fact.epoch;
  const std::lock_guard lock(mutex_);
  if (kept_.insert_or_assign(id, std::move(told)).second) kept_first_.push_back(id);
  if (kept_first_.size() <= kOffersKept) return;
  kept_.erase(kept_first_.front());
  kept_first_.pop_front();
}

std::optional<AskTell::Told> AskTell::Kept(const TrialId& id) {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(id);
  if (found == kept_.end()) return std::nullopt;
  return found->second;
}

AskTell::Told AskTell::About(const SweepSpec& spec) {
  return {
      .external = spec.External(), .metrics = spec.ReportedMetrics(), .time_attr = spec.time_attr};
}

AskTell::Told AskTell::About(const TrialId& id) {
  // Of a sweep that runs the brain knows all: its rows take the longer to read the more trials
  // there are.
  std::optional<Told> told;
  backend_.Look([&](const Brain& brain) {
    const Sweep* sweep = brain.state().Find(id.sweep);
    if (sweep == nullptr) return;
    told = About(sweep->spec);
    const Trial* trial = sweep->Find(id.number);
    if (trial == nullptr || !trial->live) return;
    told->attempt = trial->live->id;
    told->epoch = trial->live->epoch;
  });
  if (told) return *std::move(told);
  const auto row = reader_.Sweep(id.sweep);
  if (!row.ok()) return {.unknown = row.error()};
  return About(row->spec);
}

Response AskTell::Tell(const Request& request, const Target& target) {
  if (const auto kept = Kept(target.trial)) {
    const auto body = ReadTell(request.body, kept->metrics, kept->time_attr);
    if (body.value && body.value->report && body.value->epoch == kept->epoch)
      return Report(*kept->attempt, *body.value, request.actor);
  }
  const Told told = About(target.trial);
  if (told.unknown) return Problem(*told.unknown);
  if (!told.external)
    return Problem(409, "sweep " + ToString(target.sweep()) +
                            " has a program, whose workers report: only the trials of a sweep "
                            "without `command` are told about");
  const auto body = ReadTell(request.body, told.metrics, told.time_attr);
  if (!body.value) return Refuse(body.faults);
  const TellBody& tell = *body.value;
  const auto attempt = told.epoch == tell.epoch ? told.attempt : std::nullopt;
  if (!attempt) return ToldBefore(target.trial, tell);
  if (tell.running) return Renew(*attempt, tell, request.actor);
  if (!tell.report) return End(*attempt, tell, request.actor);
  return Report(*attempt, tell, request.actor);
}

Response AskTell::Report(const AttemptId& attempt, const TellBody& tell, const std::string& actor) {
  const auto events =
      backend_.Execute(RecordFact{tell.epoch, TrialReported{attempt, *tell.report}}, actor);
  if (!events.ok()) return Problem(events.error());
  const auto* decided = Find<TrialDecided>(*events);
  if (decided == nullptr) return ToldBefore(attempt.trial, tell);
  return JsonAnswer(
      VerdictToJson(Name(decided->verdict.kind), decided->verdict.reason.text, decided->milestone));
}

Response AskTell::Renew(const AttemptId& attempt, const TellBody& tell, const std::string& actor) {
  const auto events = backend_.Execute(RecordFact{tell.epoch, AttemptRenewed{attempt}}, actor);
  if (!events.ok()) return Problem(events.error());
  return Response{.status = 204};
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
  const auto over = [&] {
    return attempt->outcome == Name(Outcome::kLost) ? RanOut(trial, tell.epoch)
                                                    : Superseded(trial, tell.epoch);
  };
  if (tell.running) return over();
  if (!tell.report)
    return attempt->outcome == Name(tell.outcome) ? Response{.status = 204} : over();
  for (const DecisionRow& decision : detail->decisions) {
    if (decision.attempt == attempt->number && decision.step == tell.report->step)
      return JsonAnswer(VerdictToJson(decision.verdict, decision.reason, decision.milestone));
  }
  return over();
}

}  // namespace attune::server
