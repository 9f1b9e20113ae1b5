#pragma once

#include <ATen/core/Tensor.h>

namespace attune::inline sdk::trainable {

// The numbers of a parameter's gradient, to be changed in place; undefined if there is none. Rows
// that come several times in a sparse gradient are added up first.
inline at::Tensor GradientValues(const at::Tensor& parameter) {
  const at::Tensor& gradient = parameter.grad();
  if (!gradient.defined() || !gradient.is_sparse()) return gradient;
  parameter.mutable_grad() = gradient.coalesce();
  return parameter.grad()._values();
}

}  // namespace attune::inline sdk::trainable
