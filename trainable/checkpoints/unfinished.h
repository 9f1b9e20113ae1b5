#pragma once

#include <filesystem>

namespace attune::inline sdk::trainable {

// Removes what attempts before this one were writing into `checkpoint_dir` when they ended. Leases
// see to it that none of them still writes.
void RemoveUnfinished(const std::filesystem::path& checkpoint_dir, int attempt);

// One more than the attempts whose checkpoints lie in the folder, so that no name is taken; and
// than those that were killed while they wrote one, so that what they left is removed.
int NextAttempt(const std::filesystem::path& checkpoint_dir);

}  // namespace attune::inline sdk::trainable
