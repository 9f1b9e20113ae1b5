#include "tests/sim/service/disk.h"

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

  void Restore(EventSeq last) override {
    store_.events.resize(last.value);
    std::erase_if(store_.snapshots, [&](const auto& snapshot) { return snapshot.first > last; });
  }

 private:
  testing::MemoryStore store_;
};

}  // namespace

std::unique_ptr<Disk> MakeMemoryDisk() { return std::make_unique<MemoryDisk>(); }

}  // namespace attune::sim
