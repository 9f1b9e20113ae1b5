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

// Where this process is in the version 2 hierarchy, as far as it sees that.
struct OwnCgroup {
  std::filesystem::path mount;
  std::filesystem::path below;  // from there to its own cgroup; empty: that is the mount's root

  std::filesystem::path folder() const { return mount / below; }
};

// An error says why it is in none. `proc` is /proc; a test has another one.
Result<OwnCgroup> FindOwnCgroup(const std::filesystem::path& proc);

// One cgroup: what was started in it stays in it with all that it starts, whatever that does to its
// environment, its session and its parents. Removed with this object, or soon after, once empty.
class Cgroup {
 public:
  Cgroup(Cgroups& all, std::filesystem::path folder, UniqueFd descriptor);
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  // Of the folder, for SpawnRequest::cgroup.
  int descriptor() const { return descriptor_.get(); }

  // What is in it, and in cgroups that ranks made in it.
  std::set<pid_t> Processes() const;

  // Kills all that is in it, and in cgroups that ranks made in it, which can start nothing more.
  // Their pidfds, for those that have not ended yet; empty when nobody is left. One that it cannot
  // kill is left behind after half a second, and the log says so.
  std::vector<UniqueFd> Kill();

 private:
  bool Holds(pid_t pid) const;

  Cgroups& all_;
  std::filesystem::path folder_;
  UniqueFd descriptor_;
  bool frozen_ = false;
};

// The cgroups (version 2) of an executor's gangs and launchers, where the system lets it make some.
// Controllers are not asked for.
//
//   <this process's cgroup>/attune-<identity>-<random>/1, 2, …
//
// Each object has a folder of its own, so that whoever ends an earlier one's, however late, ends
// nothing of this one's. Those below are threaded, so that a process which a launcher has forked
// can move from the launcher's into its gang's by writing to cgroup.threads. That takes 0.1 ms; by
// cgroup.procs, or from another domain, the kernel waits for an RCU grace period, 10 ms and more.
//
// Used on one thread.
class Cgroups {
 public:
  struct Options {
    // Tells executors on this host apart, and is the same when this one starts again. Empty: make
    // no cgroups.
    std::string identity;
    std::filesystem::path proc = "/proc";
  };

  // Kills first what earlier processes of this identity have left. An error says why there can be
  // none here.
  static Result<std::unique_ptr<Cgroups>> Make(const Options& options);

  ~Cgroups();

  // Null where that fails; the log says why.
  std::unique_ptr<Cgroup> Add();

  const std::filesystem::path& folder() const { return folder_; }

 private:
  friend class Cgroup;

  explicit Cgroups(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Result<std::unique_ptr<Cgroup>> AddOne();
  void Remove(const std::filesystem::path& folder);
  void RemoveLeft();

  std::filesystem::path folder_;
  int next_ = 1;
  std::vector<std::filesystem::path> left_;  // those whose last process was not quite gone
};

// Warns, once in the life of this process, if the child could not start in its cgroup: all others
// will not either.
void WarnWithoutCgroup(const Child& child);

// Kills everything in the folder of a Cgroups, once, and leaves that as it was.
void KillCgroups(const std::filesystem::path& folder);

// Kills everything in the folder of a Cgroups and removes it; others may do so at the same time.
// False when that takes longer than a few seconds. Both need no object, so that a guard can do it
// too.
bool EndCgroups(const std::filesystem::path& folder);

}  // namespace attune::gang
