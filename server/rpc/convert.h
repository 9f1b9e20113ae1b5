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

// Between the executors' protocol and the words of core.
namespace attune::server {

v1::AttemptRef ToProto(const AttemptId& id, Epoch epoch);
AttemptId FromProto(const v1::AttemptRef& ref);

CheckpointId FromProto(const v1::CheckpointName& checkpoint);
std::vector<SweepFiles> FromProto(const google::protobuf::RepeatedPtrField<v1::SweepFiles>& files);
void Add(const SweepFiles& files, google::protobuf::RepeatedPtrField<v1::SweepFiles>& out);
Resources FromProto(const v1::Resources& resources);
Labels FromProto(const google::protobuf::Map<std::string, std::string>& labels);

// nullopt when the fact has no body this server knows. Takes the fact's texts, and cuts those that
// are too long. A fact beyond another limit of base/message_limits.h, which executors keep for
// their gangs, is the end of the attempt: it failed, because of its executor.
std::optional<Command> FromProto(v1::Fact&& fact);

// Facts of one message, of which a server may know fewer kinds than the executor.
struct FactBatch {
  std::vector<Command> commands;
  uint64_t last = 0;  // number of the last fact
  size_t bytes = 0;   // of memory that they take, roughly
};
FactBatch FromProto(v1::Facts& facts);  // takes what they hold

// Changes the texts of facts that a failed program has said or printed.
void MaskFailures(v1::Facts& facts, const std::function<void(std::string& text)>& mask);

// Who of those that can send a checkpoint is named to whoever fetches it, at most.
inline constexpr int kPieceServersMax = 3;

// Where an executor's checkpoints can be read directly; nullopt: nowhere, or it is not there.
// Empty: nobody's can.
using PieceServers = std::function<std::optional<v1::PieceServer>(const std::string& executor)>;

// The checkpoints that the executor's data folder should have, in messages of at most so many; one
// message at least, which forgets what waits to be deleted.
inline constexpr int kInventoryMax = 5'000;
std::vector<v1::Inventory> ToInventory(const State& state, const std::string& executor);

// The value of a secret; nullopt if it has none now. Empty: no secret has one.
using SecretValues = std::function<std::optional<std::string>(const std::string& name)>;

// All that the executor should run, and what it should delete; without a revision.
v1::Desired ToDesired(const State& state, const std::string& executor,
                      const PieceServers& server_of = {}, const SecretValues& value_of = {});

}  // namespace attune::server
