#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attune/v1/executor.pb.h"
#include "core/log/command.h"

// Converts messages of executors to types of core, and names of attempts and files to messages.
namespace attune::server {

v1::AttemptRef ToProto(const AttemptId& id, Epoch epoch);
v1::CheckpointName ToProto(const CheckpointId& checkpoint);
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

}  // namespace attune::server
