#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "attune/v1/executor.pb.h"
#include "executor/gang/spec.h"

namespace attune::agent {

// Compares what the server wants with what is here, and says what to do about it. Decides only:
// starts nothing, sends nothing, and does not know the time.
class Reconciler {
 public:
  struct Actions {
    std::vector<gang::AttemptId> cancel;
    std::vector<gang::AttemptId> abort;  // as cancel, without a grace: they failed elsewhere
    std::vector<v1::Assignment> start;
    std::vector<std::pair<gang::AttemptId, gang::Verdict>> tell;
    std::vector<gang::AttemptId> yield;  // once told
    std::vector<gang::AttemptId> finish;
    std::vector<std::pair<gang::AttemptId, channel::Rendezvous>> meet;
    std::vector<gang::AttemptId> disown;  // to be said to have ended: there is no gang of theirs
  };

  // Takes what the server wants. One that is not newer than the last is ignored.
  void Want(v1::Desired desired);

  // A new connection numbers its wishes anew.
  void ForgetRevision() { revision_ = 0; }

  // Nothing is wanted until the server says so again.
  void ForgetWishes();

  // What is to be done now, in the order of the fields. Gangs to start and to cancel are taken to
  // be started and cancelled, and those to disown to have ended; verdicts, requests to yield and
  // where rank 0 listens are repeated each time, and delivered once by the gang.
  //
  // An assignment is started when its trial has no other gang, none of its GPUs is still held by a
  // gang that is being torn down, it has not ended before, and it is known where it meets, if rank
  // 0 is on another host. A gang of a sweep of the same number in another log is gone before. One
  // that the server assigned before a backup was restored is not started: it may have ended in the
  // part of the log that was lost, so it is disowned. One that is older (by its epoch) than another
  // of its trial is stale and ignored.
  Actions Reconcile();

  // Cancels all gangs; returns those that were not being torn down yet.
  std::vector<gang::AttemptId> CancelAll();

  // The gangs that are not being torn down.
  std::vector<gang::AttemptId> Running() const;

  // All gangs with processes, those being torn down among them.
  std::vector<gang::AttemptId> Live() const;

  // The gang is gone. Reconcile() may have more to do.
  void OnEnded(const gang::AttemptId& attempt);

  // The server knows that the attempt has ended. Until it no longer lists it either, it is
  // remembered, lest it be started again.
  void OnEndAcknowledged(const gang::AttemptId& attempt);

  // Whether there is any of Live().
  bool has_live() const { return !live_.empty(); }

 private:
  struct Gang {
    std::set<uint32_t> gpus;
    uint64_t sweep_identity = 0;  // of the log when its sweep was created
    uint64_t identity = 0;        // of the log when it started
    bool ending = false;
  };

  static void Guide(const v1::Assignment& assignment, Actions& actions);
  void ForgetOldEnds();
  bool IsStale(const gang::AttemptId& attempt) const;
  bool MayStart(const v1::Assignment& assignment) const;

  std::map<gang::AttemptId, v1::Assignment> wanted_;
  std::vector<gang::AttemptId> unwanted_;  // that the server holds slots for
  std::set<gang::AttemptId> fallen_;       // unwanted ones that have failed on other hosts
  uint64_t revision_ = 0;
  uint64_t identity_ = 0;    // v1::Desired::identity
  uint64_t last_epoch_ = 0;  // and last_epoch
  std::map<gang::AttemptId, Gang> live_;
  struct End {
    uint64_t identity = 0;  // of the log when the gang started
    bool acknowledged = false;
  };
  std::map<gang::AttemptId, End> ended_;
};

}  // namespace attune::agent
