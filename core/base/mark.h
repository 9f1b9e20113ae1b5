#pragma once

#include <cstdint>
#include <string_view>

namespace attune {

// Names bytes by their content (FNV-1a).
constexpr uint64_t Mark(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace attune
