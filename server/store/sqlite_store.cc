#include "server/store/sqlite_store.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "base/result.h"
#include "server/store/event_log.h"
#include "server/store/schema.h"
#include "server/store/tables/table_build.h"
#include "system/system_error.h"

namespace attune::server {
namespace {

// This cache holds the rows of about ten thousand running trials.
const char* const kCache = "PRAGMA cache_size = -32768";  // KiB

// The size of the log file at which it is copied into the database: 16 MiB. A page that many
// batches change is then copied only once.
constexpr int kCheckpointPages = 4096;
constexpr int kBackgroundCheckpointPages = 512;

constexpr int64_t kReserveShare = 32;  // the reserve takes at most this fraction of the disk

constexpr int kSnapshotsKept = 2;

using Clock = std::chrono::steady_clock;

constexpr uint64_t kBuildBatch = 1024;  // events per step: a few milliseconds

// With a cache this small, the pages of the probe reach the disk before the rollback.
constexpr int kProbeCachePages = 16;
constexpr int kPageBytes = 4096;

// Explains an error of opening the database to people.
Error Explain(const std::string& path, const Error& error) {
  switch (error.code) {
    case ErrorCode::kUnavailable:
      return {ErrorCode::kConflict, path +
                                        " is locked by another process; end it, or choose another "
                                        "data folder (" +
                                        error.message + ")"};
    case ErrorCode::kDenied:
      return {ErrorCode::kDenied, path +
                                      " cannot be opened for writing; check the owner and the mode "
                                      "of the file and its folder (" +
                                      error.message + ")"};
    case ErrorCode::kStorageFull:
      return {ErrorCode::kStorageFull, "no space is left to write " + path +
                                           "; free some disk space (" + error.message + ")"};
    case ErrorCode::kCorrupt:
      if (error.message.find(path) != std::string::npos) return error;
      return {ErrorCode::kCorrupt, path +
                                       " is damaged or is not a database; restore it from a backup "
                                       "or choose another data folder (" +
                                       error.message + ")"};
    default:
      return {error.code, path + ": " + error.message};
  }
}

// Whether this event allows to erase the events of its sweep.
bool IsErasable(const Event& event) {
  const auto* deleted = std::get_if<SweepDeleted>(&event.fact);
  return deleted != nullptr && deleted->shared;
}

// Sets the connection up for background work during its lifetime, so that no slice takes long:
// - A commit does not wait for the disk. If the machine fails, the slice is lost and done again. It
//   never survives without the commits before it, because all are in the same log file.
// - The log file is copied into the database in small parts.
class BackgroundWork {
 public:
  enum class Deleted {
    kStays,        // it stays in free pages
    kOverwritten,  // it is overwritten with zeros
  };
  // `checkpoint_pages`: SqliteStore::checkpoint_pages_.
  // REQUIRES: the connection is in no transaction at the begin and end of this object's life.
  BackgroundWork(sqlite::Connection& connection, int& checkpoint_pages, Deleted deleted)
      : connection_(connection),
        checkpoint_pages_(checkpoint_pages),
        secure_delete_before_(connection.Number("PRAGMA secure_delete").value()) {
    Set("NORMAL", kBackgroundCheckpointPages, deleted == Deleted::kOverwritten ? 1 : 0);
  }
  ~BackgroundWork() { Set("FULL", kCheckpointPages, secure_delete_before_); }
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;

 private:
  // If the setting cannot be restored to FULL, the process must end: its next commit might not be
  // durable.
  void Set(const std::string& synchronous, int checkpoint_pages, int64_t secure_delete) {
    const Status set =
        connection_.Execute("PRAGMA synchronous = " + synchronous +
                            "; PRAGMA wal_autocheckpoint = " + std::to_string(checkpoint_pages) +
                            "; PRAGMA secure_delete = " + std::to_string(secure_delete));
    ATTUNE_CHECK(set.ok());
    checkpoint_pages_ = checkpoint_pages;
  }

  sqlite::Connection& connection_;
  int& checkpoint_pages_;
  const int64_t secure_delete_before_;
};

// Adds the path to an error after opening.
Error WithPath(const std::string& path, const Error& error) {
  if (error.code == ErrorCode::kCorrupt) return Explain(path, error);
  return {error.code, path + ": " + error.message};
}

Status Prepare(sqlite::Connection& connection, const std::string& path,
               const SqliteStore::Options& options) {
  // The first statement that reads the file finds damage. WAL mode then needs write access.
  if (auto read = connection.Number("SELECT count(*) FROM sqlite_schema"); !read.ok())
    return read.error();
  if (sqlite3_db_readonly(connection.handle(), "main") == 1)
    return Error{ErrorCode::kDenied, "the file is read-only"};
  for (const std::string& pragma :
       {std::string("PRAGMA journal_mode = WAL"), std::string("PRAGMA synchronous = FULL"),
        std::string("PRAGMA journal_size_limit = 67108864"), std::string(kCache)}) {
    if (Status set = connection.Execute(pragma); !set.ok()) return set;
  }
  if (options.max_pages > 0) {
    const Status set =
        connection.Execute("PRAGMA max_page_count = " + std::to_string(options.max_pages));
    if (!set.ok()) return set;
  }
  return PrepareSchema(connection, path);
}

int64_t ReserveFor(const std::string& path, const SqliteStore::Options& options) {
  if (options.max_pages > 0) return 0;  // the limit counts the reserve as used
  std::error_code failed;
  const std::filesystem::space_info space =
      std::filesystem::space(std::filesystem::absolute(path).parent_path(), failed);
  if (failed) return 0;
  return std::min<int64_t>(options.reserve_bytes,
                           static_cast<int64_t>(space.capacity) / kReserveShare);
}

}  // namespace

SqliteStore::SqliteStore(std::string path, Options options,
                         std::unique_ptr<sqlite::Connection> connection)
    : path_(std::move(path)),
      options_(options),
      reserve_(path_, ReserveFor(path_, options)),
      connection_(std::move(connection)),
      checkpoint_pages_(kCheckpointPages) {
  // This replaces SQLite's own hook (PRAGMA wal_autocheckpoint), which only makes checkpoints.
  sqlite3_wal_hook(
      connection_->handle(),
      [](void* of, sqlite3* db, const char* name, int pages) {
        auto& store = *static_cast<SqliteStore*>(of);
        store.reserve_.SetPages(pages);
        if (pages >= store.checkpoint_pages_) sqlite3_wal_checkpoint(db, name);
        return SQLITE_OK;
      },
      this);
}

SqliteStore::~SqliteStore() { sqlite3_wal_hook(connection_->handle(), nullptr, nullptr); }

Result<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& path, Options options) {
  auto connection = sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadWriteCreate,
                                             options.busy_timeout_ms);
  if (!connection.ok()) return Explain(path, connection.error());
  if (Status ready = Prepare(**connection, path, options); !ready.ok())
    return Explain(path, ready.error());
  const auto last = (*connection)->Number("SELECT max(seq) FROM events");
  if (!last.ok()) return Explain(path, last.error());

  std::unique_ptr<SqliteStore> store(new SqliteStore(path, options, std::move(connection).value()));
  store->last_seq_ = EventSeq(static_cast<uint64_t>(*last));
  const auto erasures = ReadErasures(*store->connection_);
  if (!erasures.ok()) return Explain(path, erasures.error());
  store->erasures_ = *erasures;
  const auto built = BuildPosition(*store->connection_);
  if (!built.ok()) return Explain(path, built.error());
  if (*built) store->ContinueBuilding(**built);
  if (Status mended = store->CompleteTables(); !mended.ok()) return Explain(path, mended.error());
  const auto until = Clock::now() + store->options_.build_at_open;
  while (store->IsBuilding() && Clock::now() < until) {
    if (Status slice = store->BuildSlice(); !slice.ok()) return Explain(path, slice.error());
  }
  return store;
}

// Completes work on the tables that an earlier process has left.
Status SqliteStore::CompleteTables() {
  if (IsBuilding()) return {};
  const auto unshown = connection_->Number("SELECT count(*) FROM unshown WHERE retry");
  if (!unshown.ok() && !Projection::IsTableError(unshown.error())) return unshown.error();
  if (!unshown.ok() || *unshown > 0) return BeginBuilding();
  const auto behind = connection_->Number("SELECT count(*) FROM behind");
  if (!behind.ok()) return behind.error();
  if (*behind == 0) return {};
  Status caught_up;
  {
    sqlite::Transaction transaction(*connection_, sqlite::Transaction::Kind::kWrite);
    projection_.CatchUp(transaction, last_seq_, Projection::ErrorMode::kStop);
    projection_.WriteAll(transaction, last_seq_);
    caught_up = transaction.Commit();
  }
  if (!caught_up.ok() && Projection::IsTableError(caught_up.error())) return BeginBuilding();
  return caught_up;
}

Status SqliteStore::Append(std::span<const Event> batch) {
  if (batch.empty()) return {};
  if (!reserve_.IsThere()) {
    const Status grown = GrowLog();
    if (!grown.ok() && !reserve_.IsThere()) return grown;
  }
  return AppendFromReserve(batch);
}

// SQLite ignores bytes after the last page of its log file.
Status SqliteStore::GrowLog() {
  const int failed = reserve_.Allocate();
  if (IsStorageFull(failed))
    return Explain(path_, {ErrorCode::kStorageFull, std::strerror(failed)});
  // Only a write extends the index. It also creates the log file if there is none.
  if (failed == 0 && reserve_.ReadIndex()) return {};
  const Status written = WriteAndRollBack(reserve_.bytes());
  reserve_.ReadIndex();
  return written;
}

Status SqliteStore::AppendFromReserve(std::span<const Event> batch) {
  if (batch.empty()) return {};
  Status written = Write(batch, Projection::ErrorMode::kStop);
  if (!written.ok() && Projection::IsTableError(written.error()))
    written = Write(batch, Projection::ErrorMode::kSkip);
  if (!written.ok()) return WithPath(path_, written.error());
  last_seq_ = batch.back().seq;
  erasures_.waiting |= std::ranges::any_of(batch, IsErasable);
  return {};
}

Status SqliteStore::Write(std::span<const Event> batch, Projection::ErrorMode mode) {
  Status written;
  {
    sqlite::Transaction transaction(*connection_, sqlite::Transaction::Kind::kWrite);
    uint64_t expected = last_seq_.value;
    for (const Event& event : batch) {
      ATTUNE_CHECK(event.seq.value == ++expected);
      AppendRow(transaction, event);
      if (IsErasable(event)) AddErasure(transaction, *SweepOf(event.fact), event.seq);
      if (!transaction.status().ok()) break;
    }
    if (!IsBuilding()) projection_.Apply(transaction, batch, last_seq_, batch.back().seq, mode);
    written = transaction.Commit();
  }
  if (!written.ok() && !IsBuilding()) projection_.Forget();
  return written;
}

bool SqliteStore::DoBackgroundWork() {
  if (IsBuilding()) {
    const Status built = BuildSlice();
    return built.ok() && (IsBuilding() || projection_.IsBehind() || erasures_.begun);
  }
  if (!projection_.IsBehind()) return EraseSlice();
  sqlite::Transaction transaction(*connection_, sqlite::Transaction::Kind::kWrite);
  projection_.WriteSome(transaction, last_seq_);
  if (!transaction.Commit().ok()) projection_.Forget();  // the next batch reads the state again
  return projection_.IsBehind() || erasures_.begun;
}

bool SqliteStore::EraseSlice() {
  if (!erasures_.begun) return false;
  const auto until = Clock::now() + options_.slice;
  const BackgroundWork work(*connection_, checkpoint_pages_, BackgroundWork::Deleted::kOverwritten);
  sqlite::Transaction transaction(*connection_, sqlite::Transaction::Kind::kWrite);
  const bool more = EraseSome(transaction, [&] { return Clock::now() >= until; });
  if (!transaction.Commit().ok()) return false;  // retried after the next batch
  erasures_.begun = more;
  return more;
}

Status SqliteStore::Read(EventSeq after, const std::function<void(const Event&)>& visit) const {
  auto connection = sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadOnly,
                                             options_.busy_timeout_ms);
  if (!connection.ok()) return Explain(path_, connection.error());
  if (Status read = ReadLog(**connection, after, visit); !read.ok())
    return WithPath(path_, read.error());
  return {};
}

Status SqliteStore::SaveSnapshot(const Snapshot& snapshot) {
  ATTUNE_CHECK(snapshot.seq == last_seq_);
  const EventSeq seq = snapshot.seq;
  std::optional<BackgroundWork> work;
  if (erasures_.waiting)
    work.emplace(*connection_, checkpoint_pages_, BackgroundWork::Deleted::kOverwritten);
  sqlite::Transaction transaction(*connection_, sqlite::Transaction::Kind::kWrite);
  // Snapshots ahead of the log belong to another log.
  transaction.Run("DELETE FROM snapshots WHERE seq >= ?", seq.value);
  SaveEndedParts(transaction, snapshot);
  std::string_view bytes = snapshot.bytes;
  int64_t part = 0;
  do {
    const std::string_view piece = bytes.substr(0, options_.snapshot_part_bytes);
    transaction.Run("INSERT INTO snapshots (seq, part, payload) VALUES (?, ?, ?)", seq.value,
                    part++, sqlite::Blob{piece});
    bytes.remove_prefix(piece.size());
  } while (!bytes.empty());
  transaction.Run(
      "DELETE FROM snapshots WHERE seq NOT IN"
      " (SELECT DISTINCT seq FROM snapshots ORDER BY seq DESC LIMIT ?)",
      kSnapshotsKept);
  BeginErasures(transaction, seq);
  transaction.Run("DELETE FROM ended_sweeps WHERE until <= (SELECT min(seq) FROM snapshots)");
  if (Status written = transaction.Commit(); !written.ok()) return WithPath(path_, written.error());
  erasures_.begun |= erasures_.waiting;
  erasures_.waiting = false;
  return {};
}

// Parts that this snapshot does not name are only needed by older snapshots.
void SqliteStore::SaveEndedParts(sqlite::Transaction& transaction, const Snapshot& snapshot) {
  transaction.Run("UPDATE ended_sweeps SET until = ? WHERE until IS NULL OR until >= ?",
                  snapshot.seq.value, snapshot.seq.value);
  for (const EndedSweepData& part : snapshot.ended) {
    const auto mark = static_cast<int64_t>(part.mark);
    if (!part.bytes.empty())
      transaction.Run("INSERT OR REPLACE INTO ended_sweeps (sweep, mark, payload) VALUES (?, ?, ?)",
                      part.sweep.value, mark, sqlite::Blob{part.bytes});
    transaction.Run("UPDATE ended_sweeps SET until = NULL WHERE sweep = ? AND mark = ?",
                    part.sweep.value, mark);
  }
}

Result<std::optional<Snapshot>> SqliteStore::ReadSnapshot(EventSeq at_most) const {
  auto connection = sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadOnly,
                                             options_.busy_timeout_ms);
  if (!connection.ok()) return Explain(path_, connection.error());
  std::optional<Snapshot> snapshot;
  sqlite::Rows rows = (*connection)
                          ->Query(
                              "SELECT seq, payload FROM snapshots WHERE seq ="
                              " (SELECT max(seq) FROM snapshots WHERE seq <= ? AND seq <="
                              "  (SELECT max(seq) FROM events)) ORDER BY part",
                              at_most.value);
  while (rows.Next()) {
    if (!snapshot) snapshot = {.seq = EventSeq(static_cast<uint64_t>(rows.Integer(0)))};
    snapshot->bytes += rows.Bytes(1);
  }
  if (!rows.status().ok()) return WithPath(path_, rows.status().error());
  if (!snapshot) return snapshot;
  sqlite::Rows kept = (*connection)->Query("SELECT sweep, mark FROM ended_sweeps");
  while (kept.Next())
    snapshot->ended.push_back({.sweep = SweepId(static_cast<uint64_t>(kept.Integer(0))),
                               .mark = static_cast<uint64_t>(kept.Integer(1))});
  if (!kept.status().ok()) return WithPath(path_, kept.status().error());
  return snapshot;
}

Result<std::string> SqliteStore::ReadEnded(const EndedSweepData& part) const {
  auto connection = sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadOnly,
                                             options_.busy_timeout_ms);
  if (!connection.ok()) return Explain(path_, connection.error());
  sqlite::Rows rows = (*connection)
                          ->Query("SELECT payload FROM ended_sweeps WHERE sweep = ? AND mark = ?",
                                  part.sweep.value, static_cast<int64_t>(part.mark));
  if (rows.Next()) return std::string(rows.Bytes(0));
  if (!rows.status().ok()) return WithPath(path_, rows.status().error());
  return Error{ErrorCode::kNotFound,
               path_ + " does not contain the final state of sweep " + ToString(part.sweep)};
}

Status SqliteStore::Probe() { return WriteAndRollBack(kProbeBytes + reserve_.bytes()); }

// The pages remain in the log file, whose next write starts at the earlier position.
Status SqliteStore::WriteAndRollBack(int64_t bytes) {
  // A transaction that is rolled back stays in memory unless it outgrows the page cache. With a
  // small cache its pages go to the log file, which reveals a full disk.
  if (Status small =
          connection_->Execute("PRAGMA cache_size = " + std::to_string(kProbeCachePages));
      !small.ok())
    return small;
  Status written;
  {
    sqlite::Transaction transaction(*connection_, sqlite::Transaction::Kind::kWrite);
    transaction.Run("CREATE TABLE probe (bytes BLOB)");
    transaction.Run("INSERT INTO probe VALUES (zeroblob(?))",
                    bytes + kProbeCachePages * kPageBytes);
    written = transaction.status();
  }
  if (Status normal = connection_->Execute(kCache); !normal.ok()) return normal;
  if (!written.ok()) return WithPath(path_, written.error());
  return {};
}

// ---- Rebuilding the tables -----------------------------------------------------------------

Status SqliteStore::Rebuild() {
  if (Status begun = BeginBuilding(); !begun.ok()) return begun;
  while (IsBuilding()) {
    if (Status built = BuildSlice(); !built.ok()) return built;
  }
  while (projection_.IsBehind()) DoBackgroundWork();
  return {};
}

Status SqliteStore::BeginBuilding() {
  sqlite::Transaction transaction(*connection_, sqlite::Transaction::Kind::kWrite);
  BeginBuild(transaction);
  if (Status begun = transaction.Commit(); !begun.ok()) return begun;
  const auto built = BuildPosition(*connection_);
  if (!built.ok()) return built.error();
  ContinueBuilding(built->value());
  return {};
}

void SqliteStore::ContinueBuilding(EventSeq built) {
  built_ = built;
  connection_->SetTablePrefix(kNextTables);
  projection_.Forget();
  projection_.SetRebuilding(true);
}

Status SqliteStore::BuildSlice() {
  const auto until = Clock::now() + options_.slice;
  const BackgroundWork work(*connection_, checkpoint_pages_, BackgroundWork::Deleted::kStays);
  EventSeq built = *built_;
  Status written;
  {
    sqlite::Transaction transaction(*connection_, sqlite::Transaction::Kind::kWrite);
    do {
      built = BuildSome(transaction, built);
    } while (transaction.status().ok() && built < last_seq_ && Clock::now() < until);
    SaveBuildPosition(transaction, built);
    if (built == last_seq_) FinishBuild(transaction);
    written = transaction.Commit();
  }
  if (!written.ok()) {
    projection_.Forget();
    return written;
  }
  built_ = built;
  if (built < last_seq_) return {};
  built_.reset();
  connection_->SetTablePrefix("");
  projection_.SetRebuilding(false);
  return {};
}

EventSeq SqliteStore::BuildSome(sqlite::Transaction& transaction, EventSeq built) {
  const EventSeq last(std::min(built.value + kBuildBatch, last_seq_.value));
  std::vector<Event> batch;
  const Status read = ReadLog(transaction.connection(), built, last,
                              [&](const Event& event) { batch.push_back(event); });
  if (!read.ok()) transaction.Fail(read.error());
  projection_.Apply(transaction, batch, built, last, Projection::ErrorMode::kSkip);
  return last;
}

}  // namespace attune::server
