#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "executor/gang/spec.h"

namespace attune::gang {

// After a backup was restored the log gives numbers of sweeps, trials and attempts again that it
// gave before. What such a sweep, trial or attempt has left in the data folder is set aside: it
// goes to
// `<data>/set-aside`, where nothing of Attune looks at it again. The same holds for a sweep of
// another server that used this data folder.
//
// Executors of one data folder take turns by a lock on `<data>/sweeps`.

// Makes the folder of the gang's sweep, marked with the sweep's identity. One that has another mark
// is set aside first.
Status ClaimSweepFolder(const GangSpec& spec);

// Sets aside what the log does not know of the trial's folder, and marks the attempt's folder with
// its epoch. Does nothing if no backup was restored since the sweep was created, or if another
// executor of this data folder has done it for this attempt.
Status ClaimTrialFolder(const GangSpec& spec);

// Whether the gang is to resume from a checkpoint in this data folder that is not there, although
// the folder of its sweep is. To be asked before the folders are claimed.
bool IsResumeGone(const GangSpec& spec);

// Sets the folder of a sweep aside if it has this mark.
Status SetSweepAside(const std::filesystem::path& sweep_dir, uint64_t identity,
                     const std::filesystem::path& set_aside_dir);

}  // namespace attune::gang
