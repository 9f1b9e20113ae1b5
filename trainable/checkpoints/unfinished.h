#pragma once

#include <filesystem>

namespace attune::trainable {

// Removes what attempts before this one were writing into `checkpoint_dir` when they ended. Leases
// see to it that none of them still writes.
void RemoveUnfinished(const std::filesystem::path& checkpoint_dir, int attempt);

}  // namespace attune::trainable
