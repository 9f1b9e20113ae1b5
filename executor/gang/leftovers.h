#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <vector>

#include "executor/gang/spec.h"
#include "executor/gang/words.h"
#include "executor/processes/cgroup.h"
#include "executor/processes/loop.h"
#include "system/unique_fd.h"

namespace attune::gang {

// Ends what the ranks of one gang have started and left behind, by all means that there are: the
// gang's process group, its cgroup if it has one, and the children that this process has adopted.
//
// Used on the loop's thread only.
class Leftovers {
 public:
  struct Services {
    Loop& loop;
    // Whether a child of this process is a guard, a launcher, or a rank of some gang.
    std::function<bool(pid_t)> is_known;
    // Whether a gang of another attempt runs.
    std::function<bool(const AttemptId&)> others_run;
  };

  // `again` is called when End() or HaveLeft() is worth another call; on the loop, never within
  // these.
  Leftovers(Services services, const AttemptId& attempt, std::function<void()> again);

  // Kills what is left. True when that is nothing; otherwise it takes a moment to die, may leave
  // more behind, and `again` follows. REQUIRES: group > 1; the gang's ranks have been reaped.
  bool End(pid_t group, Cgroup* cgroup);

  // Sends SIGTERM, once, to each descendant of a rank that has ended. Descendants of a rank that
  // still runs get none: it may need them, or end them by itself. One that this process has adopted
  // may be of any running rank, unless its environment names another one. REQUIRES: group > 1.
  void Terminate(pid_t group, const Cgroup* cgroup, const std::set<int>& running_ranks);

  // What is left and runs. REQUIRES: group > 1.
  std::set<pid_t> Find(pid_t group, const Cgroup* cgroup);

  // Whether nothing is left; otherwise `again` follows when a process has ended. As End(), but
  // kills nothing.
  bool HaveLeft(pid_t group, const Cgroup* cgroup);

  // Before End(), if HaveLeft() was called.
  void StopWaiting() { dying_.clear(); }

 private:
  // Looks for orphans, and sees to it that `again` follows if it cannot be sure of all.
  std::vector<pid_t> FindOrphansOfAttempt();
  void Await(UniqueFd pidfd);

  Services services_;
  AttemptId attempt_;
  std::function<void()> again_;
  struct Dying {
    UniqueFd pidfd;
    Loop::Subscription exit;
  };
  std::vector<Dying> dying_;
  std::set<pid_t> terminated_;
  Loop::Subscription second_look_;
  int second_looks_ = 0;
};

}  // namespace attune::gang
