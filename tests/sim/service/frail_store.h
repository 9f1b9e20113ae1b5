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

// The process is dead from here on: thrown through whatever it was in the midst of.
struct Death {};

// At which of its moves a process dies.
enum class DeathPoint { kBeforeAppend, kAfterAppend, kAfterAnswers, kBetweenBatches };

// A process's way to its log: it may die there.
class FrailStore final : public server::EventStore {
 public:
  // `appended` is told of what has become durable. The store outlives the object.
  using Appended = std::function<void(std::span<const Event>)>;
  FrailStore(server::EventStore& store, Variant variant, Appended appended)
      : store_(store), variant_(variant), appended_(std::move(appended)) {}

  void DieAt(std::optional<DeathPoint> point) { dies_at_ = point; }
  // For a new process.
  void Open(bool use_snapshots);

  // In kActsBeforeAppend: what the process thinks it has appended.
  void Flush();

  Status Append(std::span<const Event> batch) override;
  Status AppendFromReserve(std::span<const Event> batch) override;
  EventSeq LastSeq() const override { return store_.LastSeq(); }
  Status Read(EventSeq after, const std::function<void(const Event&)>& visit) const override;
  Status SaveSnapshot(const server::Snapshot& snapshot) override;
  Result<std::optional<server::Snapshot>> ReadSnapshot(EventSeq at_most) const override;
  Result<std::string> ReadEnded(const EndedPart& part) const override {
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
  std::optional<DeathPoint> dies_at_;
  bool use_snapshots_ = false;
  std::vector<Event> unwritten_;
};

}  // namespace attune::sim
