#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <vector>

#include "executor/gang/spec.h"

namespace attune::gang {

// Processes that ranks of an attempt started, that left the gang's process group, and whose parents
// are gone, so that they have become children of this process, the subreaper. They are known by the
// attempt's variables in the environment that they began with. One that was forked without an exec
// by a rank out of a launcher has the launcher's environment; it counts as this attempt's if
// `alone`, that is, if no other gang runs.
//
// Children for which `is_known` holds are passed over. Adopted ones that have ended are reaped.
struct Orphans {
  std::vector<pid_t> pids;
  // There is one that was just becoming another program, and between two it has no environment:
  // look again a moment later.
  bool is_unsure = false;
};
Orphans FindOrphans(const AttemptId& attempt, bool alone,
                    const std::function<bool(pid_t)>& is_known);

// The rank whose environment a process began with; empty: it began with none of a rank.
std::optional<int> RankOf(pid_t pid);

}  // namespace attune::gang
