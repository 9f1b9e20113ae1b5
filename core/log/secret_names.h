#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/log/sweep_spec.h"

// Names of secrets (docs/how-to/security.md). A secret is an environment variable of a program
// whose value the log never holds.
namespace attune {

inline constexpr size_t kSecretNameBytesMax = 128;

// The prefix of the variables that tell a program its rank, its trial and more.
inline constexpr std::string_view kReservedPrefix = "ATTUNE_";

// Whether the name has only letters, digits and _, does not begin with a digit or kReservedPrefix,
// and is not too long.
bool IsSecretName(std::string_view name);

// Whether a variable with this name usually holds a secret, such as WANDB_API_KEY.
bool LooksLikeSecret(std::string_view name);

// A sentence for each variable of `env` that looks like a secret.
std::vector<std::string> SecretWarnings(const Program& program);

}  // namespace attune
