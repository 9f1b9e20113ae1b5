#pragma once

#include <filesystem>

namespace attune::inline sdk::trainable {

// Removes incomplete checkpoints of earlier attempts from `checkpoint_dir`. Leases ensure that no
// earlier attempt still writes.
void RemoveUnfinished(const std::filesystem::path& checkpoint_dir, int attempt);

// Returns a number greater than every attempt with a checkpoint in the folder, so that no name is
// taken. It is also greater than every attempt with an incomplete checkpoint, so that those are
// removed.
int NextAttempt(const std::filesystem::path& checkpoint_dir);

}  // namespace attune::inline sdk::trainable
