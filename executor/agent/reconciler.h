#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "attune/v1/executor.pb.h"
#include "executor/gang/spec.h"

namespace attune::agent {

// Compares the desired state from the server with the gangs on this host and decides what to do. It
// has no side effects and no clock.
class Reconciler {
 public:
  struct Actions {
    std::vector<gang::AttemptId> cancel;
    // Like cancel, but without a grace: they failed on another host.
    std::vector<gang::AttemptId> abort;
    std::vector<v1::Assignment> start;
    std::vector<std::pair<gang::AttemptId, gang::Verdict>> set_verdict;
    std::vector<gang::AttemptId> yield;  // after the verdicts
    std::vector<gang::AttemptId> peers_finished;
    std::vector<std::pair<gang::AttemptId, channel::Rendezvous>> set_rendezvous;
    // Must be reported as ended, because they have no gang here.
    std::vector<gang::AttemptId> disown;
  };

  // Sets the desired state. Ignores a revision that is not newer than the last one.
  void SetDesired(v1::Desired desired);

  // Call this for each new connection, which restarts the numbering of revisions.
  void ForgetRevision() { revision_ = 0; }

  // Clears the desired state until the next SetDesired().
  void ForgetDesired();

  // Returns the actions to take now, in the order of the fields. It assumes that the caller takes
  // them: gangs count as started, as cancelled, or, if disowned, as ended. Verdicts, requests to
  // yield and addresses of rank 0 are repeated in each result; a gang acts on each of them once.
  //
  // An assignment starts if all of these hold: its trial has no other gang; it has not ended
  // before; none of its GPUs is held by a gang that is being torn down; no gang of another log's
  // sweep with the same number is left; and its rendezvous is known if rank 0 is on another host.
  //
  // An assignment from before the restore of a backup is disowned: it may have ended in the lost
  // part of the log. An assignment with an older epoch than another one of its trial is stale and
  // ignored.
  Actions Reconcile();

  // Marks all gangs as ending; returns those that were not ending before.
  std::vector<gang::AttemptId> CancelAll();

  // Gangs that are not being torn down.
  std::vector<gang::AttemptId> RunningGangs() const;

  // All gangs with processes, including those that are being torn down.
  std::vector<gang::AttemptId> LiveGangs() const;

  // The gang is gone. Call Reconcile() afterwards.
  void OnEnded(const gang::AttemptId& attempt);

  // The server knows that the attempt has ended. The attempt is remembered until the server no
  // longer lists it, so that it does not start again.
  void OnEndAcknowledged(const gang::AttemptId& attempt);

  // Whether LiveGangs() is not empty.
  bool has_live() const { return !live_.empty(); }

 private:
  struct Gang {
    std::set<uint32_t> gpus;
    uint64_t sweep_identity = 0;  // identity of the log in which its sweep was created
    uint64_t identity = 0;        // identity of the log when the gang started
    bool ending = false;
  };

  static void AddUpdates(const v1::Assignment& assignment, Actions& actions);
  void ForgetOldEnds();
  bool IsStale(const gang::AttemptId& attempt) const;
  bool MayStart(const v1::Assignment& assignment) const;

  std::map<gang::AttemptId, v1::Assignment> wanted_;
  std::vector<gang::AttemptId> unwanted_;       // the server holds slots for them
  std::set<gang::AttemptId> failed_elsewhere_;  // unwanted gangs that have failed on another host
  uint64_t revision_ = 0;
  uint64_t identity_ = 0;    // from v1::Desired
  uint64_t last_epoch_ = 0;  // from v1::Desired
  std::map<gang::AttemptId, Gang> live_;
  struct End {
    uint64_t identity = 0;  // of the log when the gang started
    bool acknowledged = false;
  };
  std::map<gang::AttemptId, End> ended_;
};

}  // namespace attune::agent
