#include "core/base/random.h"

#include <cmath>

#include "base/check.h"

namespace attune {
namespace {

// FNV-1a, 64 bits.
uint64_t HashText(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): every input bit moves every
// output bit, so that seeds 1, 2, 3 give unrelated keys.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

constexpr uint32_t LowWord(uint64_t x) { return static_cast<uint32_t>(x); }
constexpr uint32_t HighWord(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

}  // namespace

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultiplier0 = 0xd2511f53, kMultiplier1 = 0xcd9e8d57;
  constexpr uint32_t kWeyl0 = 0x9e3779b9, kWeyl1 = 0xbb67ae85;

  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {HighWord(product1) ^ counter[1] ^ key[0], LowWord(product1),
               HighWord(product0) ^ counter[3] ^ key[1], LowWord(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// Seed and purpose make the key. One word of the counter holds only the trial, so two trials never
// share a block. The two lower words count blocks.
RandomStream::RandomStream(uint64_t seed, TrialNumber trial, std::string_view purpose) {
  const uint64_t key = Mix(Mix(seed) ^ HashText(purpose));
  key_ = {LowWord(key), HighWord(key)};
  counter_ = {0, 0, trial.value, 0};
}

uint64_t RandomStream::Bits() {
  if (used_ == 4) {
    block_ = Philox(counter_, key_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  const uint64_t low = block_[used_];
  const uint64_t high = block_[used_ + 1];
  used_ += 2;
  return high << 32 | low;
}

double RandomStream::Uniform() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }

double RandomStream::Uniform(double low, double high) {
  const double value = low + (high - low) * Uniform();
  // The sum may round up to the end that is not included.
  return value < high ? value : std::nextafter(high, low);
}

int64_t RandomStream::Integer(int64_t low, int64_t high) {
  ATTUNE_CHECK(low <= high);
  const uint64_t count = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  if (count == 0) return static_cast<int64_t>(Bits());  // all 2^64 integers

  // The lowest 2^64 mod count draws would make some remainders more likely, so they are redrawn.
  const uint64_t surplus = (0 - count) % count;
  uint64_t bits = Bits();
  while (bits < surplus) bits = Bits();
  return static_cast<int64_t>(static_cast<uint64_t>(low) + bits % count);
}

}  // namespace attune
