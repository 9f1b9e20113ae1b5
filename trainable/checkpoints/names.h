#pragma once

#include <string>
#include <string_view>

// How the files of a checkpoint are called, for those who write them and those who read them.
namespace attune::inline sdk::trainable {

inline constexpr std::string_view kTensorEnding = ".safetensors";
inline constexpr std::string_view kConfigEnding = ".json";

// The trial's configuration, which the SDK adds; a name that no program's own file has.
inline constexpr std::string_view kTrialConfig = "attune-config";

// Of the files of one rank, before their endings.
inline std::string ShardSuffix(int rank) { return ".rank-" + std::to_string(rank); }

}  // namespace attune::inline sdk::trainable
