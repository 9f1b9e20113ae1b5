#include "server/http/routes/trials/ask_tell.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/result.h"
#include "core/brain/next_trial.h"
#include "core/log/request_key.h"
#include "server/http/answers/answers.h"
#include "server/http/answers/refusal.h"
#include "server/http/routes/request/query.h"
#include "server/http/transport/problem.h"
#include "sweepfile/codec.h"

namespace attune::server {
namespace {

// The answer to an ask, for an assigned attempt.
rest::Offer RenderOffer(std::string_view state, const SweepSpec& spec, const AttemptAssigned& fact,
                        const Config& config, Step last) {
  const TrialNumber trial = fact.attempt.trial.number;
  rest::Offer offer{.state = std::string(state), .trial = trial.value};
  offer.config = sweepfile::ToJson(config);
  offer.attempt = fact.attempt.number;
  offer.epoch = static_cast<int64_t>(fact.epoch.value);
  offer.seed = SeedOf(spec, trial);
  offer.milestone = fact.milestone.value;
  offer.max_step = last.value;
  offer.lease = (fact.lease.value > 0 ? fact.lease : kAskedLease).value;
  return offer;
}

// The present offer; nullopt: the brain no longer knows the trial.
std::optional<rest::Offer> CurrentOffer(const Sweep& sweep, const AttemptAssigned& fact) {
  const Trial* trial = sweep.Find(fact.attempt.trial.number);
  if (trial == nullptr) return std::nullopt;
  return RenderOffer(Name(sweep.state), sweep.spec, fact, trial->config, LastStep(sweep, *trial));
}

rest::Verdict RenderVerdict(std::string_view verdict, const std::string& reason, Step milestone) {
  rest::Verdict rendered;
  rendered.verdict = std::string(verdict);
  rendered.reason = reason;
  rendered.milestone = milestone.value;
  return rendered;
}

template <class T>
const T* Find(std::span<const Event> events) {
  for (const Event& event : events) {
    if (const T* fact = std::get_if<T>(&event.fact)) return fact;
  }
  return nullptr;
}

Error SupersededError(const TrialId& trial, Epoch epoch) {
  return {ErrorCode::kConflict, "trial " + ToString(trial) + " has no attempt with epoch " +
                                    std::to_string(epoch.value) +
                                    " any more; ask for a trial and use its epoch"};
}

Error LeaseExpiredError(const TrialId& trial, Epoch epoch) {
  return {ErrorCode::kConflict,
          "the lease of epoch " + std::to_string(epoch.value) + " of trial " + ToString(trial) +
              " has expired, because nothing was told in time; ask for another trial"};
}

RecordFact FactOf(const AttemptId& attempt, const TellBody& tell) {
  if (tell.report) return {tell.epoch, TrialReported{attempt, *tell.report}};
  if (tell.running) return {tell.epoch, AttemptRenewed{attempt}};
  AttemptEnded ended{.attempt = attempt, .outcome = tell.outcome};
  if (tell.outcome == Outcome::kFailed)
    ended.failure = {
        .kind = FailureKind::kExit,
        .message = tell.message.empty() ? "its client said that it failed" : tell.message};
  if (tell.outcome == Outcome::kLost)
    ended.failure.message = "its client gave attempt " + std::to_string(attempt.number) + " back";
  return {tell.epoch, std::move(ended)};
}

// The reply to a tell that caused these events; nullopt: they contain none.
std::optional<AskTell::Reply> ReplyFrom(const TellBody& tell, std::span<const Event> led_to) {
  if (tell.running || (!tell.report && !led_to.empty())) return AskTell::Reply();
  const auto* decided = Find<TrialDecided>(led_to);
  if (decided == nullptr) return std::nullopt;
  return RenderVerdict(Name(decided->verdict.kind), decided->verdict.reason.text,
                       decided->milestone);
}

// Whether the trial continues, so that its client keeps it.
bool TrialContinues(const TellBody& tell, const AskTell::Reply& reply) {
  return tell.running || (tell.report && reply && reply->verdict == Name(VerdictKind::kContinue));
}

}  // namespace

// ---- Ask -----------------------------------------------------------------------------------

Response AskTell::Ask(const Request& request, const Target& target) {
  const auto key = IdempotencyKey(request);
  if (!key.ok()) return Problem(key.error());
  if (auto reused = RefuseReused(target.sweep(), *key)) return *std::move(reused);
  const auto lease = ReadAsk(request.body);
  if (!lease.value) return Refuse(lease.faults);
  Asked asked{.command = {target.sweep(), *key, *lease.value, {}}};
  Submit(asked, request.actor);
  const Next next = AnswerAsk(asked, request.patient);
  if (!next.ok()) return Problem(next.error());
  return *next ? Render(**next) : Response{.postponed = true};
}

std::optional<Response> AskTell::RefuseReused(SweepId sweep, const std::string& request_key) {
  if (reader_.Ready().ok()) return RefuseReusedKey(reader_, sweep, request_key);
  std::optional<std::string> earlier;  // nullopt: the sweep does not run
  backend_.QueryState([&](const Brain& brain) {
    const Sweep* found = brain.state().Find(sweep);
    if (found == nullptr) return;
    const auto known = FindRequest(found->by_key, request_key);
    earlier = known == found->by_key.end() ? request_key : known->first;
  });
  if (!earlier) return RefuseReusedKey(reader_, sweep, request_key);
  return RefuseOtherBody(*earlier, request_key);
}

void AskTell::Submit(Asked& asked, const std::string& actor) {
  asked.led_to = backend_.Execute(asked.command, actor, MakeOfferCallback(asked));
}

Backend::Callback AskTell::MakeOfferCallback(Asked& asked) {
  return [this, &asked](std::span<const Event> led_to, const Brain& brain) {
    const auto* assigned = Find<AttemptAssigned>(led_to);
    if (assigned == nullptr) return;
    const Sweep* sweep = brain.state().Find(asked.command.sweep);
    if (sweep == nullptr) return;  // the sweep and the trial have ended since
    asked.offer = CurrentOffer(*sweep, *assigned);
    CacheOffer(*assigned, sweep->spec);
  };
}

AskTell::Next AskTell::AnswerAsk(const Asked& asked, bool patient) {
  const AskTrial& command = asked.command;
  if (asked.offer) return asked.offer;
  if (!command.idempotency_key.empty()) {
    const auto earlier = reader_.FindRequest(command.sweep, command.idempotency_key);
    if (!earlier.ok()) return earlier.error();
    const auto* assigned = *earlier ? std::get_if<AttemptAssigned>(&(*earlier)->fact) : nullptr;
    if (assigned != nullptr) return RepeatOffer(*assigned);
  }
  if (asked.led_to.ok()) return ExplainNoTrial(command.sweep, patient);
  const Error& refused = asked.led_to.error();
  const auto sweep = FindSweepStatus(command.sweep);
  if (!sweep.ok()) return sweep.error();
  const bool none_now = sweep->external && refused.code == ErrorCode::kConflict;
  return none_now ? NoTrial(command.sweep, refused.message) : refused;
}

// While a searcher computes a proposal, a client that can wait gets the trial when it is ready.
// Other clients are told to ask again.
AskTell::Next AskTell::ExplainNoTrial(SweepId id, bool patient) {
  std::string reason = "sweep " + ToString(id) + " has ended";
  bool thinks = false;
  backend_.QueryState([&](const Brain& brain) {
    const Sweep* sweep = brain.state().Find(id);
    if (sweep == nullptr) return;
    reason = "every trial is running, or waits after a failure";
    thinks = sweep->thinking ||
             (sweep->searcher->NeedsThread() && HasNext(*sweep, brain.state().last_time));
    if (thinks) reason = "the searcher is computing the next trial; ask again";
    if (sweep->search_waits)
      reason = "the searcher waits for results of running trials; ask again later";
    if (!sweep->stopping_as) return;
    thinks = false;
    reason = "no other trial starts: " + sweep->reason;
  });
  if (thinks && patient) return std::optional<rest::Offer>();
  return NoTrial(id, std::move(reason));
}

// The brain knows a running trial. The tables contain a trial that has ended since.
AskTell::Next AskTell::RepeatOffer(const AttemptAssigned& fact) {
  const TrialId& id = fact.attempt.trial;
  std::optional<rest::Offer> offer;
  backend_.QueryState([&](const Brain& brain) {
    if (const Sweep* sweep = brain.state().Find(id.sweep)) offer = CurrentOffer(*sweep, fact);
  });
  if (offer) return offer;
  const auto sweep = reader_.Sweep(id.sweep);
  if (!sweep.ok()) return sweep.error();
  const auto trial = reader_.Trial(id);
  if (!trial.ok()) return trial.error();
  return std::optional(
      RenderOffer(sweep->state, sweep->spec, fact, trial->config, sweep->spec.max_step));
}

AskTell::Next AskTell::NoTrial(SweepId id, std::string reason) {
  auto sweep = FindSweepStatus(id);
  if (!sweep.ok()) return sweep.error();
  return std::optional(rest::Offer{.state = std::move(sweep->state), .reason = std::move(reason)});
}

Result<AskTell::SweepStatus> AskTell::FindSweepStatus(SweepId id) {
  std::optional<SweepStatus> status;
  if (!reader_.Ready().ok()) {
    backend_.QueryState([&](const Brain& brain) {
      if (const Sweep* sweep = brain.state().Find(id))
        status = SweepStatus{std::string(Name(sweep->state)), sweep->spec.External()};
    });
  }
  if (status) return *std::move(status);
  const auto row = reader_.Sweep(id);
  if (!row.ok()) return row.error();
  return SweepStatus{row->state, row->spec.External()};
}

// ---- Tell ----------------------------------------------------------------------------------

void AskTell::CacheOffer(const AttemptAssigned& fact, const SweepSpec& spec) {
  const TrialId& id = fact.attempt.trial;
  TellTarget target_data = TargetOf(spec);
  target_data.attempt = fact.attempt;
  target_data.epoch = fact.epoch;
  const std::lock_guard lock(mutex_);
  if (cached_.insert_or_assign(id, std::move(target_data)).second) cached_by_age_.push_back(id);
  if (cached_by_age_.size() <= kOffersCached) return;
  cached_.erase(cached_by_age_.front());
  cached_by_age_.pop_front();
}

std::optional<AskTell::TellTarget> AskTell::FindCached(const TrialId& id) {
  const std::lock_guard lock(mutex_);
  const auto found = cached_.find(id);
  if (found == cached_.end()) return std::nullopt;
  return found->second;
}

AskTell::TellTarget AskTell::TargetOf(const SweepSpec& spec) {
  return {
      .external = spec.External(), .metrics = spec.ReportedMetrics(), .time_attr = spec.time_attr};
}

AskTell::TellTarget AskTell::TargetOf(const TrialId& id) {
  // Asks the brain for a running sweep, because reading its rows takes longer the more trials it
  // has.
  std::optional<TellTarget> target_data;
  backend_.QueryState([&](const Brain& brain) {
    const Sweep* sweep = brain.state().Find(id.sweep);
    if (sweep == nullptr) return;
    target_data = TargetOf(sweep->spec);
    const Trial* trial = sweep->Find(id.number);
    if (trial == nullptr || !trial->live) return;
    target_data->attempt = trial->live->id;
    target_data->epoch = trial->live->epoch;
  });
  if (target_data) return *std::move(target_data);
  const auto row = reader_.Sweep(id.sweep);
  if (!row.ok()) return {.unknown = row.error()};
  return TargetOf(row->spec);
}

Response AskTell::Tell(const Request& request, const Target& target) {
  const auto key = IdempotencyKey(request);
  if (!key.ok()) return Problem(key.error());
  if (auto reused = RefuseReused(target.sweep(), *key)) return *std::move(reused);
  std::optional<AttemptId> attempt;
  Body<TellBody> body;
  if (const auto kept = FindCached(target.trial)) {
    body = ReadTell(request.body, kept->metrics, kept->time_attr);
    if (body.value && body.value->report && body.value->epoch == kept->epoch)
      attempt = kept->attempt;
  }
  if (!attempt) {
    const TellTarget target_data = TargetOf(target.trial);
    if (target_data.unknown) return Problem(*target_data.unknown);
    if (!target_data.external)
      return Problem(rest::ProblemType::kHasCommand,
                     "sweep " + ToString(target.sweep()) +
                         " has a `command`, whose workers report; tell results only for "
                         "sweeps without `command`");
    body = ReadTell(request.body, target_data.metrics, target_data.time_attr);
    if (!body.value) return Refuse(body.faults);
    if (body.value->epoch == target_data.epoch) attempt = target_data.attempt;
  }
  const TellBody& tell = *body.value;
  std::optional<Asked> asked;
  if (tell.next_lease) asked = Asked{{target.sweep(), *key, *tell.next_lease, attempt}};
  Result<Reply> reply = ReplyTo(target.trial, attempt, tell, asked, request.actor);
  if (!reply.ok()) return Problem(reply.error());
  if (asked && !TrialContinues(tell, *reply)) {
    const Next next = AnswerAsk(*asked, request.patient);
    if (!next.ok()) return Problem(next.error());
    if (!*next) return Response{.postponed = true};
    if (!*reply) reply->emplace();
    (*reply)->next = **next;
  }
  return *reply ? Render(**reply) : Response{.status = 204};
}

Result<AskTell::Reply> AskTell::ReplyTo(const TrialId& trial, const std::optional<AttemptId>& live,
                                        const TellBody& tell, std::optional<Asked>& asked,
                                        const std::string& actor) {
  if (live) {
    std::vector<Command> commands{FactOf(*live, tell)};
    if (asked) commands.emplace_back(asked->command);
    auto led_to = backend_.Execute(std::move(commands), actor,
                                   asked ? MakeOfferCallback(*asked) : Backend::Callback());
    if (!led_to.front().ok()) return led_to.front().error();
    if (asked) asked->led_to = std::move(led_to.back());
    if (auto reply = ReplyFrom(tell, *led_to.front())) return *std::move(reply);
  }
  Result<Reply> before = FindEarlierReply(trial, tell);
  if (before.ok() && asked && !TrialContinues(tell, *before)) Submit(*asked, actor);
  return before;
}

Result<AskTell::Reply> AskTell::FindEarlierReply(const TrialId& trial, const TellBody& tell) {
  const auto detail = reader_.Detail(trial);
  if (!detail.ok()) return detail.error();
  const auto attempt = std::ranges::find(detail->attempts, tell.epoch.value, &AttemptRow::epoch);
  if (attempt == detail->attempts.end()) return SupersededError(trial, tell.epoch);
  const auto over = [&]() -> Error {
    // A released attempt has a message, and one whose lease has run out has none.
    const bool ran_out = attempt->outcome == Name(Outcome::kLost) && attempt->failure.empty();
    return ran_out ? LeaseExpiredError(trial, tell.epoch) : SupersededError(trial, tell.epoch);
  };
  if (tell.running) return over();
  if (!tell.report) return attempt->outcome == Name(tell.outcome) ? Result<Reply>(Reply()) : over();
  for (const DecisionRow& decision : detail->decisions) {
    if (decision.attempt == attempt->number && decision.step == tell.report->step)
      return Reply(RenderVerdict(decision.verdict, decision.reason, decision.milestone));
  }
  return over();
}

}  // namespace attune::server
