#pragma once

#include <ATen/core/Tensor.h>

namespace attune::inline sdk::trainable {

// The values of a parameter's gradient, for changes in place; undefined if there is none. Repeated
// rows of a sparse gradient are summed first.
inline at::Tensor GradientValues(const at::Tensor& parameter) {
  const at::Tensor& gradient = parameter.grad();
  if (!gradient.defined() || !gradient.is_sparse()) return gradient;
  parameter.mutable_grad() = gradient.coalesce();
  return parameter.grad()._values();
}

}  // namespace attune::inline sdk::trainable
