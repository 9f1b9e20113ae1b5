#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "system/spawn.h"
#include "system/unique_fd.h"

namespace attune::gang {

class Cgroups;

// The position of this process in the visible part of the cgroup v2 hierarchy.
struct OwnCgroup {
  std::filesystem::path mount;
  // Path from `mount` to the process's cgroup; empty: it is the root of the mount.
  std::filesystem::path below;

  std::filesystem::path folder() const { return mount / below; }
};

// Returns an error if this process is in no visible cgroup. `proc` is /proc, except in tests.
Result<OwnCgroup> FindOwnCgroup(const std::filesystem::path& proc);

// One cgroup. A process that was started in it stays in it with all its descendants, even if they
// change their environment, session or parent. The destructor removes the cgroup; if it is not
// empty yet, it is removed soon after.
class Cgroup {
 public:
  Cgroup(Cgroups& all, std::filesystem::path folder, UniqueFd descriptor);
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  // The descriptor of the folder, for SpawnRequest::cgroup.
  int descriptor() const { return descriptor_.get(); }

  // Processes in it and in cgroups below it, which ranks may have made.
  std::set<pid_t> Processes() const;

  // Kills all processes in it and in cgroups below it, and keeps them from forking. Returns the
  // pidfds of processes that have not ended yet; empty if none remain. A process that cannot be
  // killed is left behind after half a second, with an error in the log.
  std::vector<UniqueFd> Kill();

 private:
  bool Contains(pid_t pid) const;

  Cgroups& all_;
  std::filesystem::path folder_;
  UniqueFd descriptor_;
  bool frozen_ = false;
};

// The cgroups (version 2) of an executor's gangs and launchers, if the system allows them. Needs no
// controllers.
//
//   <this process's cgroup>/attune-<identity>-<random>/1, 2, …
//
// Each object has its own folder, so that a late guard of an earlier object never kills processes
// of this one. The numbered cgroups are threaded, so that a forked process can move from the
// launcher's cgroup to its gang's cgroup by a write to cgroup.threads. That takes 0.1 ms. A move by
// cgroup.procs, or from another domain, waits for an RCU grace period of 10 ms or more.
//
// Not thread-safe.
class Cgroups {
 public:
  struct Options {
    // Unique among the executors of this host, and the same after a restart. Empty: make no
    // cgroups.
    std::string identity;
    std::filesystem::path proc = "/proc";
  };

  // First kills processes that earlier executors of this identity have left. An error says why
  // cgroups are not available.
  static Result<std::unique_ptr<Cgroups>> Make(const Options& options);

  ~Cgroups();

  // Returns null on failure and logs the reason.
  std::unique_ptr<Cgroup> Add();

  const std::filesystem::path& folder() const { return folder_; }

 private:
  friend class Cgroup;

  explicit Cgroups(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Result<std::unique_ptr<Cgroup>> AddOne();
  void Remove(const std::filesystem::path& folder);
  void RetryRemovals();

  std::filesystem::path folder_;
  int next_ = 1;
  // Not removed yet, because their last process was still ending.
  std::vector<std::filesystem::path> not_removed_;
};

// Logs a warning if the child could not start in its cgroup. Warns only once per process, because
// later children fail the same way.
void WarnWithoutCgroup(const Child& child);

// Kills all processes in the folder of a Cgroups object, once, and keeps the folder.
void KillCgroups(const std::filesystem::path& folder);

// Kills all processes in the folder of a Cgroups object and removes it; several processes may do so
// at the same time. Returns false if it takes longer than a few seconds. Both functions need no
// object, so that the guard can call them.
bool EndCgroups(const std::filesystem::path& folder);

}  // namespace attune::gang
