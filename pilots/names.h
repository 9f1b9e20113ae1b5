#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Names of pilots and of their executors.
namespace attune::pilots {

// attune-FLEET-: the prefix of the names of a fleet's pilots.
std::string PilotPrefix(const std::string& fleet);
// attune-FLEET-NUMBER: the name of the pilot's job. The executor of a pilot with one node has the
// same name. With several nodes, the executors are named attune-FLEET-NUMBER.NODE, NODE from 0.
std::string PilotName(const std::string& fleet, int64_t number);
// The number in a pilot's name; nullopt if the name is not of this fleet's pilots.
std::optional<int64_t> PilotNumber(const std::string& fleet, std::string_view name);
// The name of the pilot that runs this executor; empty if no pilot of this fleet does.
std::string PilotOf(const std::string& fleet, std::string_view executor);

}  // namespace attune::pilots
