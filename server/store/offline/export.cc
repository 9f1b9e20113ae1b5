#include "server/store/offline/export.h"

#include <algorithm>
#include <vector>

#include "base/result.h"
#include "json/parse.h"
#include "server/store/erased_events.h"
#include "server/store/format_time.h"
#include "server/store/json.h"
#include "server/store/offline/offline.h"
#include "server/store/tables/tables.h"

namespace attune::server {
namespace {

using Row = std::function<void(const Json&)>;

// A column of the output. Columns of JSON become objects, and NULL becomes null.
struct Column {
  enum class Kind { kPlain, kReal, kTime, kObject } kind;
  const char* name;
};

struct Source {
  std::string sql;  // its parameter is a sweep, or NULL for all sweeps
  std::vector<Column> columns;
};

Source SourceOf(ExportOptions::What what) {
  using enum Column::Kind;
  switch (what) {
    case ExportOptions::What::kEvents:
      return {"SELECT seq, " + ShownTimeSql("events") +
                  ", sweep, trial, kind, version, coalesce(actor, 'attune'), payload"
                  " FROM log.events"
                  " WHERE (?1 IS NULL OR sweep = ?1) ORDER BY seq",
              {{kPlain, "seq"},
               {kTime, "time"},
               {kPlain, "sweep"},
               {kPlain, "trial"},
               {kPlain, "kind"},
               {kPlain, "version"},
               {kPlain, "actor"},
               {kObject, "payload"}}};
    case ExportOptions::What::kTrials:
      return {
          "SELECT sweep, number, state, reason, created, ended, attempts, step, seconds, best,"
          " best_step, checkpoint, note,"
          " (SELECT group_concat(value, ',') FROM json_each(tags)), config, metrics FROM log.trials"
          " WHERE (?1 IS NULL OR sweep = ?1) AND sweep IN (SELECT sweep FROM log.sweeps)"
          " ORDER BY sweep, number",
          {{kPlain, "sweep"},
           {kPlain, "trial"},
           {kPlain, "state"},
           {kPlain, "reason"},
           {kPlain, "created"},
           {kPlain, "ended"},
           {kPlain, "attempts"},
           {kPlain, "step"},
           {kReal, "seconds"},
           {kReal, "best"},
           {kPlain, "best_step"},
           {kPlain, "checkpoint"},
           {kPlain, "note"},
           {kPlain, "tags"},
           {kObject, "config"},
           {kObject, "metrics"}}};
    case ExportOptions::What::kReports:
      return {
          "SELECT sweep, trial, attempt, step, time, seconds, metrics FROM log.reports"
          " WHERE (?1 IS NULL OR sweep = ?1) AND sweep IN (SELECT sweep FROM log.sweeps)"
          " ORDER BY seq",
          {{kPlain, "sweep"},
           {kPlain, "trial"},
           {kPlain, "attempt"},
           {kPlain, "step"},
           {kTime, "time"},
           {kReal, "seconds"},
           {kObject, "metrics"}}};
    case ExportOptions::What::kLogged:
      return {
          "SELECT sweep, trial, attempt, step, time, metrics FROM log.logged"
          " WHERE (?1 IS NULL OR sweep = ?1) AND sweep IN (SELECT sweep FROM log.sweeps)"
          " ORDER BY seq",
          {{kPlain, "sweep"},
           {kPlain, "trial"},
           {kPlain, "attempt"},
           {kReal, "step"},
           {kTime, "time"},
           {kObject, "metrics"}}};
  }
  return {};
}

// Columns of the query on the log.
constexpr int kSeqColumn = 0;
constexpr int kSweepColumn = 2;

std::optional<SweepId> SweepOfEvent(const sqlite::Rows& rows) {
  if (rows.Null(kSweepColumn)) return std::nullopt;
  return SweepId(static_cast<uint64_t>(rows.Integer(kSweepColumn)));
}

Json Cell(const sqlite::Rows& rows, int index, Column::Kind kind) {
  if (rows.Null(index)) return nullptr;
  switch (kind) {
    case Column::Kind::kReal:
      return rows.Real(index);
    case Column::Kind::kTime:
      return FormatTime(Time{rows.Integer(index)});
    case Column::Kind::kObject:
      return ParseJsonOrThrow<Json>(rows.Text(index));
    case Column::Kind::kPlain:
      break;
  }
  if (rows.IsInteger(index)) return rows.Integer(index);
  return rows.Text(index);
}

// Removes `env` from an event with a specification, and also the sweep file, which repeats it.
void HideEnv(Json& payload) {
  const auto spec = payload.find("spec");
  if (spec == payload.end() || spec->value("env", Json::object()).empty()) return;
  spec->erase("env");
  payload.erase("source");
}

Status ForEach(sqlite::Connection& connection, const ExportOptions& options, const Row& visit) {
  const Source source = SourceOf(options.what);
  std::optional<uint64_t> sweep;
  if (options.sweep) sweep = options.sweep->value;
  const bool is_log = options.what == ExportOptions::What::kEvents;
  auto erased = ErasedEvents::Read(connection);
  if (!erased.ok()) return erased.error();
  EventSeq before{0};
  sqlite::Rows rows = connection.Query(source.sql, sweep);
  while (rows.Next()) {
    if (is_log) {
      const EventSeq seq(static_cast<uint64_t>(rows.Integer(kSeqColumn)));
      const Status whole = sweep ? Status() : erased->CheckGap(before, seq);
      if (!whole.ok()) return whole;
      before = seq;
      if (erased->Includes(SweepOfEvent(rows), seq)) continue;
    }
    Json row = Json::object();
    int index = 0;
    for (const Column& column : source.columns) {
      row[column.name] = Cell(rows, index, column.kind);
      ++index;
    }
    if (options.what == ExportOptions::What::kEvents && !options.with_env) HideEnv(row["payload"]);
    visit(row);
  }
  return rows.status();
}

// ---- CSV -----------------------------------------------------------------------------------

// Calls `visit` with the name and value of each column. Each entry of a nested object is a column.
void Flatten(const Json& row, bool nested,
             const std::function<void(const std::string& name, const Json& value)>& visit) {
  for (const auto& [name, value] : row.items()) {
    if (!nested || !value.is_object()) {
      visit(name, value);
      continue;
    }
    for (const auto& [key, inner] : value.items()) visit(name + '.' + key, inner);
  }
}

std::string CsvCell(const Json& value) {
  if (value.is_null()) return "";
  std::string text = value.is_string() ? value.get<std::string>() : Dump(value);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

Status ExportCsv(sqlite::Connection& connection, const ExportOptions& options,
                 const std::function<void(std::string_view)>& write) {
  const bool nested = options.what != ExportOptions::What::kEvents;
  std::vector<std::string> header;  // first the query's columns, then others by first appearance
  for (const Column& column : SourceOf(options.what).columns) {
    if (!nested || column.kind != Column::Kind::kObject) header.emplace_back(column.name);
  }
  const auto place = [&](const std::string& name) { return std::ranges::find(header, name); };
  Status read = ForEach(connection, options, [&](const Json& row) {
    Flatten(row, nested, [&](const std::string& name, const Json&) {
      if (place(name) == header.end()) header.push_back(name);
    });
  });
  if (!read.ok()) return read;

  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) text += (i == 0 ? "" : ",") + cells[i];
    write(text);
  };
  std::vector<std::string> cells;
  for (const std::string& name : header) cells.push_back(CsvCell(name));
  line(cells);
  return ForEach(connection, options, [&](const Json& row) {
    cells.assign(header.size(), "");
    Flatten(row, nested, [&](const std::string& name, const Json& value) {
      cells[static_cast<size_t>(place(name) - header.begin())] = CsvCell(value);
    });
    line(cells);
  });
}

}  // namespace

Status Export(const std::string& path, const ExportOptions& options,
              const std::function<void(std::string_view line)>& write) {
  auto connection = OpenOffline(path);
  if (!connection.ok()) return connection.error();
  sqlite::Transaction snapshot(**connection, sqlite::Transaction::Kind::kRead);
  try {
    if (options.format == ExportOptions::Format::kCsv)
      return ExportCsv(**connection, options, write);
    return ForEach(**connection, options, [&](const Json& row) { write(Dump(row)); });
  } catch (const Json::exception& error) {
    return Error{ErrorCode::kCorrupt, path + ": a column of JSON is damaged: " + error.what() +
                                          "; restore it from a backup"};
  }
}

}  // namespace attune::server
