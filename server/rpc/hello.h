#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "attune/v1/executor.pb.h"
#include "core/log/command.h"
#include "core/state/state.h"

namespace attune::server {

// The first message of an executor on a connection. These functions look at the message alone, not
// at other connections.

inline constexpr size_t kHelloBytesMax = 64 << 10;

v1::Refusal MakeRefusal(v1::Refusal::Code code, const std::string& message);

// Why the executor is refused; nullopt if it is not. `may_join` says whether its token allows it.
std::optional<v1::Refusal> FaultOf(const v1::Hello& hello, bool may_join);

// REQUIRES: no fault.
JoinExecutor JoinOf(const v1::Hello& hello);

// The sweeps of which the executor has files, and that a part of this log has created which was
// lost. Files of other logs are none of them.
std::vector<SweepFiles> LostSweeps(const State& state, const v1::Hello& hello);

// Who says so, in a command that asks for it.
void SetSpeaker(const v1::Hello& hello, Command& command);

}  // namespace attune::server
