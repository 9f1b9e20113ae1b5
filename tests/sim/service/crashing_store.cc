#include "tests/sim/service/crashing_store.h"

#include <utility>

#include "base/check.h"
#include "base/result.h"

namespace attune::sim {

void CrashingStore::Open(bool use_snapshots) {
  use_snapshots_ = use_snapshots;
  crash_point_.reset();
  unwritten_.clear();
}

Status CrashingStore::Append(std::span<const Event> batch) {
  if (variant_ == Variant::kActsBeforeAppend) {
    if (Status probed = store_.Probe(); !probed.ok()) return probed;
    unwritten_.assign(batch.begin(), batch.end());
    return {};
  }
  if (crash_point_ == CrashPoint::kBeforeAppend) throw ProcessCrash{};
  return Write(batch, store_.Append(batch));
}

Status CrashingStore::AppendFromReserve(std::span<const Event> batch) {
  if (variant_ == Variant::kActsBeforeAppend) return Append(batch);
  if (crash_point_ == CrashPoint::kBeforeAppend) throw ProcessCrash{};
  return Write(batch, store_.AppendFromReserve(batch));
}

void CrashingStore::Flush() {
  if (unwritten_.empty()) return;
  if (crash_point_ == CrashPoint::kBeforeAppend) throw ProcessCrash{};
  const std::vector<Event> batch = std::exchange(unwritten_, {});
  const Status written = Write(batch, store_.Append(batch));
  ATTUNE_CHECK(written.ok());
}

Status CrashingStore::Write(std::span<const Event> batch, const Status& written) {
  if (!written.ok()) return written;
  appended_(batch);
  if (crash_point_ == CrashPoint::kAfterAppend) throw ProcessCrash{};
  return {};
}

Status CrashingStore::Read(EventSeq after, const std::function<void(const Event&)>& visit) const {
  const EventSeq last = store_.LastSeq();
  return store_.Read(after, [&](const Event& event) {
    const bool skip = variant_ == Variant::kForgetsRestart && event.seq == last && last.value > 1;
    if (!skip) visit(event);
  });
}

// A snapshot must not be newer than the log.
Status CrashingStore::SaveSnapshot(const server::Snapshot& snapshot) {
  if (snapshot.seq != store_.LastSeq())
    return Error{ErrorCode::kUnavailable, "the log has not been written up to the snapshot"};
  return store_.SaveSnapshot(snapshot);
}

Result<std::optional<server::Snapshot>> CrashingStore::ReadSnapshot(EventSeq at_most) const {
  if (!use_snapshots_) return std::optional<server::Snapshot>();
  return store_.ReadSnapshot(at_most);
}

}  // namespace attune::sim
