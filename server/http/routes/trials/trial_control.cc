#include "server/http/routes/trials/trials.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/http/answers/effects.h"
#include "server/http/answers/refusal.h"
#include "server/http/answers/trial_record.h"
#include "server/http/routes/request/body.h"
#include "server/http/routes/request/query.h"
#include "server/http/transport/problem.h"
#include "system/sha256.h"

namespace attune::server {

Response Trials::Enqueue(const Request& request, const Target& target) {
  auto key = IdempotencyKey(request);
  if (!key.ok()) return Problem(key.error());
  if (auto reused = RefuseReusedKey(reader_, target.sweep(), *key)) return *std::move(reused);
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  auto body = ReadNewTrial(request.body, sweep->spec.space);
  if (!body.value) return Refuse(body.faults);
  EnqueueTrial command{target.sweep(), std::move(body.value->config), *key};
  std::shared_ptr<void> kept;  // until the trial is enqueued
  if (!body.value->patch.empty()) {
    auto patched = ApplyPatch(sweep->spec, command.config, body.value->patch);
    if (!patched.ok()) return ProblemOfBody(patched.error());
    kept = code_->Keep(patched->code);
    command.patch = *std::move(patched);
  }
  const auto events = backend_.Execute(std::move(command), request.actor);
  std::optional<TrialId> trial;
  if (events.ok() && !events->empty()) {
    trial = std::get<TrialCreated>(events->front().fact).trial;
  } else if (!key->empty()) {  // the trial of an earlier request, whose sweep may have ended since
    const auto earlier = reader_.FindRequest(target.sweep(), *key);
    if (!earlier.ok()) return Problem(earlier.error());
    if (*earlier) trial = TrialOf((*earlier)->fact);
  }
  if (!trial && events.ok())
    return Problem(rest::ProblemType::kNotFound,
                   "sweep " + ToString(target.sweep()) + " was deleted");
  if (!trial) return ProblemOfBody(events.error());
  Response created = answers_.Trial(*trial, 201);
  if (created.status == 201)
    created.Set("Location", "/api/v1/sweeps/" + ToString(trial->sweep) + "/trials/" +
                                std::to_string(trial->number.value));
  return created;
}

Result<TrialPatch> Trials::ApplyPatch(const SweepSpec& spec, const Config& config,
                                      const std::string& text) {
  const std::string base = CodeDigestOf(spec, config);
  if (base.empty() || code_ == nullptr)
    return Error{ErrorCode::kInvalid,
                 "patch: the sweep carries no code; create one with the key `code`"};
  Result<std::string> code = code_->ApplyPatches(base, {text});
  if (!code.ok()) return Error{code.error().code, "patch: " + code.error().message};
  return TrialPatch{.sha256 = Sha256::HexOf(text), .code = *std::move(code)};
}

Response Trials::Kill(const Request& request, const Target& target) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(KillTrial{target.trial}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  return answers_.Trial(target.trial, kAccepted, "it ended now");
}

Response Trials::Retry(const Request& request, const Target& target) {
  const auto body = ReadRetry(request.body);
  if (!body.value) return Refuse(body.faults);
  return Reopen(request, target, Step(0), *body.value);
}

Response Trials::Continue(const Request& request, const Target& target) {
  const auto body = ReadContinue(request.body);
  if (!body.value) return Refuse(body.faults);
  return Reopen(request, target, *body.value, false);
}

Response Trials::Annotate(const Request& request, const Target& target) {
  std::unique_lock one_at_a_time(annotating_);
  const auto trial = reader_.Trial(target.trial);
  if (!trial.ok()) return Problem(trial.error());
  const auto changes = ReadAnnotation(request.body, trial->note, trial->tags);
  if (!changes.value) return Refuse(changes.faults);
  const auto events = backend_.Execute(AnnotateTrial{target.trial, *changes.value}, request.actor);
  one_at_a_time.unlock();
  if (!events.ok()) return ProblemOfBody(events.error());
  return answers_.Trial(target.trial, kAccepted, AnnotationEffect(*changes.value));
}

Response Trials::Reopen(const Request& request, const Target& target, Step until, bool from_start) {
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  const auto detail = reader_.Detail(target.trial);
  if (!detail.ok()) return Problem(detail.error());
  const auto events = backend_.Execute(
      ReopenTrial{RecordOf(*detail, sweep->spec), until, from_start}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  Step source{0};
  backend_.QueryState([&](const Brain& brain) {
    const Trial* trial = brain.state().Find(target.trial);
    if (trial != nullptr && trial->ResumeCheckpoint() != nullptr)
      source = trial->ResumeCheckpoint()->ref.step;
  });
  std::string effect = source.value > 0 ? "it will resume from step " + std::to_string(source.value)
                                        : "it will start from the beginning";
  if (until.value > 0) effect += ", to step " + std::to_string(until.value);
  return answers_.Trial(target.trial, kAccepted, effect);
}

}  // namespace attune::server
