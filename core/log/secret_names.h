#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/log/sweep_spec.h"

// Names of secrets (docs/how-to/security.md). A secret is an environment variable of a program
// whose value the log never holds.
namespace attune {

inline constexpr size_t kSecretNameBytesMax = 128;

// Programs find their rank, their trial and more in variables with this prefix.
inline constexpr std::string_view kReservedPrefix = "ATTUNE_";

// Letters, digits and _, not a digit first, and without kReservedPrefix.
bool IsSecretName(std::string_view name);

// Whether a variable with this name usually holds a secret, such as WANDB_API_KEY.
bool LooksLikeSecret(std::string_view name);

// A sentence for each variable of `env` that looks like a secret.
std::vector<std::string> SecretWarnings(const Program& program);

}  // namespace attune
