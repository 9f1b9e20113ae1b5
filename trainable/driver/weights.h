#pragma once

#include <vector>

#include "attune/checkpoint.h"

namespace attune::inline sdk::trainable {

// The mean of several workers' weights, one tensor at a time: of floating-point tensors, in double
// precision; others are worker 0's. Throws attune::Error, naming the worker, unless names, shapes
// and types are the same.
TensorMap MeanOf(const std::vector<TensorMap>& of_workers);

}  // namespace attune::inline sdk::trainable
