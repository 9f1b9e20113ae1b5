#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "executor/gang/log_match.h"
#include "executor/gang/spec.h"

namespace attune::gang {

// Every rank of the gang on this host has a process now.
struct Started {
  std::vector<pid_t> pids;  // in the order of GangSpec::ranks
};

// Every rank on this host has finished its first optimizer step.
struct FirstStep {};

enum class FailureKind {
  kExit,
  kSignal,
  kStall,
  kStart,
  kProtocol,
  kLease,
  kHost,
  kDisk,
  kEnvironment
};

struct Failure {
  FailureKind kind = FailureKind::kExit;
  int rank = -1;         // the first that failed; -1: no particular rank
  int exit_code = 0;     // with kExit; -1: the gang was torn down before the rank exited by itself
  int signal = 0;        // with kSignal
  std::string message;   // one sentence: the text of the exception, or how the process ended
  std::string log_tail;  // the last lines of the rank's log, at most kLogTailBytesMax
  bool lost_peer = false;   // the rank reports that another rank is gone
  bool disk_full = false;   // with kHost: a disk or a quota of this host is full
  uint64_t room_bytes = 0;  // with disk_full: free bytes that were not enough
  LogMatch match;
  // The checkpoint to resume from, if it is missing in this data folder.
  std::optional<CheckpointName> missing_checkpoint = {};
};

enum class Outcome { kFinished, kFailed, kCancelled };

// No process of the gang is left.
struct Ended {
  Outcome outcome = Outcome::kFinished;
  std::optional<Failure> failure;  // with kFailed
  std::string silence;             // with kFinished: a possible reason why rank 0 reported nothing
};

// Metrics that rank 0 has logged, numbered from 1 within the attempt.
struct NumberedLog {
  int64_t number = 0;
  Logged logged;
};

// A Report in a fact always says whether rank 0 waits for a verdict.
struct Fact {
  AttemptId attempt;
  int64_t time_us = 0;  // wall clock, microseconds since 1970
  std::variant<Started, FirstStep, SharedRendezvous, Report, NumberedLog, CheckpointSaved, Ended>
      what;
};

// Called on the supervision thread, in order; must not block. Ended is the last fact of an attempt.
using FactSink = std::function<void(Fact)>;

}  // namespace attune::gang
