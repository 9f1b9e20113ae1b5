#pragma once

#include <cstdint>

namespace attune::inline sdk::trainable {

// One round of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection of 64-bit words whose
// output bits each depend on all input bits.
constexpr std::uint64_t Mix(std::uint64_t word) {
  word += 0x9e3779b97f4a7c15u;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

// A key for draws that belong to `a` and `b` under `seed`.
constexpr std::uint64_t Key(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0) {
  return Mix(Mix(Mix(seed) ^ a) ^ b);
}

}  // namespace attune::inline sdk::trainable
