#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attune/v1/executor.pb.h"
#include "core/state/state.h"

// The messages that tell an executor its part of the state: the attempts that it should run, and
// the files that it should have or delete.
namespace attune::server {

// The most senders of a checkpoint that an executor is told.
inline constexpr int kPieceServersMax = 3;

// Returns the address at which an executor's checkpoints can be read directly. Nullopt: it is not
// connected or has no such address. An empty function: no executor has one.
using PieceServers = std::function<std::optional<v1::PieceServer>(const std::string& executor)>;

// The most checkpoints in one message of an inventory.
inline constexpr int kInventoryMax = 5'000;
// The checkpoints that the executor's data folder should contain, in one or more messages. The
// executor drops its queued deletions when it gets a message.
std::vector<v1::Inventory> ToInventory(const State& state, const std::string& executor);

// Returns the value of a secret; nullopt if it has none now. An empty function: no secret has one.
using SecretValues = std::function<std::optional<std::string>(const std::string& name)>;

// Returns the credentials and settings for object stores that are secrets. An empty function: there
// are none.
using StoreVariables = std::function<std::vector<std::pair<std::string, std::string>>()>;

// Functions that ToDesired calls in addition to reading the state. Tests leave them empty.
struct DesiredSources {
  PieceServers server_of = {};
  SecretValues value_of = {};
  StoreVariables store_variables = {};
};

// All attempts that the executor should run, and all files that it should delete, without a
// revision.
v1::Desired ToDesired(const State& state, const std::string& executor,
                      const DesiredSources& sources = {});

// Adds a text variable.
void AddVariable(const std::string& name, std::string value,
                 google::protobuf::RepeatedPtrField<v1::NamedValue>& variables);

}  // namespace attune::server
