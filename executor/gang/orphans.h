#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <vector>

#include "executor/gang/spec.h"

namespace attune::gang {

// Processes that ranks of an attempt have started, that have left the gang's process group, and
// whose parents are gone. This process, the subreaper, has adopted them. They are identified by the
// attempt's variables in their initial environment.
//
// A process that a launcher's rank has forked without exec has the environment of the launcher. It
// counts as a process of this attempt if `alone`, that is, if no other gang runs.
//
// Skips children for which `is_known` returns true. Reaps adopted children that have ended.
struct Orphans {
  std::vector<pid_t> pids;
  // A process was in the middle of an exec, when it has no environment. The caller should look
  // again a moment later.
  bool is_unsure = false;
};
Orphans FindOrphans(const AttemptId& attempt, bool alone,
                    const std::function<bool(pid_t)>& is_known);

// The rank in the initial environment of a process; nullopt: it has none.
std::optional<int> RankOf(pid_t pid);

}  // namespace attune::gang
