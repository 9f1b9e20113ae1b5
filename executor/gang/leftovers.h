#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <vector>

#include "executor/gang/channel_types.h"
#include "executor/gang/spec.h"
#include "executor/processes/cgroup.h"
#include "executor/processes/loop.h"
#include "system/unique_fd.h"

namespace attune::gang {

// Ends processes that the ranks of a gang have started and left behind. It finds them by the gang's
// process group, by its cgroup if it has one, and among the children that this process has adopted.
//
// Use on the loop's thread only.
class Leftovers {
 public:
  struct Services {
    Loop& loop;
    // Whether a child of this process is a guard, a launcher, or a rank of some gang.
    std::function<bool(pid_t)> is_known;
    // Whether a gang of another attempt runs.
    std::function<bool(const AttemptId&)> other_gangs_run;
  };

  // `retry` is called on the loop when the caller should call KillRemaining() or AreGone() again.
  // It is never called from within these functions.
  Leftovers(Services services, const AttemptId& attempt, std::function<void()> retry);

  // Kills the remaining processes. Returns true if none remain; otherwise `retry` follows, because
  // dying processes take a moment and may leave more behind. REQUIRES: group > 1; the gang's ranks
  // have been reaped.
  bool KillRemaining(pid_t group, Cgroup* cgroup);

  // Sends SIGTERM, once, to each descendant of a rank that has ended. Descendants of running ranks
  // are spared, because the rank may need them or end them itself. An adopted process may belong to
  // any running rank, unless its environment names a rank that has ended. REQUIRES: group > 1.
  void Terminate(pid_t group, const Cgroup* cgroup, const std::set<int>& running_ranks);

  // Returns the remaining processes that run. REQUIRES: group > 1.
  std::set<pid_t> FindRemaining(pid_t group, const Cgroup* cgroup);

  // Like KillRemaining(), but kills nothing: returns true if no processes remain; otherwise `retry`
  // follows when one has ended.
  bool AreGone(pid_t group, const Cgroup* cgroup);

  // Call this before KillRemaining() if AreGone() was called.
  void StopWaiting() { dying_.clear(); }

 private:
  // Finds orphans, and schedules `retry` if some processes could not be identified.
  std::vector<pid_t> FindOrphansOfAttempt();
  void Await(UniqueFd pidfd);

  Services services_;
  AttemptId attempt_;
  std::function<void()> retry_;
  struct Dying {
    UniqueFd pidfd;
    Loop::Subscription exit;
  };
  std::vector<Dying> dying_;
  std::set<pid_t> terminated_;
  Loop::Subscription retry_timer_;
  int retries_ = 0;
};

}  // namespace attune::gang
