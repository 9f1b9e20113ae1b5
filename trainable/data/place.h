#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

#include "attune/checkpoint.h"
#include "attune/error.h"

// A position in the data as tensors, for a checkpoint.
namespace attune::inline sdk::trainable {

inline constexpr const char* kEpoch = "epoch";
inline constexpr const char* kOffset = "offset";
inline constexpr const char* kSize = "size";  // a stream has none
inline constexpr const char* kSeed = "seed";

inline at::Tensor NumberTensor(std::int64_t value) { return at::full({1}, value, at::kLong); }

// Throws attune::Error if the state has no such number.
inline std::int64_t NumberIn(const TensorMap& state, const char* name) {
  const auto found = state.find(name);
  if (found == state.end() || found->second.numel() != 1) {
    throw Error(std::string("sampler: the saved state has no number `") + name +
                "`; it does not come from a sampler or data loader");
  }
  return found->second.item<std::int64_t>();
}

}  // namespace attune::inline sdk::trainable
