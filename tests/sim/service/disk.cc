#include "tests/sim/service/disk.h"

#include <optional>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "tests/support/memory_store.h"

namespace attune::sim {
namespace {

constexpr size_t kReserveEvents = 60;

const Error kFull{ErrorCode::kStorageFull, "the disk is full"};

class MemoryDisk final : public Disk {
 public:
  server::EventStore& store() override { return store_; }
  void SetFull(bool full) override {
    store_.full.reset();
    store_.reserve = kReserveEvents;
    if (full) store_.full = kFull;
  }

  void Restore(std::span<const Event> log) override {
    store_.events.clear();
    store_.erasures.clear();
    const auto full = std::exchange(store_.full, std::nullopt);
    const Status written = store_.Append(log);
    ATTUNE_CHECK(written.ok());
    store_.full = full;
    std::erase_if(store_.snapshots,
                  [&](const auto& snapshot) { return snapshot.first > store_.LastSeq(); });
  }

 private:
  testing::MemoryStore store_;
};

}  // namespace

std::unique_ptr<Disk> MakeMemoryDisk() { return std::make_unique<MemoryDisk>(); }

}  // namespace attune::sim
