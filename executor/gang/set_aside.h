#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "executor/gang/spec.h"

namespace attune::gang {

// After the restore of a backup, the log may reuse numbers of sweeps, trials and attempts. Files of
// an earlier sweep, trial or attempt with the same number are set aside: they are moved to
// `<data>/set-aside`, which Attune never reads. The same applies to sweeps of another server that
// used this data folder.
//
// A lock on `<data>/sweeps` serialises the executors that share a data folder.

// Makes the folder of the gang's sweep and marks it with the sweep's identity. First sets a folder
// with another mark aside.
Status ClaimSweepFolder(const GangSpec& spec);

// Sets aside files of the trial that the log does not know, and marks the attempt's folder with its
// epoch. Does nothing if no backup was restored since the sweep was created, or if another executor
// of this data folder has done it for this attempt.
Status ClaimTrialFolder(const GangSpec& spec);

// Whether the gang must resume from a checkpoint that is missing in this data folder, although the
// folder of its sweep exists. Call it before the folders are claimed.
bool IsResumeGone(const GangSpec& spec);

// Sets the folder of a sweep aside if its mark is `identity`.
Status SetSweepAside(const std::filesystem::path& sweep_dir, uint64_t identity,
                     const std::filesystem::path& set_aside_dir);

}  // namespace attune::gang
