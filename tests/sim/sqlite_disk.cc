#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "core/check.h"
#include "server/store/sqlite_store.h"
#include "tests/sim/disk.h"

namespace attune::sim {
namespace {

class SqliteDisk final : public Disk, private server::EventStore {
 public:
  SqliteDisk() {
    folder_ = std::filesystem::exists("/dev/shm") ? "/dev/shm/attune-sim-XXXXXX"
                                                  : "/tmp/attune-sim-XXXXXX";
    ATTUNE_CHECK(mkdtemp(folder_.data()) != nullptr);
    auto opened = server::SqliteStore::Open(folder_ + "/attune.db");
    ATTUNE_CHECK(opened.ok());
    store_ = std::move(opened).value();
  }
  ~SqliteDisk() override {
    store_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  server::EventStore& store() override { return *this; }
  void SetFull(bool full) override { full_ = full; }

 private:
  Status Append(std::span<const Event> batch) override {
    if (full_) return Error{ErrorCode::kStorageFull, "the disk is full"};
    return store_->Append(batch);
  }
  Status Read(EventSeq after, const std::function<void(const Event&)>& visit) const override {
    return store_->Read(after, visit);
  }
  Status SaveSnapshot(EventSeq seq, std::string_view bytes) override {
    return store_->SaveSnapshot(seq, bytes);
  }
  Result<std::optional<server::Snapshot>> ReadSnapshot(EventSeq at_most) const override {
    return store_->ReadSnapshot(at_most);
  }
  Status Probe() override {
    if (full_) return Error{ErrorCode::kStorageFull, "the disk is full"};
    return {};
  }

  std::string folder_;
  std::unique_ptr<server::SqliteStore> store_;
  bool full_ = false;
};

}  // namespace

std::unique_ptr<Disk> MakeSqliteDisk() { return std::make_unique<SqliteDisk>(); }

}  // namespace attune::sim
