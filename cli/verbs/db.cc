#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/result.h"
#include "cli/algorithms.h"
#include "cli/verbs/verb.h"
#include "server/folder/log_mark.h"
#include "server/store/offline/check.h"
#include "server/store/offline/export.h"
#include "server/store/offline/offline.h"
#include "system/files.h"

namespace attune::cli {
namespace {

namespace fs = std::filesystem;

// The flags of every verb on a database.
struct DbFlags {
  std::string data_dir = "attune-data";

  void AddTo(CLI::App& verb) {
    verb.add_option("--data-dir", data_dir, "data folder, or a database itself")
        ->type_name("DIR|FILE")
        ->capture_default_str();
  }

  // The option names a data folder, or a database itself.
  std::string database() const {
    std::error_code error;
    return fs::is_directory(data_dir, error) ? (fs::path(data_dir) / "attune.db").string()
                                             : data_dir;
  }
};

struct DbCheckFlags : DbFlags {
  bool decisions = false;

  void AddTo(CLI::App& verb) {
    DbFlags::AddTo(verb);
    verb.add_flag("--decisions", decisions, "derive every proposal and verdict again");
  }
};

ExitCode Check(const DbCheckFlags& flags, Console& console) {
  auto findings = server::CheckDatabase(flags.database());
  if (!findings.ok()) return Fail(console, findings.error());
  if (flags.decisions) {
    auto decisions = server::CheckDecisions(flags.database(), AllAlgorithms());
    if (!decisions.ok()) return Fail(console, decisions.error());
    findings->push_back(*std::move(decisions));
  }
  bool sound = true;
  for (const server::Finding& finding : *findings) {
    const std::string about = finding.what + ": " + finding.seen;
    if (finding.fault) {
      sound = false;
      console.out.Print("bad  " + about + ": " + *finding.fault);
    } else {
      console.out.Print("ok   " + about);
    }
  }
  return sound ? ExitCode::kSuccess : ExitCode::kFailure;
}

struct DbBackupFlags : DbFlags {
  std::string file;

  void AddTo(CLI::App& verb) {
    DbFlags::AddTo(verb);
    verb.add_option("FILE", file, "the new file")->required();
  }
};

ExitCode Backup(const DbBackupFlags& flags, Console& console) {
  const Status done = server::Backup(flags.database(), flags.file);
  if (!done.ok()) return Fail(console, done.error());
  std::error_code error;
  console.err.Print("wrote " + flags.file + ", " +
                    std::to_string(fs::file_size(flags.file, error)) + " bytes, and checked it");
  return ExitCode::kSuccess;
}

struct DbRestoreFlags {
  std::string data_dir = "attune-data";
  std::string file;

  void AddTo(CLI::App& verb) {
    verb.add_option("FILE", file, "a file that `attune db backup` has written")->required();
    verb.add_option("--data-dir", data_dir, "data folder; made if it is missing")
        ->type_name("DIR")
        ->capture_default_str();
  }
};

// The mark comes before the database: if this process dies in between, the next server takes a
// complete log for a restored one, which does no harm.
ExitCode Restore(const DbRestoreFlags& flags, Console& console) {
  std::error_code error;
  const fs::path data_dir = fs::absolute(flags.data_dir, error).lexically_normal();
  fs::create_directories(data_dir, error);
  const Result<UniqueFd> lock = LockFile(data_dir / "lock", kPrivate);
  if (!lock.ok() && lock.error().code == ErrorCode::kConflict)
    return Fail(console, {ErrorCode::kConflict, "a server uses the data folder " +
                                                    data_dir.string() + ": stop it first"});
  if (!lock.ok()) return Fail(console, lock.error());
  const std::string database = (data_dir / "attune.db").string();
  const std::string copy = database + ".restoring";
  fs::remove(copy, error);  // of a restore that was cut off
  if (const Status copied = server::Backup(flags.file, copy); !copied.ok())
    return Fail(console, copied.error());
  if (const Status marked = server::LogMarkFile(data_dir).WriteReplaced(); !marked.ok())
    return Fail(console, marked.error());
  const Result<std::string> kept = server::Replace(database, copy);
  if (!kept.ok()) return Fail(console, kept.error());
  if (const Status synced = SyncFolder(data_dir); !synced.ok())
    return Fail(console, synced.error());
  console.err.Print(database + " is what " + flags.file + " has; start the server again" +
                    (kept->empty() ? "" : "\nthe database before it is " + *kept));
  return ExitCode::kSuccess;
}

Error CannotWrite(const std::string& file, int code) {
  return {ErrorCode::kUnavailable, "cannot write " + file + ": " + std::strerror(code)};
}

// Where rows go: to stdout, or to a file that is written aside and has its name when it is whole.
// What is no plain file, such as a pipe, is written where it is.
class Rows {
 public:
  Rows(const std::string& file, Output& out) : file_(file), out_(out) {
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    aside_ = fs::exists(status) && !fs::is_regular_file(status) ? file : file + ".part";
  }
  ~Rows() {
    std::error_code error;
    if (stream_.is_open() && aside_ != file_) fs::remove(aside_, error);
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  Status Open() {
    if (file_.empty()) return {};
    errno = 0;
    stream_.open(aside_);
    if (!stream_) return CannotWrite(aside_, errno);
    return {};
  }

  void Write(std::string_view line) {
    if (file_.empty()) {
      out_.Print(line);
    } else {
      stream_ << line << '\n';
    }
  }

  Status Finish() {
    if (file_.empty()) return {};
    if (!stream_.flush())
      return Error{ErrorCode::kStorageFull, "cannot write all of " + file_ + ": is its disk full?"};
    std::error_code error;
    if (aside_ != file_) fs::rename(aside_, file_, error);
    return error ? Status(CannotWrite(file_, error.value())) : Status();
  }

 private:
  const std::string file_;
  std::string aside_;
  std::ofstream stream_;
  Output& out_;
};

// An export of no rows does not say whether there is such a sweep. `table`: `sweeps`, or `events`,
// which has those that were deleted as well.
Status FindSweep(const std::string& database, SweepId sweep, const std::string& table) {
  const auto connection = server::OpenOffline(database);
  if (!connection.ok()) return connection.error();
  server::sqlite::Rows rows =
      (*connection)->Query("SELECT 1 FROM log." + table + " WHERE sweep = ?1 LIMIT 1", sweep.value);
  if (rows.Next() || !rows.status().ok()) return rows.status();
  return Error{ErrorCode::kNotFound, "there is no sweep " + ToString(sweep) + " in " + database};
}

struct DbExportFlags : DbFlags {
  std::string format = "csv";
  std::string what = "trials";
  std::string sweep;
  std::string file;
  bool with_env = false;

  void AddTo(CLI::App& verb) {
    DbFlags::AddTo(verb);
    verb.add_option("--format", format, "csv, or a JSON object a line")
        ->check(CLI::IsMember({"csv", "jsonl"}))
        ->capture_default_str();
    verb.add_option("--what", what, "which rows")
        ->check(CLI::IsMember({"trials", "reports", "logged", "events"}))
        ->capture_default_str();
    verb.add_option("--sweep", sweep, "only this sweep's")->type_name("SWEEP");
    verb.add_option("-o,--output", file, "instead of stdout")->type_name("FILE");
    verb.add_flag("--with-env", with_env,
                  "events include sweep files that have env, and the values of env");
  }
};

ExitCode ExportRows(const DbExportFlags& flags, Console& console) {
  using server::ExportOptions;
  ExportOptions options;
  options.format =
      flags.format == "csv" ? ExportOptions::Format::kCsv : ExportOptions::Format::kJsonl;
  options.what = flags.what == "events"   ? ExportOptions::What::kEvents
                 : flags.what == "trials" ? ExportOptions::What::kTrials
                 : flags.what == "logged" ? ExportOptions::What::kLogged
                                          : ExportOptions::What::kReports;
  options.with_env = flags.with_env;
  if (!flags.sweep.empty()) {
    const auto sweep = ParseSweepId(flags.sweep);
    if (!sweep.ok()) return Fail(console, sweep.error());
    options.sweep = *sweep;
    const std::string table = flags.what == "events" ? "events" : "sweeps";
    if (const Status found = FindSweep(flags.database(), *sweep, table); !found.ok())
      return Fail(console, found.error());
  }
  Rows rows(flags.file, console.out);
  if (const Status opened = rows.Open(); !opened.ok()) return Fail(console, opened.error());
  const Status done =
      server::Export(flags.database(), options, [&](std::string_view line) { rows.Write(line); });
  if (!done.ok()) return Fail(console, done.error());
  const Status finished = rows.Finish();
  return finished.ok() ? ExitCode::kSuccess : Fail(console, finished.error());
}

ExitCode Vacuum(const DbFlags& flags, Console& console) {
  std::error_code error;
  const auto before = fs::file_size(flags.database(), error);
  const Status done = server::Vacuum(flags.database());
  if (!done.ok()) return Fail(console, done.error());
  console.err.Print(flags.database() + ": " + std::to_string(before) + " bytes before, " +
                    std::to_string(fs::file_size(flags.database(), error)) + " after");
  return ExitCode::kSuccess;
}

}  // namespace

void AddDbVerbs(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand("db", "a server's database, on this machine");
  noun.require_subcommand(1);
  AddVerb<DbCheckFlags>(noun, chosen, "check", "whether the database is sound", Check);
  AddVerb<DbBackupFlags>(noun, chosen, "backup", "copy it to a new file, and check the copy",
                         Backup);
  AddVerb<DbRestoreFlags>(noun, chosen, "restore", "put a backup in place of the database",
                          Restore);
  AddVerb<DbExportFlags>(noun, chosen, "export", "its rows as text", ExportRows);
  AddVerb<DbFlags>(noun, chosen, "vacuum", "give the space of deleted rows back to the disk",
                   Vacuum);
}

}  // namespace attune::cli
