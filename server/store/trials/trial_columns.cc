#include "server/store/trials/trial_columns.h"

#include <algorithm>
#include <array>

#include "base/result.h"

namespace attune::server {
namespace {

// A column of the table `trials`. `label` is its name in the dashboard.
struct TrialColumn {
  std::string_view name;
  std::string_view label;
  std::string_view sql;
  ColumnKind kind;
  bool sortable;
  bool may_miss;
};

// Only `number`, `state` and `best` have an index, which other queries need as well. An index on a
// column that changes with each report, such as `step`, would cost each report a second write. An
// order without an index reads all trials of the sweep, which takes about 0.1 s for 100,000.
constexpr std::array kTrialColumns{
    TrialColumn{"number", "trial", "number", ColumnKind::kNumber, true, false},
    TrialColumn{"state", "state", "state", ColumnKind::kText, true, false},
    TrialColumn{"best", "best", "best", ColumnKind::kNumber, true, true},
    TrialColumn{"step", "step", "step", ColumnKind::kNumber, true, false},
    TrialColumn{"seconds", "time", "seconds", ColumnKind::kNumber, true, false},
    TrialColumn{"created", "created", "created", ColumnKind::kTime, true, false},
    TrialColumn{"ended", "ended", "ended", ColumnKind::kTime, true, true},
    TrialColumn{"attempts", "attempts", "attempts", ColumnKind::kNumber, true, false},
    TrialColumn{"reason", "reason", "reason", ColumnKind::kText, false, false},
    TrialColumn{"origin", "origin", "origin", ColumnKind::kText, false, false},
};

constexpr std::string_view kConfigPrefix = "config.";
constexpr std::string_view kMetricsPrefix = "metrics.";

// Long texts are sorted by their beginning, because the position after one travels in an address.
constexpr int kSortedCharacters = 200;

// The member of a column of JSON, as a text or a number. A damaged document has no members.
std::string MemberSql(const std::string& column, std::string_view name, SqlParameters& parameters) {
  // A path cannot contain these characters as they are stored, so such names are compared.
  const bool fits_path = !name.empty() && std::ranges::all_of(name, [](char c) {
    return static_cast<unsigned char>(c) >= ' ' && c != '"' && c != '\\' && c != '\x7f';
  });
  if (!fits_path)
    return "(SELECT CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE atom END"
           " FROM json_each(CASE WHEN json_valid(" +
           column + ") THEN " + column +
           " ELSE '{}' END) WHERE key = " + parameters.Add(std::string(name)) + ")";
  const std::string path = parameters.Add("$.\"" + std::string(name) + '"');
  const std::string arguments = "(" + column + ", " + path + ")";
  return "(CASE WHEN json_valid(" + column + ") THEN CASE json_type" + arguments +
         " WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE json_extract" + arguments +
         " END END)";
}

std::string MetricSql(std::string_view name, SqlParameters& parameters) {
  const std::string member = MemberSql("metrics", name, parameters);
  return "(CASE " + member + " WHEN 'inf' THEN 9e999 WHEN '-inf' THEN -9e999 ELSE " + member +
         " END)";
}

const TrialColumn* ColumnNamed(std::string_view name) {
  const auto* const found = std::ranges::find(kTrialColumns, name, &TrialColumn::name);
  return found == kTrialColumns.end() ? nullptr : found;
}

std::string StateRankSql() {
  std::string sql = "(CASE state";
  for (size_t rank = 0; rank < kTrialStatesInOrder.size(); ++rank)
    sql +=
        " WHEN '" + std::string(Name(kTrialStatesInOrder[rank])) + "' THEN " + std::to_string(rank);
  return sql + " END)";
}

}  // namespace

Result<TrialOrder> ParseTrialOrder(std::string_view text) {
  if (text.empty()) return TrialOrder{};
  TrialOrder order{.reversed = text.starts_with('-')};
  order.column = text.substr(order.reversed ? 1 : 0);
  const TrialColumn* const column = ColumnNamed(order.column);
  if (column != nullptr && column->sortable) return order;
  for (const std::string_view prefix : {kConfigPrefix, kMetricsPrefix})
    if (order.column.starts_with(prefix) && order.column.size() > prefix.size()) return order;
  std::string known;
  for (const TrialColumn& each : kTrialColumns)
    if (each.sortable) known += std::string(each.name) + ", ";
  return Invalid("order_by: '" + std::string(text) + "' is not a column; use " + known +
                 "config.NAME or metrics.NAME, with - before it for the reverse order");
}

TrialValue ValueNamed(std::string_view name, const TrialGoal& goal, SqlParameters& parameters) {
  for (const TrialColumn& column : kTrialColumns)
    if (name == column.name || name == column.label) return {std::string(column.sql), column.kind};
  if (name == goal.metric) return {"best", ColumnKind::kNumber};
  if (name.starts_with(kConfigPrefix))
    return {MemberSql("config", name.substr(kConfigPrefix.size()), parameters),
            ColumnKind::kMember};
  if (name.starts_with(kMetricsPrefix))
    return {MetricSql(name.substr(kMetricsPrefix.size()), parameters), ColumnKind::kMember};
  return {
      "ifnull(" + MemberSql("config", name, parameters) + ", " + MetricSql(name, parameters) + ")",
      ColumnKind::kMember};
}

SortKey KeyOf(const TrialOrder& order, const TrialGoal& goal, SqlParameters& parameters) {
  if (order.column == "state")
    return {.sql = StateRankSql(), .descending = order.reversed, .may_miss = false};
  // The best value comes first.
  if (order.column == "best")
    return {.sql = "best", .descending = goal.maximises != order.reversed};
  if (const TrialColumn* column = ColumnNamed(order.column))
    return {.sql = std::string(column->sql),
            .descending = order.reversed,
            .may_miss = column->may_miss};
  const std::string value = ValueNamed(order.column, goal, parameters).sql;
  const bool is_metric = order.column.starts_with(kMetricsPrefix);
  return {.sql = is_metric
                     ? "nullif(" + value + ", 'nan')"
                     : "(CASE typeof(" + value + ") WHEN 'text' THEN substr(" + value + ", 1, " +
                           std::to_string(kSortedCharacters) + ") ELSE " + value + " END)",
          .descending = order.reversed,
          .slow = true};
}

}  // namespace attune::server
