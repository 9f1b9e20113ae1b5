#pragma once

#include <cstdint>

#include "attune/v1/executor.pb.h"
#include "executor/agent/agent.h"
#include "executor/transfer/direct_sender.h"
#include "system/numbers_file.h"

namespace attune::agent {

// Makes the first message of this executor to the server. `log_position_file` has the log position
// that the executor has seen.
v1::Hello MakeHello(const AgentOptions& options, int64_t started_us, const DirectSender& direct,
                    const NumbersFile& log_position_file);

}  // namespace attune::agent
