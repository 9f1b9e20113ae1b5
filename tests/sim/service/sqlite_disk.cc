#include <memory>
#include <string>

#include "base/check.h"
#include "base/result.h"
#include "server/store/sqlite_store.h"
#include "tests/sim/service/disk.h"
#include "tests/support/scratch_folder.h"

namespace attune::sim {
namespace {

class SqliteDisk final : public Disk, private server::EventStore {
 public:
  SqliteDisk() : store_(server::SqliteStore::Open(folder_ / "attune.db").value()) {}
  server::EventStore& store() override { return *this; }
  void SetFull(bool full) override { full_ = full; }
  void Restore(std::span<const Event> log) override {
    store_ =
        server::SqliteStore::Open(folder_ / ("restored-" + std::to_string(++restores_))).value();
    const Status written = store_->Append(log);
    ATTUNE_CHECK(written.ok());
  }

 private:
  Status Append(std::span<const Event> batch) override {
    if (full_) return Error{ErrorCode::kStorageFull, "the disk is full"};
    return store_->Append(batch);
  }
  Status AppendFromReserve(std::span<const Event> batch) override {
    return store_->AppendFromReserve(batch);
  }
  EventSeq LastSeq() const override { return store_->LastSeq(); }
  Status Read(EventSeq after, const std::function<void(const Event&)>& visit) const override {
    return store_->Read(after, visit);
  }
  Status SaveSnapshot(const server::Snapshot& snapshot) override {
    return store_->SaveSnapshot(snapshot);
  }
  Result<std::optional<server::Snapshot>> ReadSnapshot(EventSeq at_most) const override {
    return store_->ReadSnapshot(at_most);
  }
  Result<std::string> ReadEnded(const EndedSweepData& part) const override {
    return store_->ReadEnded(part);
  }
  Status Probe() override {
    if (full_) return Error{ErrorCode::kStorageFull, "the disk is full"};
    return {};
  }
  bool DoBackgroundWork() override { return !full_ && store_->DoBackgroundWork(); }
  bool NeedsSnapshot() const override { return store_->NeedsSnapshot(); }

  attune::testing::ScratchFolder folder_;
  std::unique_ptr<server::SqliteStore> store_;
  int restores_ = 0;
  bool full_ = false;
};

}  // namespace

std::unique_ptr<Disk> MakeSqliteDisk() { return std::make_unique<SqliteDisk>(); }

}  // namespace attune::sim
