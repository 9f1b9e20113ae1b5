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

using CheckpointRows = std::vector<rest::TrialCheckpoint>;

CheckpointName NameOf(const TrialName& trial, const rest::Checkpoint& row) {
  return {trial, std::to_string(row.attempt) + "-" + std::to_string(row.step)};
}

// The checkpoint that was saved last and meets the condition; null if there is none. Later attempts
// continue from the checkpoints of earlier ones.
template <class Row, class Condition>
const Row* Last(const std::vector<Row>& rows, Condition condition) {
  const Row* last = nullptr;
  for (const Row& row : rows) {
    if (condition(row) && (last == nullptr ||
                           std::pair(last->attempt, last->step) < std::pair(row.attempt, row.step)))
      last = &row;
  }
  return last;
}

bool IsKept(const rest::TrialCheckpoint& row) { return !row.dropped.has_value(); }

std::string StepsOf(const CheckpointRows& rows) {
  std::vector<std::string> steps;
  for (const rest::TrialCheckpoint& row : rows) {
    if (IsKept(row)) steps.push_back(std::to_string(row.step));
  }
  return JoinWithCommas(steps);
}

// Why the trial with these checkpoints does not have the one at `step`.
Error None(const TrialName& trial, const CheckpointRows& rows, std::optional<int64_t> step) {
  const std::string name = "trial " + trial.sweep + "/" + std::to_string(trial.number);
  const std::string steps = StepsOf(rows);
  const std::string those =
      steps.empty() ? "; it has none\nlist those of all trials with `attune checkpoint list " +
                          trial.sweep + "`"
                    : "\nit has those of steps " + steps;
  if (!step) return {ErrorCode::kNotFound, name + " has no such checkpoint" + those};
  const auto* const dropped =
      Last(rows, [&](const rest::TrialCheckpoint& row) { return row.step == *step; });
  if (dropped != nullptr)
    return {ErrorCode::kNotFound,
            "the checkpoint of " + name + " at step " + std::to_string(*step) + " was dropped at " +
                Clean(dropped->dropped.value_or("")) + ": " + Clean(dropped->reason) + those};
  return {ErrorCode::kNotFound,
          name + " has no checkpoint at step " + std::to_string(*step) + those};
}

// What is named where a checkpoint may be.
struct Named {
  TrialName trial;
  std::optional<CheckpointName> checkpoint;
  std::optional<int64_t> step;
};

Result<Named> BestOf(Api& api, const std::string& id) {
  const auto sweep = api.Sweep(id);
  if (!sweep.ok()) return sweep.error();
  if (!sweep->best.has_value())
    return Error{ErrorCode::kNotFound, "sweep " + id +
                                           " has no result yet, so it has no best checkpoint\n"
                                           "list what there is with `attune checkpoint list " +
                                           id + "`"};
  return Named{
      .trial = {id, sweep->best->trial}, .checkpoint = std::nullopt, .step = sweep->best->step};
}

// The list of a sweep's checkpoints tells which ones belong to the best result of their trial.
Result<int64_t> BestStepOf(Api& api, const TrialName& trial, const CheckpointRows& rows) {
  const auto all = api.Checkpoints(trial.sweep);
  if (!all.ok()) return all.error();
  const auto* const best = Last(all->checkpoints, [&](const rest::SweepCheckpoint& row) {
    return row.trial == trial.number && row.best.has_value();
  });
  if (best != nullptr) return best->step;
  const std::string steps = StepsOf(rows);
  return Error{ErrorCode::kNotFound, "trial " + trial.sweep + "/" + std::to_string(trial.number) +
                                         " has no checkpoint of its best result" +
                                         (steps.empty() ? "; it has none at all"
                                                        : "\nit has those of steps " + steps +
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

// The checkpoint to fetch, and its trial.
struct Chosen {
  TrialName trial;
  rest::TrialCheckpoint row;
};

Result<Chosen> Choose(Api& api, const std::string& name, const CheckpointChoice& choice) {
  Result<Named> named = Parse(api, name, choice);
  if (!named.ok()) return named.error();
  const auto trial = api.Trial(named->trial);
  if (!trial.ok()) return trial.error();
  const CheckpointRows& rows = trial->checkpoints;
  if (choice.best && !named->step) {
    const Result<int64_t> step = BestStepOf(api, named->trial, rows);
    if (!step.ok()) return step.error();
    named->step = *step;
  }
  const auto has_name = [&](const rest::TrialCheckpoint& each) {
    return !named->checkpoint || NameOf(named->trial, each).name == named->checkpoint->name;
  };
  const auto* const row = Last(rows, [&](const rest::TrialCheckpoint& each) {
    return has_name(each) && IsKept(each) && (!named->step || each.step == *named->step);
  });
  if (row != nullptr) return Chosen{named->trial, *row};
  if (!named->checkpoint) return None(named->trial, rows, named->step);
  const auto* const dropped = Last(rows, has_name);
  return None(named->trial, rows, dropped == nullptr ? std::nullopt : std::optional(dropped->step));
}

// Downloads it into the folder. An error says what to do; the server's own message is kept.
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
  const Result<Chosen> chosen = Choose(api, name, choice);
  if (!chosen.ok()) return Fail(console, chosen.error());
  const auto& [trial, row] = *chosen;
  const CheckpointName checkpoint = NameOf(trial, row);
  const std::string folder = !out.empty() ? out
                                          : trial.sweep + "-" + std::to_string(trial.number) +
                                                "-step-" + std::to_string(row.step);
  auto drawn = std::chrono::steady_clock::now() - kBarRedrawPeriod;
  const auto progress = [&](uint64_t there, uint64_t all) {
    const auto now = std::chrono::steady_clock::now();
    if (!console.err.live() || now - drawn < kBarRedrawPeriod) return;
    drawn = now;
    console.err.Draw(
        {FormatBytes(static_cast<double>(there)) + " of " + FormatBytes(static_cast<double>(all))});
  };
  const auto done = Bring(api, checkpoint, row.digest, folder, progress);
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
      (had > 0 ? "; " + FormatBytes(static_cast<double>(had)) + " were already there" : ""));
  console.out.Print(folder);
  return ExitCode::kSuccess;
}

Result<CheckpointName> NameToDrop(Api& api, const std::string& name, std::optional<int64_t> step) {
  const Result<Named> named = Parse(api, name, {.step = step, .best = false});
  if (!named.ok()) return named.error();
  if (named->checkpoint) return *named->checkpoint;
  const auto trial = api.Trial(named->trial);
  if (!trial.ok()) return trial.error();
  const CheckpointRows& rows = trial->checkpoints;
  if (!step) {
    const auto kept = std::ranges::count_if(rows, IsKept);
    if (kept == 0) return None(named->trial, rows, step);
    if (kept == 1) return NameOf(named->trial, *Last(rows, IsKept));
    return Error{ErrorCode::kInvalid, "`" + name + "` has " + std::to_string(kept) +
                                          " checkpoints: choose one with --step N, or name it "
                                          "like " +
                                          name + "/2-900\nlist them with `attune checkpoint list`"};
  }
  const auto of_step = [&](const rest::TrialCheckpoint& row) { return row.step == *step; };
  const auto* row =
      Last(rows, [&](const rest::TrialCheckpoint& each) { return of_step(each) && IsKept(each); });
  if (row == nullptr) row = Last(rows, of_step);
  if (row == nullptr) return None(named->trial, rows, step);
  return NameOf(named->trial, *row);
}

}  // namespace attune::cli
