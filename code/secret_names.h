#pragma once

#include <string_view>

namespace attune::code {

// Whether a file looks like a secret because of its name, such as .env or id_ed25519.
bool HasSecretName(std::string_view path);

// Whether a file with these first bytes is a private key, or the word with which executors join.
bool HasSecretContents(std::string_view first_bytes);

}  // namespace attune::code
