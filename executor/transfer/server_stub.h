#pragma once

#include <functional>
#include <memory>

#include "attune/v1/executor.grpc.pb.h"

namespace attune::agent {

// Returns the stub of the current channel to the server; null if there is none. Thread-safe.
using ServerStub = std::function<std::shared_ptr<v1::Executors::StubInterface>()>;

}  // namespace attune::agent
