#pragma once

#include <string>

namespace attune::agent {

// Why an agent ended.
struct AgentExit {
  enum class Reason {
    kStopped,     // Stop() was called
    kRefused,     // the server does not want it: token, version
    kSuperseded,  // another process has its name now
    kAlone,       // no word from the server for longer than it waits
  };
  Reason reason = Reason::kStopped;
  std::string message;
};

}  // namespace attune::agent
