#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "system/sha256.h"

namespace attune::inline sdk::trainable {

inline constexpr std::string_view kManifestFile = "manifest.json";

// manifest.json of a checkpoint folder.
struct Manifest {
  std::int64_t step = 0;
  std::int64_t time = 0;  // the step as the server counts it; another where a metric is its time
  int world_size = 1;
  std::map<std::string, FileDigest> files;  // all but the manifest itself
};

std::string ToJson(const Manifest& manifest);

// Throws attune::Error, its message beginning with `where`.
Manifest ParseManifest(std::string_view json, const std::string& where);

}  // namespace attune::inline sdk::trainable
