#pragma once

#include <cstdint>

namespace attune {

// The version of this program, such as "0.1.0".
extern const char* const kVersion;

// The format of everything that outlives a program or crosses to another one: the log and the
// snapshots in a data folder, the protocol with executors, and sweep files (`apiVersion:
// attune/v1`). Until version 1.0.0 is released, format 1 may change without notice. From then on a
// change needs another number, and a newer program reads the data folders of older ones.
inline constexpr uint32_t kFormat = 1;

}  // namespace attune
