#include "core/state/ended.h"

#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "core/base/content_hash.h"
#include "core/state/retention.h"
#include "core/state/snapshot.h"

namespace attune {
namespace {

// The ended sweep that a command may reopen or must read.
std::optional<SweepId> NeededSweep(const Command& command) {
  if (const auto* extend = std::get_if<ExtendSweep>(&command)) return extend->sweep;
  if (const auto* edit = std::get_if<EditSweep>(&command)) return edit->sweep;
  if (const auto* reopen = std::get_if<ReopenTrial>(&command)) return reopen->record.id.sweep;
  if (const auto* pin = std::get_if<PinCheckpoint>(&command); pin != nullptr && !pin->pinned)
    return pin->checkpoint.trial.sweep;
  if (const auto* drop = std::get_if<DropCheckpoint>(&command)) return drop->checkpoint.trial.sweep;
  return std::nullopt;
}

std::optional<EndedSweepData> MissingDataOf(const State& state, SweepId id) {
  const auto ended = state.ended.find(id);
  if (ended == state.ended.end() || !ended->second.saved.empty()) return std::nullopt;
  return EndedSweepData{.sweep = id, .mark = ended->second.mark};
}

}  // namespace

std::vector<EndedSweepData> AllEndedSweepData(const State& state) {
  std::vector<EndedSweepData> parts;
  for (const auto& [id, ended] : state.ended) parts.push_back({id, ended.mark, ended.saved});
  return parts;
}

void ReleaseEndedSweeps(State& state) {
  for (auto& [id, ended] : state.ended) ended.saved = {};
}

void ReleaseEndedSweeps(State& state, SweepId sweep) {
  const auto ended = state.ended.find(sweep);
  if (ended != state.ended.end()) ended->second.saved = {};
}

std::optional<EndedSweepData> MissingData(const State& state, const Command& command) {
  const auto id = NeededSweep(command);
  return id ? MissingDataOf(state, *id) : std::nullopt;
}

std::optional<EndedSweepData> MissingData(const State& state, const Event& event) {
  const auto* reopened = std::get_if<SweepReopened>(&event.fact);
  return reopened != nullptr ? MissingDataOf(state, reopened->sweep) : std::nullopt;
}

Status RestoreEndedSweep(State& state, EndedSweepData part) {
  EndedSweep& ended = state.ended.at(part.sweep);
  if (ContentHash(part.bytes) != ended.mark)
    return Error{
        ErrorCode::kCorrupt,
        "the saved state of sweep " + ToString(part.sweep) +
            " is damaged, so the sweep cannot be opened again; stop the server, empty the tables "
            "ended_sweeps and snapshots, and start it: it rebuilds them from the log"};
  ended.saved = std::move(part.bytes);
  return {};
}

void AddEnded(State& state, const Sweep& sweep) {
  std::string saved = SaveSweep(sweep);
  const uint64_t mark = ContentHash(saved);
  state.ended[sweep.id] = {.state = sweep.state,
                           .idempotency_key = sweep.idempotency_key,
                           .mark = mark,
                           .saved = std::move(saved)};
  state.reopenable.push_back(sweep.id);
  if (state.reopenable.size() <= kReopenableSweeps) return;
  ForgetEnded(state, state.reopenable.front());
}

void ForgetEnded(State& state, SweepId id) {
  const auto ended = state.ended.find(id);
  if (ended == state.ended.end()) return;
  const auto key = state.by_key.find(ended->second.idempotency_key);
  if (key != state.by_key.end() && key->second == id) state.by_key.erase(key);
  state.ended.erase(ended);
  std::erase(state.reopenable, id);
}

Status ReadEnded(const State& state, SweepId id, Sweep& sweep) {
  const EndedSweep& ended = state.ended.at(id);
  ATTUNE_CHECK(!ended.saved.empty());
  if (Status read = LoadSweep(ended.saved, *state.algorithms, sweep); !read.ok()) return read;
  for (const auto& [checkpoint, pinned] : ended.pins) SetPinned(sweep, checkpoint, pinned);
  for (const auto& [checkpoint, address] : ended.stored)
    SetStored(sweep, checkpoint, address, false);
  for (const CheckpointId& checkpoint : ended.dropped) Remove(sweep, checkpoint);
  return {};
}

}  // namespace attune
