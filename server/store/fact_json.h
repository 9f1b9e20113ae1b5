#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/log/event.h"
#include "server/store/json.h"

// What facts consist of, as JSON. Reading throws Json::exception for what is no such thing.
namespace attune::server {

SweepState ParseSweepState(const Json& json);
TrialState ParseTrialState(const Json& json);
Outcome ParseOutcome(const Json& json);

std::string Text(const Json& json, const char* key);
double Real(const Json& json, const char* key);

// A whole number that T can hold.
template <class T>
T Integer(const Json& json) {
  const bool fits = json.is_number_unsigned()  ? std::in_range<T>(json.get<uint64_t>())
                    : json.is_number_integer() ? std::in_range<T>(json.get<int64_t>())
                                               : false;
  if (!fits)
    throw Json::other_error::create(501, Dump(json) + " is not such a whole number", nullptr);
  return json.get<T>();
}
template <class T>
std::vector<T> Integers(const Json& json) {
  std::vector<T> numbers;
  for (const Json& number : json) numbers.push_back(Integer<T>(number));
  return numbers;
}

Json ToJson(const CheckpointRef& checkpoint);
Json ToJson(const KeptCheckpoint& kept);
Json ToJson(const StopPolicy& stop);
Json ToJson(const RankSlot& slot);
Json ToJson(const Failure& failure);
Json ToJson(const Verdict& verdict);

CheckpointRef CheckpointFromJson(const Json& json);
KeptCheckpoint KeptFromJson(const Json& json);
StopPolicy StopFromJson(const Json& json);
RankSlot SlotFromJson(const Json& json);
Failure FailureFromJson(const Json& json);
Verdict VerdictFromJson(const Json& json);

}  // namespace attune::server
