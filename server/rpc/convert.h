#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attune/v1/executor.pb.h"
#include "core/log/command.h"
#include "core/state/state.h"

// Converts between messages of the executors' protocol and types of core.
namespace attune::server {

v1::AttemptRef ToProto(const AttemptId& id, Epoch epoch);
AttemptId FromProto(const v1::AttemptRef& ref);

CheckpointId FromProto(const v1::CheckpointName& checkpoint);
std::vector<SweepFiles> FromProto(const google::protobuf::RepeatedPtrField<v1::SweepFiles>& files);
void Add(const SweepFiles& files, google::protobuf::RepeatedPtrField<v1::SweepFiles>& out);
Resources FromProto(const v1::Resources& resources);
Labels FromProto(const google::protobuf::Map<std::string, std::string>& labels);

// Converts a fact. Returns nullopt if this server does not know its kind. Moves texts out of the
// fact and cuts those that are too long. If the fact exceeds another limit of
// base/message_limits.h, which correct executors respect, the result is a failed end of the
// attempt.
std::optional<Command> FromProto(v1::Fact&& fact);

// The facts of one message. Facts of unknown kinds are left out.
struct FactBatch {
  std::vector<Command> commands;
  uint64_t last = 0;  // number of the last fact
  size_t bytes = 0;   // approximate memory use of the facts
};
FactBatch FromProto(v1::Facts& facts);  // moves the facts' contents

// Applies `mask` to the texts that a failed program has printed or sent.
void MaskFailures(v1::Facts& facts, const std::function<void(std::string& text)>& mask);

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

// All attempts that the executor should run, and all files that it should delete, without a
// revision.
v1::Desired ToDesired(const State& state, const std::string& executor,
                      const PieceServers& server_of = {}, const SecretValues& value_of = {});

}  // namespace attune::server
