#pragma once

#include <vector>

#include "core/log/event_values.h"
#include "core/log/suggestion.h"
#include "server/store/json.h"

// Conversions of values that the tables store as JSON. The functions that read JSON throw
// Json::exception.
namespace attune::server {

Json RanksToJson(const std::vector<RankSlot>& ranks);
// The memory of a slot is not stored.
std::vector<RankSlot> RanksFromJson(const Json& json);

Json RationaleToJson(const Rationale& rationale);
Rationale RationaleFromJson(const Json& json);

}  // namespace attune::server
