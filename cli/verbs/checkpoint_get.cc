#include "cli/verbs/checkpoint_get.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "checkpoints/download.h"
#include "cli/text/numbers.h"
#include "cli/text/width.h"

namespace attune::cli {
namespace {

constexpr std::chrono::milliseconds kBarRedrawPeriod{100};

CheckpointName NameOf(const TrialName& trial, const Json& row) {
  return {trial,
          std::to_string(WholeAt(row, "attempt")) + "-" + std::to_string(WholeAt(row, "step"))};
}

// As they were saved: later attempts go on from earlier ones' checkpoints.
bool SavedBefore(const Json& a, const Json& b) {
  return std::pair(WholeAt(a, "attempt"), WholeAt(a, "step")) <
         std::pair(WholeAt(b, "attempt"), WholeAt(b, "step"));
}

// The checkpoint saved last of those that fit; null when none does.
const Json* Last(const Json& rows, const std::function<bool(const Json&)>& fits) {
  const Json* last = nullptr;
  for (const Json& row : rows) {
    if (fits(row) && (last == nullptr || SavedBefore(*last, row))) last = &row;
  }
  return last;
}

bool IsKept(const Json& row) { return !At(row, "dropped").is_string(); }

std::string StepsOf(const Json& rows) {
  std::string steps;
  for (const Json& row : rows) {
    if (IsKept(row)) steps += (steps.empty() ? "" : ", ") + std::to_string(WholeAt(row, "step"));
  }
  return steps;
}

// Why there is none to take of a trial, whose checkpoints these are.
Error None(const TrialName& trial, const Json& rows, std::optional<int64_t> step) {
  const std::string name = "trial " + trial.sweep + "/" + std::to_string(trial.number);
  const std::string steps = StepsOf(rows);
  const std::string those = steps.empty()
                                ? "; it has none\nsee those of others with `attune checkpoint "
                                  "list " +
                                      trial.sweep + "`"
                                : "\nit has those of the steps " + steps;
  if (!step) return {ErrorCode::kNotFound, name + " has no such checkpoint" + those};
  const auto of_step = [&](const Json& row) { return WholeAt(row, "step") == *step; };
  if (const Json* dropped = Last(rows, of_step))
    return {ErrorCode::kNotFound, "the checkpoint of " + name + " at step " +
                                      std::to_string(*step) + " was dropped at " +
                                      Clean(TextAt(*dropped, "dropped")) + ": " +
                                      Clean(TextAt(*dropped, "reason")) + those};
  return {ErrorCode::kNotFound,
          name + " has no checkpoint at step " + std::to_string(*step) + those};
}

// What is named where a checkpoint may be.
struct Named {
  TrialName trial;
  std::optional<CheckpointName> checkpoint;
  std::optional<int64_t> step;
};

Result<Named> BestOf(Api& api, const std::string& sweep) {
  const Result<Json> json = api.Sweep(sweep);
  if (!json.ok()) return json.error();
  const Json& best = At(*json, "best");
  if (!best.is_object())
    return Error{ErrorCode::kNotFound, "sweep " + sweep +
                                           " has no result yet, and so no best checkpoint\nsee "
                                           "what there is with `attune checkpoint list " +
                                           sweep + "`"};
  return Named{.trial = {sweep, WholeAt(best, "trial")},
               .checkpoint = std::nullopt,
               .step = WholeAt(best, "step")};
}

// The list of all says which are of their trial's best result.
Result<int64_t> BestStepOf(Api& api, const TrialName& trial, const Json& rows) {
  const Result<Json> all = api.Checkpoints(trial.sweep);
  if (!all.ok()) return all.error();
  const Json* const best = Last(*all, [&](const Json& row) {
    return WholeAt(row, "trial", -1) == trial.number && !At(row, "best").is_null();
  });
  if (best != nullptr) return WholeAt(*best, "step");
  const std::string steps = StepsOf(rows);
  return Error{ErrorCode::kNotFound, "trial " + trial.sweep + "/" + std::to_string(trial.number) +
                                         " has no checkpoint of its best result" +
                                         (steps.empty() ? "; it has none at all"
                                                        : "\nit has those of the steps " + steps +
                                                              ": name one with --step N")};
}

Result<Named> Parse(Api& api, const std::string& name, const CheckpointChoice& choice) {
  const auto slashes = std::ranges::count(name, '/');
  if (choice.best && choice.step)
    return Error{ErrorCode::kInvalid, "--best and --step: give one of them"};
  if (slashes == 0 && choice.best) return BestOf(api, name);
  if (slashes == 2) {
    const Result<CheckpointName> checkpoint = CheckpointName::Parse(name);
    if (!checkpoint.ok()) return checkpoint.error();
    if (choice.best || choice.step)
      return Error{ErrorCode::kInvalid,
                   "`" + name + "` names one checkpoint: leave --best and --step away"};
    return Named{checkpoint->trial, *checkpoint, std::nullopt};
  }
  const Result<TrialName> trial = TrialName::Parse({name});
  if (!trial.ok()) return trial.error();
  return Named{*trial, std::nullopt, choice.step};
}

// The row of the one to fetch, kept.
Result<Json> Choose(Api& api, const std::string& name, const CheckpointChoice& choice) {
  Result<Named> named = Parse(api, name, choice);
  if (!named.ok()) return named.error();
  const Result<Json> trial = api.Trial(named->trial);
  if (!trial.ok()) return trial.error();
  const Json& rows = At(*trial, "checkpoints");
  if (choice.best && !named->step) {
    const Result<int64_t> step = BestStepOf(api, named->trial, rows);
    if (!step.ok()) return step.error();
    named->step = *step;
  }
  const Json* const row = Last(rows, [&](const Json& each) {
    if (named->checkpoint && NameOf(named->trial, each).name != named->checkpoint->name)
      return false;
    return IsKept(each) && (!named->step || WholeAt(each, "step") == *named->step);
  });
  if (row != nullptr) {
    Json chosen = *row;
    chosen["sweep"] = named->trial.sweep;
    chosen["trial"] = named->trial.number;
    return chosen;
  }
  if (!named->checkpoint) return None(named->trial, rows, named->step);
  const Json* const dropped = Last(rows, [&](const Json& each) {
    return NameOf(named->trial, each).name == named->checkpoint->name;
  });
  return None(named->trial, rows,
              dropped == nullptr ? std::nullopt : std::optional(WholeAt(*dropped, "step")));
}

// Brings it into the folder, and says what to do where it could not. What the server said is not
// put into other words.
Result<checkpoints::Downloaded> Bring(Api& api, const CheckpointName& checkpoint,
                                      const std::string& digest, const std::string& folder,
                                      const std::function<void(uint64_t, uint64_t)>& progress) {
  std::optional<Error> said;
  const auto read = [&](const std::string& file, uint64_t offset, const std::string&) {
    Result<checkpoints::Piece> piece = api.CheckpointContent(checkpoint, file, offset);
    if (!piece.ok()) said = piece.error();
    return piece;
  };
  checkpoints::Downloaded done = checkpoints::Download(
      {.name = TextOf(checkpoint), .digest = digest, .read = read}, folder, progress);
  if (done.status.ok()) return done;
  Error error = done.status.error();
  const std::string stays = "\nwhat has arrived stays in " + done.part.string() +
                            ": the same command goes on from there; remove that folder if you "
                            "give up";
  if (said) return Error{error.code, error.message + stays};
  switch (error.code) {
    case ErrorCode::kConflict:
      return Error{error.code, error.message + ": name another folder with --out DIR"};
    case ErrorCode::kUnavailable:
      return Error{ErrorCode::kConflict,
                   error.message + ": wait for it, or name another folder with --out DIR"};
    case ErrorCode::kStorageFull:
      return Error{
          error.code,
          error.message + ": free some room there, or choose another place with --out DIR" + stays};
    case ErrorCode::kCorrupt:
      return Error{error.code, error.message + (done.part.empty() ? "" : stays)};
    default:
      return Error{error.code, error.message + stays};
  }
}

}  // namespace

std::string TextOf(const CheckpointName& checkpoint) {
  return checkpoint.trial.sweep + "/" + std::to_string(checkpoint.trial.number) + "/" +
         checkpoint.name;
}

ExitCode GetCheckpoint(const std::string& name, const CheckpointChoice& choice,
                       const std::string& out, const OutputFlags& output, Console& console,
                       Api& api) {
  const Result<Json> row = Choose(api, name, choice);
  if (!row.ok()) return Fail(console, row.error());
  const TrialName trial{TextAt(*row, "sweep"), WholeAt(*row, "trial")};
  const CheckpointName checkpoint = NameOf(trial, *row);
  const std::string folder = !out.empty() ? out
                                          : trial.sweep + "-" + std::to_string(trial.number) +
                                                "-step-" + std::to_string(WholeAt(*row, "step"));
  auto drawn = std::chrono::steady_clock::now() - kBarRedrawPeriod;
  const auto progress = [&](uint64_t there, uint64_t all) {
    const auto now = std::chrono::steady_clock::now();
    if (!console.err.live() || now - drawn < kBarRedrawPeriod) return;
    drawn = now;
    console.err.Draw(
        {FormatBytes(static_cast<double>(there)) + " of " + FormatBytes(static_cast<double>(all))});
  };
  const auto done = Bring(api, checkpoint, TextAt(*row, "digest"), folder, progress);
  if (console.err.live()) console.err.Remove();
  if (!done.ok()) return Fail(console, done.error());
  if (output.json()) {
    console.out.Print(Dump({{"checkpoint", TextOf(checkpoint)},
                            {"folder", folder},
                            {"files", done->files},
                            {"bytes", done->bytes},
                            {"fetched_bytes", done->fetched}},
                           2));
    return ExitCode::kSuccess;
  }
  const uint64_t had = done->bytes - std::min(done->bytes, done->fetched);
  console.err.Print(
      "checkpoint " + TextOf(checkpoint) + ": " + std::to_string(done->files) +
      (done->files == 1 ? " file, " : " files, ") + FormatBytes(static_cast<double>(done->bytes)) +
      (had > 0 ? ", of which " + FormatBytes(static_cast<double>(had)) + " were there from before"
               : ""));
  console.out.Print(folder);
  return ExitCode::kSuccess;
}

Result<CheckpointName> NameToDrop(Api& api, const std::string& name, std::optional<int64_t> step) {
  const Result<Named> named = Parse(api, name, {.step = step, .best = false});
  if (!named.ok()) return named.error();
  if (named->checkpoint) return *named->checkpoint;
  const Result<Json> trial = api.Trial(named->trial);
  if (!trial.ok()) return trial.error();
  const Json& rows = At(*trial, "checkpoints");
  if (!step) {
    const auto kept = std::ranges::count_if(rows, IsKept);
    if (kept == 0) return None(named->trial, rows, step);
    if (kept == 1) return NameOf(named->trial, *Last(rows, IsKept));
    return Error{ErrorCode::kInvalid, "`" + name + "` has " + std::to_string(kept) +
                                          ": say which with --step N, or name it like " + name +
                                          "/2-900\nsee them with `attune checkpoint list`"};
  }
  const auto of_step = [&](const Json& row) { return WholeAt(row, "step") == *step; };
  const Json* row = Last(rows, [&](const Json& each) { return of_step(each) && IsKept(each); });
  if (row == nullptr) row = Last(rows, of_step);
  if (row == nullptr) return None(named->trial, rows, step);
  return NameOf(named->trial, *row);
}

}  // namespace attune::cli
