#pragma once

#include <string>

namespace attune::agent {

// Why an agent ended.
struct AgentExit {
  enum class Reason {
    kStopped,     // Stop() was called
    kRefused,     // the server refused the executor: token, version
    kSuperseded,  // another process has taken its name
    kServerLost,  // no message from the server for AgentOptions::give_up
  };
  Reason reason = Reason::kStopped;
  std::string message;
};

}  // namespace attune::agent
