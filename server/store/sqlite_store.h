#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/store/erasure.h"
#include "server/store/event_store.h"
#include "server/store/log_reserve.h"
#include "server/store/sqlite.h"
#include "server/store/tables/projection.h"

namespace attune::server {

// The size of the rows into which a snapshot is split.
inline constexpr size_t kSnapshotPartBytes = size_t{64} << 20;

// DoBackgroundWork erases or builds for this long before it commits. The commit takes about as long
// again, so a command waits at most 20 ms.
inline constexpr std::chrono::microseconds kWorkSlice{8'000};

// Open rebuilds outdated tables for at most this long, so that the tables of a small log are
// complete at once. DoBackgroundWork continues the rebuild.
inline constexpr std::chrono::microseconds kBuildAtOpen{500'000};

// The space that is reserved for kills and ends. The end of a sweep of 10,000 trials takes half of
// it.
inline constexpr int64_t kReserveBytes = int64_t{8} << 20;

// The log in one SQLite file, with the tables for people (docs/reference/database.md).
//
// Uses WAL mode with synchronous=FULL: a batch is on disk when Append returns, and readers on
// separate connections never wait for it. Any thread may call Read, and one thread all other
// methods. The log file (-wal) always contains a reserve, so that kills and ends can be stored when
// the disk is full. Append fails rather than use the reserve.
//
// The columns that reports change may be behind the log (docs/reference/database.md);
// DoBackgroundWork updates them. An event that the tables cannot take is only in the log. It is
// noted, and the next Open rebuilds the tables. DoBackgroundWork also rebuilds outdated tables
// (table_build.h) and erases deleted sweeps (erasure.h), a slice at a time.
class SqliteStore final : public EventStore {
 public:
  struct Options {
    int busy_timeout_ms = 5'000;            // how long to wait for another program's lock
    int64_t max_pages = 0;                  // size limit of the file, in pages of 4 KiB; 0: none
    int64_t reserve_bytes = kReserveBytes;  // at most 1/32 of the disk; 0: no reserve
    size_t snapshot_part_bytes = kSnapshotPartBytes;
    std::chrono::microseconds slice = kWorkSlice;
    std::chrono::microseconds build_at_open = kBuildAtOpen;
  };

  // Opens the file and creates it if it is absent. kCorrupt: it is damaged, not Attune's or of
  // another format. kDenied: it cannot be read or written. kConflict: another process has locked
  // it. kStorageFull. Each message names the file and the remedy.
  static Result<std::unique_ptr<SqliteStore>> Open(const std::string& path, Options options);
  static Result<std::unique_ptr<SqliteStore>> Open(const std::string& path) {
    return Open(path, Options());
  }

  // Errors of writes: kUnsynced if syncing failed, kUnavailable while another program holds a lock,
  // kStorageFull for every other error.
  ~SqliteStore() override;

  Status Append(std::span<const Event> batch) override;
  Status AppendFromReserve(std::span<const Event> batch) override;
  Status Read(EventSeq after, const std::function<void(const Event&)>& visit) const override;

  Status SaveSnapshot(const Snapshot& snapshot) override;
  Result<std::optional<Snapshot>> ReadSnapshot(EventSeq at_most) const override;
  Result<std::string> ReadEnded(const EndedSweepData& part) const override;

  bool DoBackgroundWork() override;
  bool NeedsSnapshot() const override { return erasures_.waiting; }

  // Checks for space for kProbeBytes more and the reserve: writes that much to the disk and rolls
  // it back.
  Status Probe() override;

  // Rebuilds the tables for people from the log.
  Status Rebuild();

  // Whether tables are being rebuilt. They must not be read meanwhile.
  bool IsBuilding() const { return built_.has_value(); }

  EventSeq LastSeq() const override { return last_seq_; }
  const std::string& path() const { return path_; }

 private:
  Status Write(std::span<const Event> batch, Projection::ErrorMode mode);
  Status GrowLog();
  Status WriteAndRollBack(int64_t bytes);
  Status CompleteTables();
  bool EraseSlice();
  Status BeginBuilding();
  void ContinueBuilding(EventSeq built);
  Status BuildSlice();
  EventSeq BuildSome(sqlite::Transaction& transaction, EventSeq built);
  static void SaveEndedParts(sqlite::Transaction& transaction, const Snapshot& snapshot);

  SqliteStore(std::string path, Options options, std::unique_ptr<sqlite::Connection> connection);

  std::string path_;
  Options options_;
  LogReserve reserve_;
  std::unique_ptr<sqlite::Connection> connection_;
  Projection projection_;
  EventSeq last_seq_{0};
  Erasures erasures_;
  int checkpoint_pages_;           // pages of the log file at which it is copied into the database
  std::optional<EventSeq> built_;  // the last event in the new tables while they are built
};

// The size of a probe: that of a large batch, so that the next batch fits after a successful probe.
inline constexpr int64_t kProbeBytes = 1 << 20;

}  // namespace attune::server
