#pragma once

#include <optional>
#include <string>

#include "attune/v1/executor.pb.h"
#include "core/log/command.h"

namespace attune::server {

// What an executor says first on a connection, by itself: whoever else is connected does not
// come into it.

v1::Refusal MakeRefusal(v1::Refusal::Code code, const std::string& message);

// Why it is refused; nullopt: it is not. `token`: this server's.
std::optional<v1::Refusal> FaultOf(const v1::Hello& hello, const std::string& token);

// REQUIRES: no fault.
JoinExecutor JoinOf(const v1::Hello& hello);

// Who says so, in a command that asks for it.
void SetSpeaker(const v1::Hello& hello, Command& command);

}  // namespace attune::server
