#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/event.h"

namespace attune {

// What people, executors and the clock ask of the brain. A command may be refused, may change
// nothing, and leaves no trace but the events it leads to.

// Answered with the sweep of the same non-empty idempotency_key when there is one.
struct CreateSweep {
  SweepSpec spec;
  std::string source;
  std::string idempotency_key;
};

struct StopSweep {  // finish running trials, start none
  SweepId sweep;
};

struct KillSweep {  // end every trial now
  SweepId sweep;
};

// An executor opened its stream. The same `instance` as before is the same process again; another
// one means that the earlier process and its gangs are gone.
struct JoinExecutor {
  std::string name;
  std::string instance;
  std::string address;
  Resources resources;
};

// An executor's lease has ended. Ignored when the incarnation is not the current one.
struct LoseExecutor {
  std::string name;
  Incarnation incarnation;
  std::string reason;
};

// What an executor says about an attempt, fenced by the attempt's epoch: a fact of another epoch,
// of an attempt that has ended, or said before changes nothing.
struct RecordFact {
  Epoch epoch;
  std::variant<AttemptStarted, AttemptFirstStep, TrialReported, CheckpointSaved, AttemptEnded> fact;
};

using Command =
    std::variant<CreateSweep, StopSweep, KillSweep, JoinExecutor, LoseExecutor, RecordFact>;

}  // namespace attune
