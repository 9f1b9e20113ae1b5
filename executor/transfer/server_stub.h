#pragma once

#include <functional>
#include <memory>

#include "attune/v1/executor.grpc.pb.h"

namespace attune::agent {

// The stub of the present channel to the server; null if there is none. Any thread.
using ServerStub = std::function<std::shared_ptr<v1::Executors::StubInterface>()>;

}  // namespace attune::agent
