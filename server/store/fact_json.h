#pragma once

#include <string>

#include "core/event.h"
#include "server/store/json.h"

// What facts consist of, as JSON. Reading throws Json::exception for what is no such thing.
namespace attune::server {

SweepState ParseSweepState(const Json& json);
TrialState ParseTrialState(const Json& json);
Outcome ParseOutcome(const Json& json);

std::string Text(const Json& json, const char* key);
double Real(const Json& json, const char* key);

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
