#pragma once

#include <optional>

#include "attune/v1/executor.pb.h"
#include "core/command.h"
#include "core/state.h"

// Between the executors' protocol and the words of core.
namespace attune::server {

v1::AttemptRef ToProto(const AttemptId& id, Epoch epoch);
AttemptId FromProto(const v1::AttemptRef& ref);

Resources FromProto(const v1::Resources& resources);

// nullopt when the fact has no body this server knows.
std::optional<RecordFact> FromProto(const v1::Fact& fact);

// What the executor should run for this trial's live attempt. REQUIRES: trial.live.
v1::Assignment ToAssignment(const SweepSpec& spec, const Trial& trial, const std::string& executor);

}  // namespace attune::server
