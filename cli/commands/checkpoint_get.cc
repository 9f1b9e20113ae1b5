#include "cli/commands/checkpoint_get.h"

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

// The last saved checkpoint that meets the condition; null if there is none. Later attempts resume
// from the checkpoints of earlier ones, so the attempt counts before the step.
template <class Row, class Condition>
const Row* FindLast(const std::vector<Row>& rows, Condition condition) {
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

// kNotFound that says why the trial has no checkpoint at `step`, or no checkpoint at all.
Error NoSuchCheckpoint(const TrialName& trial, const CheckpointRows& rows,
                       std::optional<int64_t> step) {
  const std::string name = "trial " + trial.sweep + "/" + std::to_string(trial.number);
  const std::string steps = StepsOf(rows);
  const std::string alternatives =
      steps.empty() ? "; it has none\nlist those of all trials with `attune checkpoint list " +
                          trial.sweep + "`"
                    : "\nit has those of steps " + steps;
  if (!step) return {ErrorCode::kNotFound, name + " has no such checkpoint" + alternatives};
  const auto* const dropped =
      FindLast(rows, [&](const rest::TrialCheckpoint& row) { return row.step == *step; });
  if (dropped != nullptr)
    return {ErrorCode::kNotFound, "the checkpoint of " + name + " at step " +
                                      std::to_string(*step) + " was dropped at " +
                                      Clean(dropped->dropped.value_or("")) + ": " +
                                      Clean(dropped->reason) + alternatives};
  return {ErrorCode::kNotFound,
          name + " has no checkpoint at step " + std::to_string(*step) + alternatives};
}

// The parts of a checkpoint that the command line names.
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
                                           "list the checkpoints with `attune checkpoint list " +
                                           id + "`"};
  return Named{
      .trial = {id, sweep->best->trial}, .checkpoint = std::nullopt, .step = sweep->best->step};
}

// The step of the trial's best checkpoint. Only the list of the sweep's checkpoints marks it.
Result<int64_t> BestStepOf(Api& api, const TrialName& trial, const CheckpointRows& rows) {
  const auto checkpoints = api.Checkpoints(trial.sweep);
  if (!checkpoints.ok()) return checkpoints.error();
  const auto* const best =
      FindLast(checkpoints->checkpoints, [&](const rest::SweepCheckpoint& row) {
        return row.trial == trial.number && row.best.has_value();
      });
  if (best != nullptr) return best->step;
  const std::string steps = StepsOf(rows);
  return Error{ErrorCode::kNotFound, "trial " + trial.sweep + "/" + std::to_string(trial.number) +
                                         " has no checkpoint of its best result" +
                                         (steps.empty() ? "; it has none at all"
                                                        : "\nit has those of steps " + steps +
                                                              "; choose one with --step N")};
}

Result<Named> Parse(Api& api, const std::string& name, const CheckpointChoice& choice) {
  const auto slashes = std::ranges::count(name, '/');
  if (choice.best && choice.step)
    return Error{ErrorCode::kInvalid, "--best and --step: use one of them"};
  if (slashes == 0 && choice.best) return BestOf(api, name);
  if (slashes == 2) {
    const Result<CheckpointName> checkpoint = CheckpointName::Parse(name);
    if (!checkpoint.ok()) return checkpoint.error();
    if (choice.best || choice.step)
      return Error{ErrorCode::kInvalid,
                   "`" + name + "` names one checkpoint; remove --best and --step"};
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
  const auto* const row = FindLast(rows, [&](const rest::TrialCheckpoint& each) {
    return has_name(each) && IsKept(each) && (!named->step || each.step == *named->step);
  });
  if (row != nullptr) return Chosen{named->trial, *row};
  if (!named->checkpoint) return NoSuchCheckpoint(named->trial, rows, named->step);
  const auto* const dropped = FindLast(rows, has_name);
  return NoSuchCheckpoint(named->trial, rows,
                          dropped == nullptr ? std::nullopt : std::optional(dropped->step));
}

// Downloads the checkpoint into the folder. Errors keep the server's message and add the next step.
Result<checkpoints::Downloaded> DownloadTo(
    Api& api, const CheckpointName& checkpoint, const std::string& digest,
    const std::string& folder, const std::function<void(uint64_t, uint64_t)>& progress) {
  std::optional<Error> server_error;
  const auto read = [&](const std::string& file, uint64_t offset, const std::string&) {
    Result<checkpoints::Piece> piece = api.CheckpointContent(checkpoint, file, offset);
    if (!piece.ok()) server_error = piece.error();
    return piece;
  };
  checkpoints::Downloaded done = checkpoints::Download(
      {.name = TextOf(checkpoint), .digest = digest, .read = read}, folder, progress);
  if (done.status.ok()) return done;
  Error error = done.status.error();
  const std::string part_hint = "\nrun the same command again to continue the download in " +
                                done.part.string() + ", or remove that folder";
  if (server_error) return Error{error.code, error.message + part_hint};
  switch (error.code) {
    case ErrorCode::kConflict:
      return Error{error.code, error.message + "; choose another folder with --out DIR"};
    case ErrorCode::kUnavailable:
      return Error{ErrorCode::kConflict,
                   error.message + "; wait for it, or choose another folder with --out DIR"};
    case ErrorCode::kStorageFull:
      return Error{error.code,
                   error.message +
                       "; free some space there, or choose another folder with --out DIR" +
                       part_hint};
    case ErrorCode::kCorrupt:
      return Error{error.code, error.message + (done.part.empty() ? "" : part_hint)};
    default:
      return Error{error.code, error.message + part_hint};
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
  const auto progress = [&](uint64_t downloaded, uint64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (!console.err.live() || now - drawn < kBarRedrawPeriod) return;
    drawn = now;
    console.err.Draw({FormatBytes(static_cast<double>(downloaded)) + " of " +
                      FormatBytes(static_cast<double>(total))});
  };
  const auto done = DownloadTo(api, checkpoint, row.digest, folder, progress);
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
  const uint64_t existing_bytes = done->bytes - std::min(done->bytes, done->fetched);
  console.err.Print(
      "checkpoint " + TextOf(checkpoint) + ": " + std::to_string(done->files) +
      (done->files == 1 ? " file, " : " files, ") + FormatBytes(static_cast<double>(done->bytes)) +
      (existing_bytes > 0
           ? "; " + FormatBytes(static_cast<double>(existing_bytes)) + " were already there"
           : ""));
  console.out.Print(folder);
  return ExitCode::kSuccess;
}

Status DownloadCheckpoint(Api& api, const CheckpointName& checkpoint, const std::string& out) {
  const Result<Chosen> chosen = Choose(api, TextOf(checkpoint), {});
  if (!chosen.ok()) return chosen.error();
  const auto done = DownloadTo(api, checkpoint, chosen->row.digest, out, {});
  return done.ok() ? Status() : Status(done.error());
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
    if (kept == 0) return NoSuchCheckpoint(named->trial, rows, step);
    if (kept == 1) return NameOf(named->trial, *FindLast(rows, IsKept));
    return Error{ErrorCode::kInvalid, "`" + name + "` has " + std::to_string(kept) +
                                          " checkpoints; choose one with --step N, or as " + name +
                                          "/2-900\nlist them with `attune checkpoint list`"};
  }
  const auto of_step = [&](const rest::TrialCheckpoint& row) { return row.step == *step; };
  const auto* row = FindLast(
      rows, [&](const rest::TrialCheckpoint& each) { return of_step(each) && IsKept(each); });
  if (row == nullptr) row = FindLast(rows, of_step);
  if (row == nullptr) return NoSuchCheckpoint(named->trial, rows, step);
  return NameOf(named->trial, *row);
}

}  // namespace attune::cli
