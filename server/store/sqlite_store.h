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

// A snapshot lies in rows of so many bytes.
inline constexpr size_t kSnapshotPartBytes = size_t{64} << 20;

// DoBackgroundWork erases or builds for so long before it commits, which takes about as long again:
// a command that comes meanwhile waits for 20 ms at most.
inline constexpr std::chrono::microseconds kTidySlice{8'000};

// Tables of another form are rebuilt for so long before Open returns, so that those of a small
// log are there at once. DoBackgroundWork continues.
inline constexpr std::chrono::microseconds kBuildAtOpen{500'000};

// What is kept back for kills and ends: the end of a sweep of 10,000 trials takes half of it.
inline constexpr int64_t kReserveBytes = int64_t{8} << 20;

// The log in one SQLite file, with the tables for people (docs/reference/database.md) beside it.
//
// WAL mode with synchronous=FULL: a batch is on disk when Append returns, and readers on their own
// connections never wait for it. Reading: any thread; the rest: one thread.
// The log file (-wal) always has room for a reserve, so that kills and ends can be stored when the
// disk is full: Append fails before it would use that up.
//
// What reports change in the tables may be behind the log (docs/reference/database.md);
// DoBackgroundWork brings it up. An event that the tables cannot take is in the log alone: it is
// noted, and when the file is opened again the tables are rebuilt. DoBackgroundWork also rebuilds
// tables of another form (table_build.h) and erases deleted sweeps (erasure.h), a slice at a time.
class SqliteStore final : public EventStore {
 public:
  struct Options {
    int busy_timeout_ms = 5'000;            // how long another program may hold a lock on the file
    int64_t max_pages = 0;                  // size limit of the file, in pages of 4 KiB; 0: none
    int64_t reserve_bytes = kReserveBytes;  // at most a 32nd of the disk; 0: there is no reserve
    size_t snapshot_part_bytes = kSnapshotPartBytes;
    std::chrono::microseconds slice = kTidySlice;
    std::chrono::microseconds build_at_open = kBuildAtOpen;
  };

  // Creates the file if it is absent. Errors: kCorrupt (damaged, not Attune's, another format),
  // kDenied (may not be read or written), kConflict (locked by another process), kStorageFull. Each
  // message names the file and the remedy.
  static Result<std::unique_ptr<SqliteStore>> Open(const std::string& path, Options options);
  static Result<std::unique_ptr<SqliteStore>> Open(const std::string& path) {
    return Open(path, Options());
  }

  // kStorageFull for every error in writing, kUnsynced for one in syncing; kUnavailable while
  // another program holds a lock.
  ~SqliteStore() override;

  Status Append(std::span<const Event> batch) override;
  Status AppendFromReserve(std::span<const Event> batch) override;
  Status Read(EventSeq after, const std::function<void(const Event&)>& visit) const override;

  Status SaveSnapshot(const Snapshot& snapshot) override;
  Result<std::optional<Snapshot>> ReadSnapshot(EventSeq at_most) const override;
  Result<std::string> ReadEnded(const EndedPart& part) const override;

  bool DoBackgroundWork() override;
  bool NeedsSnapshot() const override { return erasures_.waiting; }

  // Room for kProbeBytes more, and for the reserve: they are written to the disk and rolled back.
  Status Probe() override;

  // Rebuilds the tables for people from the log.
  Status Rebuild();

  // Whether tables are being built. Until they are there, nothing may be read from them.
  bool IsBuilding() const { return built_.has_value(); }

  EventSeq LastSeq() const override { return last_seq_; }
  const std::string& path() const { return path_; }

 private:
  Status Write(std::span<const Event> batch, Projection::Care care);
  Status GrowLog();
  Status WriteAndRollBack(int64_t bytes);
  Status MendTables();
  bool EraseSlice();
  Status BeginBuilding();
  void ContinueBuilding(EventSeq built);
  Status BuildSlice();
  EventSeq BuildSome(sqlite::Transaction& transaction, EventSeq built);
  static void KeepEnded(sqlite::Transaction& transaction, const Snapshot& snapshot);

  SqliteStore(std::string path, Options options, std::unique_ptr<sqlite::Connection> connection);

  std::string path_;
  Options options_;
  LogReserve reserve_;
  std::unique_ptr<sqlite::Connection> connection_;
  Projection projection_;
  EventSeq last_seq_{0};
  Erasures erasures_;
  int checkpoint_pages_;           // of the log file, at which it is copied into the database
  std::optional<EventSeq> built_;  // the last event that new tables know, while they are built
};

// What Probe asks for: a large batch, so that a store that says yes takes the next one.
inline constexpr int64_t kProbeBytes = 1 << 20;

}  // namespace attune::server
