#pragma once

#include <string>
#include <string_view>

// Names of the files of a checkpoint, for writers and readers.
namespace attune::inline sdk::trainable {

inline constexpr std::string_view kTensorEnding = ".safetensors";
inline constexpr std::string_view kConfigEnding = ".json";

// The name of the trial's configuration, which the SDK adds. Files of programs do not use it.
inline constexpr std::string_view kTrialConfig = "attune-config";

// The suffix for files of one rank; the extension follows.
inline std::string ShardSuffix(int rank) { return ".rank-" + std::to_string(rank); }

}  // namespace attune::inline sdk::trainable
