#include "searchers/model/sobol_sequence.h"

#include <algorithm>
#include <bit>

#include "core/base/random.h"

namespace attune::searchers {
namespace {

constexpr int kBits = 32;

// The recurrence of Bratley and Fox, "Algorithm 659", ACM TOMS 14, 1988, §2.
void Directions(const SobolRow& row, uint32_t* directions) {
  const int degree = std::bit_width(row.polynomial) - 1;
  for (int i = 0; i < std::min(std::max(degree, 1), kBits); ++i) {
    directions[i] = row.initial[i] << (kBits - 1 - i);
  }
  if (degree == 0) {  // van der Corput
    for (int i = 0; i < kBits; ++i) directions[i] = uint32_t{1} << (kBits - 1 - i);
    return;
  }
  for (int i = degree; i < kBits; ++i) {
    directions[i] = directions[i - degree] ^ (directions[i - degree] >> degree);
    for (int k = 1; k < degree; ++k) {
      if (row.polynomial >> (degree - k) & 1) directions[i] ^= directions[i - k];
    }
  }
}

// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Flips each bit at random. The random choice depends only on the bits above it.
uint32_t Scramble(uint32_t bits, uint64_t key) {
  uint32_t scrambled = 0;
  for (int i = 0; i < kBits; ++i) {
    const uint64_t above = uint64_t{1} << i | (i == 0 ? 0 : bits >> (kBits - i));
    const auto coin = static_cast<uint32_t>(Mix(key ^ above * 0x9e3779b97f4a7c15) >> 63);
    scrambled = scrambled << 1 | ((bits >> (kBits - 1 - i) & 1) ^ coin);
  }
  return scrambled;
}

}  // namespace

SobolSequence::SobolSequence(size_t dimensions, uint64_t seed)
    : directions_(std::min(dimensions, kSobolDimensions) * kBits), seed_(seed) {
  for (size_t i = 0; i * kBits < directions_.size(); ++i) {
    Directions(kSobolRows[i], &directions_[i * kBits]);
  }
}

uint32_t SobolSequence::Unscrambled(size_t dimension, uint32_t index) const {
  uint32_t bits = 0;
  for (int i = 0; index != 0; ++i, index >>= 1) {
    if (index & 1) bits ^= directions_[dimension * kBits + static_cast<size_t>(i)];
  }
  return bits;
}

double SobolSequence::Coordinate(size_t dimension, uint32_t index) const {
  const TrialNumber key(static_cast<uint32_t>(dimension));
  if (dimension * kBits >= directions_.size()) {
    RandomStream stream(seed_ ^ Mix(index), key, "sobol/beyond");
    return stream.Uniform();
  }
  RandomStream stream(seed_, key, "sobol/scramble");
  return Scramble(Unscrambled(dimension, index), stream.Bits()) * 0x1p-32;
}

}  // namespace attune::searchers
