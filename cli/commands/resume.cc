#include "cli/commands/resume.h"

#include "base/result.h"
#include "cli/algorithms.h"
#include "cli/check_sweep.h"
#include "cli/watch/model.h"
#include "core/brain/edit.h"
#include "sweepfile/codec.h"
#include "sweepfile/sweepfile.h"

namespace attune::cli {
namespace {

bool IsSame(const rest::SweepDetail& sweep, const SweepDocument& document, SameBy by) {
  if (by == SameBy::kText || sweep.path.empty()) return sweep.file == document.text;
  return sweep.path == (document.directory() / document.path.filename()).string();
}

bool IsEquivalent(const SweepSpec& a, const SweepSpec& b) {
  return sweepfile::ResolvedYaml(a) == sweepfile::ResolvedYaml(b);
}

// The sweep file with the snapshot of the sweep, which keeps its code until it ends. If the file
// names no object store, the server has chosen the sweep's.
SweepSpec WithChoicesOf(const SweepSpec& sweep, SweepSpec file) {
  if (file.storage.empty()) file.storage = sweep.storage;
  if (!sweep.program.code || !file.program.code) return file;
  file.program.code->digest = sweep.program.code->digest;
  file.program.code->commit = sweep.program.code->commit;
  file.program.code->dirty = sweep.program.code->dirty;
  return file;
}

// The merge patch that turns `from` into `to`.
Json PatchBetween(const Json& from, const Json& to) {
  if (!from.is_object() || !to.is_object()) return to;
  Json patch = Json::object();
  for (const auto& [key, value] : from.items()) {
    if (!to.contains(key)) patch[key] = nullptr;
  }
  for (const auto& [key, value] : to.items()) {
    const auto before = from.find(key);
    if (before == from.end()) {
      patch[key] = value;
    } else if (*before != value) {
      patch[key] = PatchBetween(*before, value);
    }
  }
  return patch;
}

}  // namespace

Result<Unfinished> FindUnfinished(Api& api, const SweepDocument& document, SameBy by) {
  const auto list = api.Sweeps();
  if (!list.ok()) return list.error();
  Unfinished unfinished;
  for (const rest::Sweep& entry : list->sweeps) {
    if (IsFinal(entry.state)) continue;
    // The list of sweeps does not include their files.
    auto sweep = api.Sweep(entry.id);
    if (!sweep.ok()) return sweep.error();
    if (!unfinished.same.has_value() && IsSame(*sweep, document, by)) {
      unfinished.same = *std::move(sweep);
    } else {
      unfinished.others.push_back(entry.id);
    }
  }
  return unfinished;
}

Result<FileDifference> CompareWithFile(Api& api, const rest::SweepDetail& sweep,
                                       const SweepDocument& document, const SweepSpec& file) {
  const CheckedSweep created =
      CheckSweep({.path = document.path, .text = sweep.file}, ProgramCheck::kSkip);
  if (created.spec && IsEquivalent(*created.spec, file)) return FileDifference{};
  const auto resolved = api.ResolvedSweep(sweep.id);
  if (!resolved.ok()) return resolved.error();
  const sweepfile::Parsed present =
      sweepfile::ParseSweep(Dump(resolved->resolved), {.algorithms = &AllAlgorithms()});
  if (!present.spec)
    return Error{ErrorCode::kInternal, "the server returned an invalid file of sweep " + sweep.id +
                                           ": " + sweepfile::Sentence(present.faults.front())};
  const SweepSpec now = WithChoicesOf(*present.spec, file);
  if (IsEquivalent(*present.spec, now)) return FileDifference{};

  FileDifference difference;
  auto changes = Changes(*present.spec, now);
  if (!changes.ok()) {
    difference.obstacle = changes.error().message;
  } else if (present.spec->initial_points != now.initial_points) {
    difference.obstacle = "initial_points: cannot change after the sweep has started";
  } else {
    difference.changes = *std::move(changes);
    difference.patch = PatchBetween(resolved->resolved, sweepfile::ToJson(now));
  }
  return difference;
}

}  // namespace attune::cli
