#pragma once

#include <optional>

#include "attune/v1/executor.pb.h"
#include "core/brain/state.h"
#include "core/log/command.h"

// Between the executors' protocol and the words of core.
namespace attune::server {

v1::AttemptRef ToProto(const AttemptId& id, Epoch epoch);
AttemptId FromProto(const v1::AttemptRef& ref);

Resources FromProto(const v1::Resources& resources);

// nullopt when the fact has no body this server knows. Takes the fact's texts.
std::optional<Command> FromProto(v1::Fact&& fact);

// All that the executor should run, and what it should delete; without a revision.
v1::Desired ToDesired(const State& state, const std::string& executor);

}  // namespace attune::server
