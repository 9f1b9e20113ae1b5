#include "server/http/routes/trials/trial_token.h"

#include <bit>
#include <cstdint>
#include <utility>
#include <variant>

#include "base/parse_number.h"
#include "base/result.h"
#include "server/http/routes/request/query.h"

namespace attune::server {
namespace {

// Lists by number have the tokens of earlier versions: the number of the next trial.
bool IsPlain(const TrialQuery& query) { return query.order == TrialOrder() && !query.filter; }

std::string ListWithOrder(const std::string& list, const TrialOrder& order) {
  return list + (order.reversed ? "\n-" : "\n") + order.column;
}

// The number, a letter for the type, and the value: `17 i3`, `17 r4608083138725491507`, `17 tadam`,
// `17 n`. A real is written by its bits, so that it stays exact.
std::string TextOf(const TrialPosition& position) {
  std::string text = std::to_string(position.number.value) + ' ';
  if (!position.value) return text + 'n';
  if (const auto* integer = std::get_if<int64_t>(&*position.value))
    return text + 'i' + std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&*position.value))
    return text + 'r' + std::to_string(std::bit_cast<uint64_t>(*real));
  return text + 't' + std::get<std::string>(*position.value);
}

// nullopt: not a text of TextOf.
std::optional<TrialPosition> PositionOf(std::string_view text) {
  const size_t space = text.find(' ');
  const auto number = ParseNumber<uint32_t>(text.substr(0, space));
  if (!number || space == text.npos || space + 1 == text.size()) return std::nullopt;
  TrialPosition position{.value = {}, .number = TrialNumber(*number)};
  const std::string_view value = text.substr(space + 2);
  const char type = text[space + 1];
  if (type == 't') position.value = std::string(value);
  if (const auto integer = ParseNumber<int64_t>(value); type == 'i' && integer)
    position.value = *integer;
  if (const auto bits = ParseNumber<uint64_t>(value); type == 'r' && bits)
    position.value = std::bit_cast<double>(*bits);
  if (!position.value && type != 'n') return std::nullopt;
  return position;
}

}  // namespace

std::string TrialToken(const std::string& list, const TrialQuery& query,
                       const TrialPosition& position) {
  if (IsPlain(query)) return PageToken(list, uint64_t{position.number.value} + 1);
  return PositionToken(ListWithOrder(list, query.order), TextOf(position));
}

Result<std::optional<TrialPosition>> ParseTrialToken(const std::string& list,
                                                     const TrialQuery& query,
                                                     const Request& request) {
  if (IsPlain(query)) {
    const auto first = ParsePageToken(list, request);
    if (!first.ok()) return first.error();
    if (first->value_or(0) == 0) return std::optional<TrialPosition>();
    const int64_t last = static_cast<int64_t>(**first) - 1;
    return std::optional(
        TrialPosition{.value = last, .number = TrialNumber(static_cast<uint32_t>(last))});
  }
  const auto text = ParsePositionToken(ListWithOrder(list, query.order), request);
  if (!text.ok()) return text.error();
  if (!*text) return std::optional<TrialPosition>();
  if (auto position = PositionOf(**text)) return position;
  return Invalid("page_token: not a token of this list; omit it to begin with the first page");
}

}  // namespace attune::server
