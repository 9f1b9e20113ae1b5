#pragma once

namespace attune::cli {

extern const char* const kVersion;  // 0.1.0

}  // namespace attune::cli
