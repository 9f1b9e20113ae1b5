#pragma once

#include <string_view>

namespace attune {

// Whether the secret that a client shows is the known one. The time does not depend on where they
// differ, so nobody can guess a secret letter by letter. An empty known secret never matches.
bool SecretsMatch(std::string_view shown, std::string_view known);

}  // namespace attune
