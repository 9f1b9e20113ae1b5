#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace attune::server {

// `what` has failed with this errno: kStorageFull or kDenied.
Error SystemError(const std::string& what, int number);

// The word in a small file, without blanks behind it; empty where there is no file, or nothing in
// it. kDenied: it cannot be read.
Result<std::string> ReadWord(const std::filesystem::path& path);

// Whole and durable, or not at all; readable by its owner only.
Status WriteWhole(const std::filesystem::path& path, const std::string& text);

}  // namespace attune::server
