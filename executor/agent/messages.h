#pragma once

#include <vector>

#include "attune/v1/executor.pb.h"
#include "base/result.h"
#include "executor/gang/channel_types.h"
#include "executor/gang/facts.h"
#include "executor/gang/folders.h"
#include "executor/gang/spec.h"
#include "executor/transfer/removals.h"

namespace attune::agent {

// Converts between the messages of the protocol and the types of the gang.

gang::AttemptId FromProto(const v1::AttemptRef& ref);
v1::AttemptRef ToProto(const gang::AttemptId& attempt);
v1::CheckpointName ToProto(const gang::CheckpointName& checkpoint);

// Returns an error if this executor does not understand the assignment.
Result<gang::GangSpec> ToSpec(const v1::Assignment& assignment, const gang::Folders& folders);

// The verdict for rank 0; its step is 0 before the first verdict.
gang::Verdict ToVerdict(const v1::Assignment& assignment);

std::vector<SweepFiles> FromProto(const google::protobuf::RepeatedPtrField<v1::SweepFiles>& files);
void AddSweepFiles(const SweepFiles& files,
                   google::protobuf::RepeatedPtrField<v1::SweepFiles>& out);

// The result has no sequence number.
v1::Fact ToProto(const gang::Fact& fact);

}  // namespace attune::agent
