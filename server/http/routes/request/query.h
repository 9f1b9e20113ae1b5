#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/http/transport/message.h"

namespace attune::server {

inline constexpr int kTrialsPageMax = 1'000;
inline constexpr size_t kIdempotencyKeyMaxBytes = 255;

// The request's key (core/log/request_key.h), made of its actor, its header Idempotency-Key and its
// body. Empty without that header; kInvalid if the header is too long.
Result<std::string> IdempotencyKey(const Request& request);

// Returns kInvalid if the query has a parameter that the contract does not list for the operation.
// `operation` is its path in the contract, such as /api/v1/sweeps/{sweep}/trials.
Status CheckQuery(const Request& request, std::string_view operation);

// A whole number in the query, or `fallback` if it is absent. kInvalid names the parameter and its
// bounds.
Result<int64_t> IntegerQuery(const Request& request, std::string_view name, int64_t fallback,
                             int64_t min, int64_t max);

// The same for any finite number.
Result<double> NumberQuery(const Request& request, std::string_view name, double fallback,
                           double min, double max);

// A query parameter that is true or false; false if it is absent. kInvalid names the parameter.
Result<bool> BooleanQuery(const Request& request, std::string_view name);

// Page tokens: where the next page begins, opaque to clients. `list` names the list. ParsePageToken
// returns kInvalid for a token of another list.
std::string PageToken(std::string_view list, uint64_t next);
Result<std::optional<uint64_t>> ParsePageToken(std::string_view list, const Request& request);

// Page tokens of lists that can be sorted: a position in the form of the caller. `list` also names
// the order and the filter. ParsePositionToken returns kInvalid for a token of another list.
std::string PositionToken(std::string_view list, std::string_view position);
Result<std::optional<std::string>> ParsePositionToken(std::string_view list,
                                                      const Request& request);

}  // namespace attune::server
