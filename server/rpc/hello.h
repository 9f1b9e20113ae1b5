#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "attune/v1/executor.pb.h"
#include "core/log/command.h"
#include "core/state/state.h"

namespace attune::server {

// The first message of an executor on a connection. These functions consider only the message, not
// other connections.

inline constexpr size_t kHelloBytesMax = 64 << 10;

v1::Refusal MakeRefusal(v1::Refusal::Code code, const std::string& message);

// Returns why the executor is refused; nullopt if it is not. `may_join`: its token allows it to
// join.
std::optional<v1::Refusal> CheckHello(const v1::Hello& hello, bool may_join);

// REQUIRES: CheckHello returned nullopt.
JoinExecutor ToJoinCommand(const v1::Hello& hello);

// The sweeps that a lost part of this log created and of which the executor has files. Files of
// other logs are not included.
std::vector<SweepFiles> LostSweeps(const State& state, const v1::Hello& hello);

// Sets the executor that sent a command.
void SetSender(const v1::Hello& hello, Command& command);

}  // namespace attune::server
