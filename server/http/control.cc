#include "server/http/control.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/result.h"
#include "server/http/body.h"
#include "server/http/problem.h"
#include "server/http/render.h"
#include "server/http/trial_record.h"
#include "sweepfile/scalar.h"

namespace attune::server {
namespace {

constexpr int kAccepted = 202;

template <class T>
int64_t Count(const std::vector<Event>& events) {
  return std::ranges::count_if(
      events, [](const Event& event) { return std::holds_alternative<T>(event.fact); });
}

// 1 trial, 12 trials
std::string Plural(int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string Limits(const ExtendSweep& command) {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value, bool none) {
    text += (text.empty() ? "" : ", ") + (none ? "no " + name : name + " " + value);
  };
  if (command.max_trials)
    add("max_trials", std::to_string(*command.max_trials), *command.max_trials == 0);
  if (command.max_step) add("max_step", std::to_string(command.max_step->value), false);
  if (command.max_time)
    add("max_time", sweepfile::FormatDuration(*command.max_time), command.max_time->value == 0);
  if (command.max_gpu_hours)
    add("max_gpu_hours", FormatReal(*command.max_gpu_hours), *command.max_gpu_hours == 0);
  return text;
}

// now stop.max_trials 40, parameters.lr.max 0.1
std::string EffectOf(const std::vector<Event>& events) {
  std::string text;
  bool opened = false;
  for (const Event& event : events) {
    opened = opened || std::holds_alternative<SweepReopened>(event.fact);
    const auto* edited = std::get_if<SweepEdited>(&event.fact);
    if (edited == nullptr) continue;
    for (const std::string& change : edited->changes) text += (text.empty() ? "" : ", ") + change;
  }
  if (events.empty()) return "it is so already";
  return (opened ? "it is open again: " : "now ") + text;
}

}  // namespace

Result<std::string> IdempotencyKey(const Request& request) {
  std::string key = request.Header("Idempotency-Key").value_or("");
  if (key.size() <= kIdempotencyKeyMaxBytes) return key;
  return Error{ErrorCode::kInvalid, "Idempotency-Key: longer than " +
                                        std::to_string(kIdempotencyKeyMaxBytes) + " bytes"};
}

// ---- Sweeps --------------------------------------------------------------------------------

Response Control::PauseSweep(const Request& request, const Target& target) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(attune::PauseSweep{target.sweep()}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  const int64_t leaving = Count<TrialYielding>(*events);
  std::string effect = "nothing runs, and nothing starts before it is resumed";
  if (leaving > 0) effect = Plural(leaving, "running trial") + " will save a checkpoint and leave";
  if (events->empty()) effect = "it is paused already";
  return answers_.Sweep(target.sweep(), kAccepted, effect);
}

Response Control::ResumeSweep(const Request& request, const Target& target) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(attune::ResumeSweep{target.sweep()}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  const int64_t back = Count<TrialRequeued>(*events);
  std::string effect = "it goes on";
  if (back > 0) effect = "it goes on, " + Plural(back, "paused trial") + " first";
  if (events->empty()) effect = "it is running already";
  return answers_.Sweep(target.sweep(), kAccepted, effect);
}

Response Control::StopSweep(const Request& request, const Target& target) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(attune::StopSweep{target.sweep()}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  int running = 0;
  backend_.Look([&](const Brain& brain) {
    const Sweep* sweep = brain.state().Find(target.sweep());
    if (sweep != nullptr) running = sweep->Count(TrialState::kRunning);
  });
  std::string effect = Plural(running, "running trial") + " will finish, and nothing else starts";
  if (running == 0) effect = "nothing runs, so it ends now";
  if (events->empty()) effect = "it is ending already";
  return answers_.Sweep(target.sweep(), kAccepted, effect);
}

Response Control::KillSweep(const Request& request, const Target& target) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(attune::KillSweep{target.sweep()}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  std::string effect = Plural(Count<TrialEnded>(*events), "trial") + " ended now";
  if (events->empty()) effect = "it is being killed already";
  return answers_.Sweep(target.sweep(), kAccepted, effect);
}

Response Control::ExtendSweep(const Request& request, const Target& target) {
  const auto body = ReadExtension(request.body, target.sweep());
  if (!body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(*body.value, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  const std::string effect =
      (Count<SweepReopened>(*events) > 0 ? "it is open again: " : "now ") + Limits(*body.value);
  return answers_.Sweep(target.sweep(), kAccepted, effect);
}

Response Control::EditSweep(const Request& request, const Target& target) {
  const auto seen = reader_.LastSeq();
  if (!seen.ok()) return Problem(seen.error());
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  auto patched = sweepfile::PatchSweep(sweep->spec, request.body, {.algorithms = &algorithms_});
  if (!patched.spec) return Refuse(patched.faults);
  const auto events = backend_.Execute(
      attune::EditSweep{target.sweep(), *std::move(patched.spec), *seen}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  return answers_.Sweep(target.sweep(), kAccepted, EffectOf(*events));
}

Response Control::DeleteSweep(const Request& request, const Target& target) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const SweepId id = target.sweep();
  const auto seen = reader_.LastSeq();
  if (!seen.ok()) return Problem(seen.error());
  const auto pinned = reader_.Pinned(id);
  if (!pinned.ok()) return Problem(pinned.error());
  if (*pinned) {
    const std::string name = ToString(**pinned);
    return Problem(409, "sweep " + ToString(id) + " stays: its checkpoint " + name +
                            " is pinned; let go of it with `attune checkpoint unpin " + name + "`");
  }
  const auto events = backend_.Execute(attune::DeleteSweep{id, *seen}, request.actor);
  if (!events.ok()) return Problem(events.error());
  std::set<std::string> folders;
  backend_.Look([&](const Brain& brain) {
    for (const auto& [name, executor] : brain.state().executors) folders.insert(FolderOf(executor));
  });
  std::string effect = "deleted";
  if (!folders.empty())
    effect += "; its files go from " + Plural(std::ssize(folders), "data folder");
  return JsonAnswer({{"id", ToString(id)}, {"state", "deleted"}, {"effect", effect}}, kAccepted);
}

// ---- Trials --------------------------------------------------------------------------------

Response Control::EnqueueTrial(const Request& request, const Target& target) {
  auto key = IdempotencyKey(request);
  if (!key.ok()) return Problem(key.error());
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  auto body = ReadNewTrial(request.body, sweep->spec.space);
  if (!body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(
      attune::EnqueueTrial{target.sweep(), *std::move(body.value), *key}, request.actor);
  std::optional<TrialId> trial;
  if (events.ok() && !events->empty()) {
    trial = std::get<TrialCreated>(events->front().fact).trial;
  } else if (!key->empty()) {  // an earlier request's, perhaps of a sweep that has ended since
    const auto earlier = reader_.Requested(target.sweep(), *key);
    if (!earlier.ok()) return Problem(earlier.error());
    if (*earlier) trial = TrialOf((*earlier)->fact);
  }
  if (!trial && events.ok())
    return Problem(404, "sweep " + ToString(target.sweep()) + " was deleted");
  if (!trial) return ProblemOfBody(events.error());
  Response created = answers_.Trial(*trial, 201);
  if (created.status == 201)
    created.Set("Location", "/api/v1/sweeps/" + ToString(trial->sweep) + "/trials/" +
                                std::to_string(trial->number.value));
  return created;
}

Response Control::KillTrial(const Request& request, const Target& target) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(attune::KillTrial{target.trial}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  return answers_.Trial(target.trial, kAccepted, "it ended now");
}

Response Control::RetryTrial(const Request& request, const Target& target) {
  const auto body = ReadRetry(request.body);
  if (!body.value) return Refuse(body.faults);
  return Reopen(request, target, Step(0), *body.value);
}

Response Control::ContinueTrial(const Request& request, const Target& target) {
  const auto body = ReadContinue(request.body);
  if (!body.value) return Refuse(body.faults);
  return Reopen(request, target, *body.value, false);
}

Response Control::Reopen(const Request& request, const Target& target, Step until,
                         bool from_start) {
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  const auto detail = reader_.Detail(target.trial);
  if (!detail.ok()) return Problem(detail.error());
  const auto events = backend_.Execute(
      ReopenTrial{RecordOf(*detail, sweep->spec), until, from_start}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  Step source{0};
  backend_.Look([&](const Brain& brain) {
    const Trial* trial = brain.state().Find(target.trial);
    if (trial != nullptr && trial->Source() != nullptr) source = trial->Source()->ref.step;
  });
  std::string effect = source.value > 0 ? "it will go on from step " + std::to_string(source.value)
                                        : "it will start from the beginning";
  if (until.value > 0) effect += ", to step " + std::to_string(until.value);
  return answers_.Trial(target.trial, kAccepted, effect);
}

// ---- Checkpoints ---------------------------------------------------------------------------

Response Control::Pin(const Request& request, const Target& target) {
  return SetPinned(request, target, true);
}

Response Control::Unpin(const Request& request, const Target& target) {
  return SetPinned(request, target, false);
}

Response Control::SetPinned(const Request& request, const Target& target, bool pinned) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto detail = reader_.Detail(target.trial);
  if (!detail.ok()) return Problem(detail.error());
  const auto& all = detail->checkpoints;
  const auto found = std::ranges::find_if(all, [&](const CheckpointRow& row) {
    return row.attempt == target.attempt && row.step == target.step;
  });
  const std::string name = "checkpoint " + std::to_string(target.attempt) + "-" +
                           std::to_string(target.step.value) + " of trial " +
                           ToString(target.trial);
  if (found == all.end()) return Problem(404, "there is no " + name);
  if (found->dropped) return Problem(409, name + " is gone: " + found->reason);
  const auto events = backend_.Execute(PinCheckpoint{target.checkpoint(), pinned}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  return answers_.Trial(target.trial, kAccepted,
                        pinned ? "it stays" : "it stays as long as something else keeps it");
}

// ---- Executors -----------------------------------------------------------------------------

Response Control::DrainExecutor(const Request& request, const Target& target) {
  const auto body = ReadDrain(request.body, target.executor);
  if (!body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(*body.value, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  int64_t running = 0;
  int64_t leaving = 0;
  backend_.Look([&](const Brain& brain) {
    const auto executor = brain.state().executors.find(target.executor);
    if (executor == brain.state().executors.end()) return;
    for (const auto& [epoch, id] : executor->second.attempts) {
      const auto& yield = brain.state().Find(id)->yield;
      ++running;
      leaving += yield && yield->kind == VerdictKind::kPause ? 1 : 0;
    }
  });
  const int64_t staying = running - leaving;
  std::string effect = "nothing starts there before it is resumed";
  if (leaving > 0) effect += "; " + Plural(leaving, "trial") + " will save a checkpoint and leave";
  if (staying > 0) effect += "; " + Plural(staying, "trial") + " will finish there";
  if (staying > 0 && body.value->now)
    effect += ", having no other place to go on from a checkpoint";
  return AnswerExecutor(target.executor, effect);
}

Response Control::ResumeExecutor(const Request& request, const Target& target) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(attune::ResumeExecutor{target.executor}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  return AnswerExecutor(target.executor,
                        events->empty()
                            ? "it was neither drained nor set aside, and no sweep excludes it"
                            : "trials start there again");
}

Response Control::AnswerExecutor(const std::string& name, const std::string& effect) {
  for (const auto& executor : backend_.Executors()) {
    if (executor.name != name) continue;
    Json json = ExecutorToJson(executor);
    json["effect"] = effect;
    return JsonAnswer(json, kAccepted);
  }
  return Problem(404, "executor " + name + " is gone");  // forgotten meanwhile
}

}  // namespace attune::server
