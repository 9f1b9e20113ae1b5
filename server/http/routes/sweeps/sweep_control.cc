#include "server/http/routes/sweeps/sweeps.h"

#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "core/brain/edit.h"
#include "server/http/answers/effects.h"
#include "server/http/answers/refusal.h"
#include "server/http/answers/render.h"
#include "server/http/routes/request/body.h"
#include "server/http/routes/request/query.h"
#include "server/http/transport/problem.h"
#include "server/store/format_time.h"
#include "sweepfile/scalar.h"

namespace attune::server {
namespace {

std::string DescribeLimits(const ExtendSweep& command) {
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

// For example: now stop.max_trials 40 (was 20), parameters.lr.max 0.1 (was 0.01)
std::string EffectOf(const std::vector<std::string>& changes) {
  std::string text;
  for (const std::string& change : changes) text += (text.empty() ? "now " : ", ") + change;
  return text.empty() ? "nothing changes: the sweep has these values already" : text;
}

std::string EffectOf(const std::vector<Event>& events) {
  std::vector<std::string> changes;
  bool opened = false;
  for (const Event& event : events) {
    opened = opened || std::holds_alternative<SweepReopened>(event.fact);
    if (const auto* edited = std::get_if<SweepEdited>(&event.fact))
      changes.insert(changes.end(), edited->changes.begin(), edited->changes.end());
  }
  return (opened ? "it is open again; " : "") + EffectOf(changes);
}

}  // namespace

Response Sweeps::Pause(const Request& request, const Target& target) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(PauseSweep{target.sweep()}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  const int64_t leaving = CountFacts<TrialYielding>(*events);
  std::string effect = "nothing runs, and nothing starts before it is resumed";
  if (leaving > 0) effect = Plural(leaving, "running trial") + " will save a checkpoint and leave";
  if (events->empty()) effect = "it is paused already";
  return answers_.Sweep(request, target.sweep(), kAccepted, effect);
}

Response Sweeps::Resume(const Request& request, const Target& target) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(ResumeSweep{target.sweep()}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  const int64_t back = CountFacts<TrialRequeued>(*events);
  std::string effect = "the sweep continues";
  if (back > 0) effect += ", " + Plural(back, "paused trial") + " first";
  if (events->empty()) effect = "it is running already";
  return answers_.Sweep(request, target.sweep(), kAccepted, effect);
}

Response Sweeps::Stop(const Request& request, const Target& target) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(StopSweep{target.sweep()}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  int running = 0;
  backend_.QueryState([&](const Brain& brain) {
    const Sweep* sweep = brain.state().Find(target.sweep());
    if (sweep != nullptr) running = sweep->Count(TrialState::kRunning);
  });
  std::string effect = Plural(running, "running trial") + " will finish, and nothing else starts";
  if (running == 0) effect = "nothing runs, so it ends now";
  if (events->empty()) effect = "it is ending already";
  return answers_.Sweep(request, target.sweep(), kAccepted, effect);
}

Response Sweeps::Kill(const Request& request, const Target& target) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(KillSweep{target.sweep()}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  std::string effect = Plural(CountFacts<TrialEnded>(*events), "trial") + " ended now";
  if (events->empty()) effect = "it is being killed already";
  return answers_.Sweep(request, target.sweep(), kAccepted, effect);
}

Response Sweeps::Extend(const Request& request, const Target& target) {
  const auto body = ReadExtension(request.body, target.sweep());
  if (!body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(*body.value, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  const std::string effect =
      (CountFacts<SweepReopened>(*events) > 0 ? "it is open again: " : "now ") +
      DescribeLimits(*body.value);
  return answers_.Sweep(request, target.sweep(), kAccepted, effect);
}

Response Sweeps::Edit(const Request& request, const Target& target) {
  const auto dry_run = BooleanQuery(request, "dry_run");
  if (!dry_run.ok()) return Problem(dry_run.error());
  const auto seen = reader_.LastSeq();
  if (!seen.ok()) return Problem(seen.error());
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  auto patched = sweepfile::PatchSweep(sweep->spec, request.body, {.algorithms = &algorithms_});
  if (!patched.spec) return Refuse(patched.faults);
  if (*dry_run) {
    const auto changes = Changes(sweep->spec, *patched.spec);
    if (!changes.ok()) return ProblemOfBody(changes.error());
    return answers_.Sweep(request, target.sweep(), 200, EffectOf(*changes));
  }
  const auto events =
      backend_.Execute(EditSweep{target.sweep(), *std::move(patched.spec), *seen}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  return answers_.Sweep(request, target.sweep(), kAccepted, EffectOf(*events));
}

Response Sweeps::Annotate(const Request& request, const Target& target) {
  std::unique_lock one_at_a_time(annotating_);
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  const auto changes = ReadAnnotation(request.body, sweep->note, sweep->tags);
  if (!changes.value) return Refuse(changes.faults);
  const auto events =
      backend_.Execute(AnnotateSweep{target.sweep(), *changes.value}, request.actor);
  one_at_a_time.unlock();
  if (!events.ok()) return ProblemOfBody(events.error());
  return answers_.Sweep(request, target.sweep(), kAccepted, AnnotationEffect(*changes.value));
}

Response Sweeps::Delete(const Request& request, const Target& target) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto delay = IntegerQuery(request, "delay", 0, 0, kDeletionDelayMaxSeconds);
  if (!delay.ok()) return Problem(delay.error());
  const SweepId id = target.sweep();
  const auto seen = reader_.LastSeq();
  if (!seen.ok()) return Problem(seen.error());
  const auto pinned = reader_.FirstPinned(id);
  if (!pinned.ok()) return Problem(pinned.error());
  if (*pinned) {
    const std::string name = ToString(**pinned);
    return Problem(rest::ProblemType::kCheckpointPinned,
                   "sweep " + ToString(id) + " stays: its checkpoint " + name +
                       " is pinned; unpin it with `attune checkpoint unpin " + name + "`");
  }
  const auto events =
      backend_.Execute(DeleteSweep{id, *seen, Seconds(static_cast<double>(*delay))}, request.actor);
  if (!events.ok()) return Problem(events.error());
  if (CountFacts<SweepDeleted>(*events) == 0) return AnswerScheduled(id);
  std::set<std::string> folders;
  backend_.QueryState([&](const Brain& brain) {
    for (const auto& [name, executor] : brain.state().executors) folders.insert(FolderOf(executor));
  });
  std::string effect = "deleted";
  if (!folders.empty())
    effect += "; its files will be deleted from " + Plural(std::ssize(folders), "data folder");
  return Render(rest::DeletedSweep{.id = ToString(id), .state = "deleted", .effect = effect},
                kAccepted);
}

Response Sweeps::AnswerScheduled(SweepId id) {
  rest::DeletedSweep answer{.id = ToString(id), .state = "scheduled"};
  backend_.QueryState(
      [&](const Brain& brain) { answer.deletion = RenderDeletion(brain.state(), id, WallTime()); });
  if (!answer.deletion)
    return Problem(Error{ErrorCode::kConflict, "the deletion of sweep " + answer.id +
                                                   " was undone or has happened in the meantime; "
                                                   "read the sweep again"});
  const auto seconds = static_cast<int64_t>(std::ceil(answer.deletion->seconds_left));
  answer.effect = "it will be deleted in " + Plural(seconds, "second") +
                  "; until then `attune sweep undelete " + answer.id + "` keeps it";
  return Render(answer, kAccepted);
}

Response Sweeps::Undelete(const Request& request, const Target& target) {
  if (const auto body = ReadNothing(request.body); !body.value) return Refuse(body.faults);
  const auto events = backend_.Execute(UndeleteSweep{target.sweep()}, request.actor);
  if (!events.ok()) return ProblemOfBody(events.error());
  const std::string effect = events->empty() ? "nothing changes: no deletion was scheduled"
                                             : "it is kept: its deletion is undone";
  return answers_.Sweep(request, target.sweep(), kAccepted, effect);
}

}  // namespace attune::server
