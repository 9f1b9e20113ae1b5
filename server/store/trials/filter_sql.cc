#include "server/store/trials/filter_sql.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "base/parse_number.h"

namespace attune::server {
namespace {

std::string_view OperatorOf(Comparison comparison) {
  switch (comparison) {
    case Comparison::kLess:
      return " < ";
    case Comparison::kLessOrEqual:
      return " <= ";
    case Comparison::kGreater:
      return " > ";
    case Comparison::kGreaterOrEqual:
      return " >= ";
    case Comparison::kEqual:
      return " = ";
    case Comparison::kNotEqual:
      return " <> ";
  }
  return " = ";
}

// Translates the parts of a filter.
class FilterTranslator {
 public:
  FilterTranslator(const TrialGoal& goal, SqlParameters& parameters)
      : goal_(goal), parameters_(parameters) {}

  std::string operator()(const MatchAll& match) {
    return match.parts.empty() ? "1" : Join(match.parts, " AND ");
  }
  std::string operator()(const MatchAny& match) { return Join(match.parts, " OR "); }
  std::string operator()(const MatchNot& match) { return "NOT " + Join(match.part, ""); }

  std::string operator()(const MatchStates& match) {
    std::string names;
    for (const TrialState state : match.states)
      names += (names.empty() ? "'" : ", '") + std::string(Name(state)) + "'";
    return "state IN (" + names + ")";
  }

  std::string operator()(const MatchTags& match) {
    std::string tags;
    for (const std::string& tag : match.tags)
      tags += (tags.empty() ? "" : ", ") + parameters_.Add(tag);
    return "EXISTS (SELECT 1 FROM json_each(iif(json_valid(tags), tags, '[]'))"
           " WHERE lower(value) IN (" +
           tags + "))";
  }

  std::string operator()(const MatchNumber& match) {
    return match.number ? "number = " + parameters_.Add(int64_t{*match.number}) : "0";
  }

  std::string operator()(const MatchText& match) {
    const std::string text = parameters_.Add(match.text);
    return "(instr(lower(reason), " + text + ") OR instr(lower(origin), " + text +
           ") OR instr(state, " + text +
           ") OR EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(config) THEN config ELSE '{}'"
           " END) WHERE type = 'text' AND instr(lower(atom), " +
           text + ")))";
  }

  std::string operator()(const MatchComparison& match) {
    const TrialValue value = ValueNamed(match.name, goal_, parameters_);
    const bool is_equality =
        match.comparison == Comparison::kEqual || match.comparison == Comparison::kNotEqual;
    const std::string compare(OperatorOf(match.comparison));
    if (value.kind == ColumnKind::kTime)
      return "ifnull(" + value.sql + compare + parameters_.Add(match.text) + ", 0)";
    // The parser refuses an operand that is not a number, except for equality.
    const bool is_number = match.number && !std::isnan(*match.number);
    if (!is_equality) return OfNumber(value, "v" + compare + Number(match.text, *match.number));
    // A value that is a text differs from a number, and the other way around.
    const std::string otherwise = match.comparison == Comparison::kEqual ? "0" : "1";
    const std::string of_number =
        is_number ? "v" + compare + Number(match.text, *match.number) : otherwise;
    return "ifnull((SELECT CASE typeof(v) WHEN 'null' THEN 0 WHEN 'text' THEN lower(v)" + compare +
           parameters_.Add(InLowerCase(match.text)) + " ELSE " + of_number + " END FROM (SELECT " +
           value.sql + " AS v)), 0)";
  }

  std::string operator()(const MatchRange& match) {
    const TrialValue value = ValueNamed(match.name, goal_, parameters_);
    const bool is_time = value.kind == ColumnKind::kTime;
    std::string condition = "v IS NOT NULL";
    if (!match.low.empty())
      condition += " AND v >= " +
                   (is_time ? parameters_.Add(match.low) : Number(match.low, *match.low_number));
    if (!match.high.empty())
      condition += " AND v <= " +
                   (is_time ? parameters_.Add(match.high) : Number(match.high, *match.high_number));
    if (is_time || (match.low.empty() && match.high.empty())) return OfValue(value, condition);
    return OfNumber(value, condition);
  }

 private:
  std::string Join(const std::vector<TrialFilter>& parts, const std::string& between) {
    std::string sql;
    for (const TrialFilter& part : parts)
      sql += (sql.empty() ? "(" : between) + std::visit(*this, part.match);
    return sql + ")";
  }

  // A condition on the value `v`.
  static std::string OfValue(const TrialValue& value, const std::string& condition) {
    return "ifnull((SELECT " + condition + " FROM (SELECT " + value.sql + " AS v)), 0)";
  }

  // The same, for values that are numbers. SQLite orders every text after every number.
  static std::string OfNumber(const TrialValue& value, const std::string& condition) {
    if (value.kind == ColumnKind::kText) return "0";
    return OfValue(value, value.kind == ColumnKind::kNumber
                              ? condition
                              : "typeof(v) IN ('integer', 'real') AND " + condition);
  }

  // An integer keeps all its digits.
  std::string Number(std::string_view text, double number) {
    if (const auto integer = ParseNumber<int64_t>(text)) return parameters_.Add(*integer);
    return parameters_.Add(number);
  }

  const TrialGoal& goal_;
  SqlParameters& parameters_;
};

}  // namespace

std::string FilterSql(const TrialFilter& filter, const TrialGoal& goal, SqlParameters& parameters) {
  return std::visit(FilterTranslator(goal, parameters), filter.match);
}

}  // namespace attune::server
