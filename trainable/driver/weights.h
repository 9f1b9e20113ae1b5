#pragma once

#include <vector>

#include "attune/checkpoint.h"

namespace attune::inline sdk::trainable {

// Returns the mean of several workers' weights, one tensor at a time. Floating-point tensors are
// averaged in double precision; others are copied from worker 0. Throws attune::Error with the
// worker unless names, shapes and types are the same.
TensorMap MeanOf(const std::vector<TensorMap>& worker_weights);

}  // namespace attune::inline sdk::trainable
