#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/base/ids.h"

namespace attune {

// A counter-based stream of random numbers. The numbers depend only on (seed, trial or proposal,
// purpose) and on how many were drawn before. They do not depend on the order of trials or on
// restarts.
//
// The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011). The draws are written here because the standard library's distributions differ between
// implementations.
class RandomStream {
 public:
  // `purpose` is a short name such as "random/suggest". Different names give independent streams.
  RandomStream(uint64_t seed, TrialNumber trial, std::string_view purpose);
  // A proposal gets the same numbers as the trial with that number.
  RandomStream(uint64_t seed, ProposalNumber proposal, std::string_view purpose)
      : RandomStream(seed, TrialNumber(proposal.value), purpose) {}

  uint64_t Bits();                          // 64 uniform bits
  double Uniform();                         // [0, 1), 53 bits
  double Uniform(double low, double high);  // [low, high)
  // An unbiased integer in [low, high]. REQUIRES: low <= high.
  int64_t Integer(int64_t low, int64_t high);

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

// One block of Philox4x32-10. It is public for its known-answer test.
std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

}  // namespace attune
