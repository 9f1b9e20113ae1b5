#pragma once

#include <cstdint>
#include <string_view>

namespace attune {

// A hash of the bytes that identifies their content (FNV-1a, 64 bits).
constexpr uint64_t ContentHash(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace attune
