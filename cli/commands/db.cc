#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/result.h"
#include "cli/algorithms.h"
#include "cli/commands/command.h"
#include "server/folder/code_copy.h"
#include "server/folder/log_mark.h"
#include "server/store/offline/check.h"
#include "server/store/offline/export.h"
#include "server/store/offline/offline.h"
#include "system/files.h"

namespace attune::cli {
namespace {

namespace fs = std::filesystem;

// The flags of every command on a database.
struct DbFlags {
  std::string data_dir = "attune-data";

  void AddTo(CLI::App& command) {
    command.add_option("--data-dir", data_dir, "Data folder or database file")
        ->type_name("DIR|FILE")
        ->capture_default_str();
  }

  // The database file. The option names it or its data folder.
  std::string database() const {
    std::error_code error;
    return fs::is_directory(data_dir, error) ? (fs::path(data_dir) / "attune.db").string()
                                             : data_dir;
  }
};

struct DbCheckFlags : DbFlags {
  bool decisions = false;

  void AddTo(CLI::App& command) {
    DbFlags::AddTo(command);
    command.add_flag("--decisions", decisions,
                     "Also recompute and compare each proposal and verdict");
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
  bool is_intact = true;
  for (const server::Finding& finding : *findings) {
    const std::string about = finding.what + ": " + finding.seen;
    if (finding.fault) {
      is_intact = false;
      console.out.Print("bad  " + about + ": " + *finding.fault);
    } else {
      console.out.Print("ok   " + about);
    }
  }
  return is_intact ? ExitCode::kSuccess : ExitCode::kFailure;
}

constexpr char kCodeFolder[] = "code";  // in a data folder

// The folder with the code of sweeps that belongs to a backup.
fs::path CodeOf(const std::string& backup) { return backup + ".code"; }

struct DbBackupFlags : DbFlags {
  std::string file;
  bool with_code = false;

  void AddTo(CLI::App& command) {
    DbFlags::AddTo(command);
    command.add_flag("--with-code", with_code,
                     "Also copy the code of sweeps, to the folder FILE.code");
    command.add_option("FILE", file, "New file")->required();
  }
};

ExitCode Backup(const DbBackupFlags& flags, Console& console) {
  const Status done = server::Backup(flags.database(), flags.file);
  if (!done.ok()) return Fail(console, done.error());
  std::error_code error;
  if (flags.with_code) {
    const fs::path data_dir = fs::path(flags.database()).parent_path();
    const Status copied = server::CopySnapshots(data_dir / kCodeFolder, CodeOf(flags.file));
    if (!copied.ok()) return Fail(console, copied.error());
  }
  console.err.Print("wrote " + flags.file + ", " +
                    std::to_string(fs::file_size(flags.file, error)) + " bytes, and checked it");
  return ExitCode::kSuccess;
}

struct DbRestoreFlags {
  std::string data_dir = "attune-data";
  std::string file;

  void AddTo(CLI::App& command) {
    command.add_option("FILE", file, "File from `attune db backup`")->required();
    command.add_option("--data-dir", data_dir, "Data folder; created if missing")
        ->type_name("DIR")
        ->capture_default_str();
  }
};

// Writes the mark before the database. If this process dies in between, the next server treats a
// complete log as a restored one, which is harmless.
ExitCode Restore(const DbRestoreFlags& flags, Console& console) {
  std::error_code error;
  const fs::path data_dir = fs::absolute(flags.data_dir, error).lexically_normal();
  fs::create_directories(data_dir, error);
  const Result<UniqueFd> lock = LockFile(data_dir / "lock", kPrivate);
  if (!lock.ok() && lock.error().code == ErrorCode::kConflict)
    return Fail(console, {ErrorCode::kConflict, "a server uses the data folder " +
                                                    data_dir.string() + "; stop it first"});
  if (!lock.ok()) return Fail(console, lock.error());
  const std::string database = (data_dir / "attune.db").string();
  const std::string copy = database + ".restoring";
  fs::remove(copy, error);  // from a restore that was interrupted
  if (const Status copied = server::Backup(flags.file, copy); !copied.ok())
    return Fail(console, copied.error());
  if (const Status marked = server::LogMarkFile(data_dir).WriteReplaced(); !marked.ok())
    return Fail(console, marked.error());
  // Before the database, whose sweeps need the code. The code of other sweeps stays.
  if (const Status code = server::CopySnapshots(CodeOf(flags.file), data_dir / kCodeFolder);
      !code.ok())
    return Fail(console, code.error());
  const Result<std::string> kept = server::Replace(database, copy);
  if (!kept.ok()) return Fail(console, kept.error());
  if (const Status synced = SyncFolder(data_dir); !synced.ok())
    return Fail(console, synced.error());
  console.err.Print("restored " + database + " from " + flags.file + "; start the server again" +
                    (kept->empty() ? "" : "\nthe previous database is now " + *kept));
  return ExitCode::kSuccess;
}

Error CannotWrite(const std::string& file, int code) {
  return {ErrorCode::kUnavailable, "cannot write " + file + ": " + std::strerror(code)};
}

// Writes rows to stdout or to a file. A regular file is written under a temporary name and renamed
// when it is complete; a pipe or device is written directly.
class RowWriter {
 public:
  RowWriter(const std::string& file, Output& out) : file_(file), out_(out) {
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    written_path_ = fs::exists(status) && !fs::is_regular_file(status) ? file : file + ".part";
  }
  ~RowWriter() {
    std::error_code error;
    if (stream_.is_open() && written_path_ != file_) fs::remove(written_path_, error);
  }
  RowWriter(const RowWriter&) = delete;
  RowWriter& operator=(const RowWriter&) = delete;

  Status Open() {
    if (file_.empty()) return {};
    errno = 0;
    stream_.open(written_path_);
    if (!stream_) return CannotWrite(written_path_, errno);
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
      return Error{ErrorCode::kStorageFull,
                   "cannot write all of " + file_ + "; free some disk space and try again"};
    std::error_code error;
    if (written_path_ != file_) fs::rename(written_path_, file_, error);
    return error ? Status(CannotWrite(file_, error.value())) : Status();
  }

 private:
  const std::string file_;
  std::string written_path_;
  std::ofstream stream_;
  Output& out_;
};

// kNotFound if the sweep does not exist, because an export without rows would not tell. `table`:
// `sweeps`, or `events`, which also has deleted sweeps.
Status CheckSweepExists(const std::string& database, SweepId sweep, const std::string& table) {
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

  void AddTo(CLI::App& command) {
    DbFlags::AddTo(command);
    command.add_option("--format", format, "CSV, or one JSON object per line")
        ->check(CLI::IsMember({"csv", "jsonl"}))
        ->type_name("FORMAT")
        ->capture_default_str();
    command.add_option("--what", what, "Rows to export")
        ->check(CLI::IsMember({"trials", "reports", "logged", "events"}))
        ->type_name("WHAT")
        ->capture_default_str();
    command.add_option("--sweep", sweep, "Only this sweep")->type_name("SWEEP");
    command.add_option("-o,--output", file, "Output file (default: stdout)")->type_name("FILE");
    command.add_flag("--with-env", with_env, "Include env of sweep files in events");
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
    if (const Status found = CheckSweepExists(flags.database(), *sweep, table); !found.ok())
      return Fail(console, found.error());
  }
  RowWriter rows(flags.file, console.out);
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

void AddDbCommands(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand("db", "Check, back up and export the database");
  noun.require_subcommand(1);
  AddCommand<DbCheckFlags>(noun, chosen, "check", "Check the database", Check);
  AddCommand<DbBackupFlags>(noun, chosen, "backup", "Back up the database to a new file", Backup);
  AddCommand<DbRestoreFlags>(noun, chosen, "restore", "Restore the database from a backup",
                             Restore);
  AddCommand<DbExportFlags>(noun, chosen, "export",
                            "Export trials, reports or events as CSV or JSON", ExportRows);
  AddCommand<DbFlags>(noun, chosen, "vacuum", "Free the disk space of deleted rows", Vacuum);
}

}  // namespace attune::cli
