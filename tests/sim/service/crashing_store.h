#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/store/event_store.h"
#include "tests/sim/variant.h"

namespace attune::sim {

// The exception that stands for the crash of a process. It unwinds the current step of the process.
struct ProcessCrash {};

// The points in a step at which a process may crash.
enum class CrashPoint { kBeforeAppend, kAfterAppend, kAfterAnswers, kBetweenBatches };

// A process's access to its log. The process may crash in a call.
class CrashingStore final : public server::EventStore {
 public:
  // Calls `appended` with the events that have become durable. The store must outlive this object.
  using Appended = std::function<void(std::span<const Event>)>;
  CrashingStore(server::EventStore& store, Variant variant, Appended appended)
      : store_(store), variant_(variant), appended_(std::move(appended)) {}

  void CrashAt(std::optional<CrashPoint> point) { crash_point_ = point; }
  // Must be called for each new process.
  void Open(bool use_snapshots);

  // In kActsBeforeAppend: writes the batch that Append only remembered.
  void Flush();

  Status Append(std::span<const Event> batch) override;
  Status AppendFromReserve(std::span<const Event> batch) override;
  EventSeq LastSeq() const override { return store_.LastSeq(); }
  Status Read(EventSeq after, const std::function<void(const Event&)>& visit) const override;
  Status SaveSnapshot(const server::Snapshot& snapshot) override;
  Result<std::optional<server::Snapshot>> ReadSnapshot(EventSeq at_most) const override;
  Result<std::string> ReadEnded(const EndedSweepData& part) const override {
    return store_.ReadEnded(part);
  }
  Status Probe() override { return store_.Probe(); }
  bool DoBackgroundWork() override { return store_.DoBackgroundWork(); }
  bool NeedsSnapshot() const override { return store_.NeedsSnapshot(); }

 private:
  Status Write(std::span<const Event> batch, const Status& written);

  server::EventStore& store_;
  const Variant variant_;
  const Appended appended_;
  std::optional<CrashPoint> crash_point_;
  bool use_snapshots_ = false;
  std::vector<Event> unwritten_;
};

}  // namespace attune::sim
