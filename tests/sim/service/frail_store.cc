#include "tests/sim/service/frail_store.h"

#include <utility>

#include "base/check.h"
#include "base/result.h"

namespace attune::sim {

void FrailStore::Open(bool use_snapshots) {
  use_snapshots_ = use_snapshots;
  dies_at_.reset();
  unwritten_.clear();
}

Status FrailStore::Append(std::span<const Event> batch) {
  if (variant_ == Variant::kActsBeforeAppend) {
    if (Status probed = store_.Probe(); !probed.ok()) return probed;
    unwritten_.assign(batch.begin(), batch.end());
    return {};
  }
  if (dies_at_ == DeathPoint::kBeforeAppend) throw Death{};
  return Write(batch, store_.Append(batch));
}

Status FrailStore::AppendFromReserve(std::span<const Event> batch) {
  if (variant_ == Variant::kActsBeforeAppend) return Append(batch);
  if (dies_at_ == DeathPoint::kBeforeAppend) throw Death{};
  return Write(batch, store_.AppendFromReserve(batch));
}

void FrailStore::Flush() {
  if (unwritten_.empty()) return;
  if (dies_at_ == DeathPoint::kBeforeAppend) throw Death{};
  const std::vector<Event> batch = std::exchange(unwritten_, {});
  const Status written = Write(batch, store_.Append(batch));
  ATTUNE_CHECK(written.ok());
}

Status FrailStore::Write(std::span<const Event> batch, const Status& written) {
  if (!written.ok()) return written;
  appended_(batch);
  if (dies_at_ == DeathPoint::kAfterAppend) throw Death{};
  return {};
}

Status FrailStore::Read(EventSeq after, const std::function<void(const Event&)>& visit) const {
  const EventSeq last = store_.LastSeq();
  return store_.Read(after, [&](const Event& event) {
    const bool forgotten =
        variant_ == Variant::kForgetsRestart && event.seq == last && last.value > 1;
    if (!forgotten) visit(event);
  });
}

// A cache of what is written, and of nothing else.
Status FrailStore::SaveSnapshot(const server::Snapshot& snapshot) {
  if (snapshot.seq != store_.LastSeq())
    return Error{ErrorCode::kUnavailable, "the log is not there yet"};
  return store_.SaveSnapshot(snapshot);
}

Result<std::optional<server::Snapshot>> FrailStore::ReadSnapshot(EventSeq at_most) const {
  if (!use_snapshots_) return std::optional<server::Snapshot>();
  return store_.ReadSnapshot(at_most);
}

}  // namespace attune::sim
