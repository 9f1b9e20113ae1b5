#pragma once

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include <memory>

#include "attune/distributed_model.h"

namespace attune::inline sdk::trainable {

// Creates the hook by which a Reducer sends a full bucket in a smaller type; null for kNone.
std::unique_ptr<c10d::CommHookInterface> MakeCompressionHook(
    GradientCompression compression, const c10::intrusive_ptr<c10d::ProcessGroup>& group);

}  // namespace attune::inline sdk::trainable
