#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/sweep_spec.h"
#include "core/value.h"
#include "core/verdict.h"

namespace attune {

enum class SweepState { kRunning, kPaused, kCompleted, kStopped, kFailed, kKilled };
enum class TrialState { kPending, kRunning, kPaused, kCompleted, kStopped, kFailed, kKilled };
enum class AttemptState { kAssigned, kRunning, kEnded };
enum class Outcome { kFinished, kStopped, kPaused, kFailed, kLost, kKilled };

std::string_view Name(SweepState state);  // running, …: the words of every surface
std::string_view Name(TrialState state);
std::string_view Name(AttemptState state);
std::string_view Name(Outcome outcome);

bool Ended(SweepState state);
bool Ended(TrialState state);

// Metrics of a trial at a step, from rank 0. `seconds` is training time since the attempt began.
struct Report {
  Step step;
  Metrics metrics;
  Seconds seconds{0};
};

// Where a rank runs: what it occupies on its executor.
struct RankSlot {
  std::string executor;
  int local_rank = 0;
  int cpus = 1;
  std::vector<int> gpus;  // indices of the executor's GPUs
  int64_t memory_bytes = 0;
  bool operator==(const RankSlot&) const = default;
};

struct CheckpointRef {
  Step step;
  std::string path;
  std::string digest;
  bool operator==(const CheckpointRef&) const = default;
};

enum class FailureKind { kNone, kExit, kSignal, kStall, kStart, kProtocol, kLease };
std::string_view Name(FailureKind kind);

struct Failure {
  FailureKind kind = FailureKind::kNone;
  int rank = -1;
  int exit_code = 0;
  int signal = 0;
  std::string message;   // one sentence
  std::string log_tail;  // last lines of that rank's log
};

// ---- Facts, complete in themselves ---------------------------------------------------------

struct SweepCreated {
  SweepId sweep;
  SweepSpec spec;
  std::string source;           // the sweep file as it was sent
  std::string idempotency_key;  // empty: none
};
struct SweepStopping {  // no new trials; the sweep ends as `outcome` when the running ones have
  SweepId sweep;
  SweepState outcome;  // kStopped, kFailed or kKilled
  std::string reason;
};
struct SweepEnded {
  SweepId sweep;
  SweepState state;
  std::string reason;
};
struct TrialCreated {
  TrialId trial;
  Config config;
  std::string origin;  // name of the searcher, or "initial_points"
};
struct SearchExhausted {  // the searcher has no further configuration
  SweepId sweep;
};
struct AttemptAssigned {
  AttemptId attempt;
  Epoch epoch;
  std::vector<RankSlot> ranks;  // by rank
  std::optional<CheckpointRef> resume;
  Step milestone;  // 0: none
};
struct AttemptStarted {
  AttemptId attempt;
  std::vector<int64_t> pids;  // by rank
};
struct AttemptFirstStep {  // every rank has finished its first optimizer step
  AttemptId attempt;
  Time at;  // by the executor's clock
};
struct TrialReported {
  AttemptId attempt;
  Report report;
};
struct TrialDecided {  // the verdict on a report at a milestone
  AttemptId attempt;
  Step step;
  Verdict verdict;
  Step milestone;  // the next one; 0 when it does not continue
};
struct CheckpointSaved {
  AttemptId attempt;
  CheckpointRef checkpoint;
  int64_t bytes = 0;
};
struct AttemptEnded {
  AttemptId attempt;
  Outcome outcome;
  Failure failure;  // kFailed
};
struct TrialRequeued {  // will be tried again
  TrialId trial;
  std::string reason;
};
struct TrialEnded {
  TrialId trial;
  TrialState state;
  std::string reason;
};
struct ExecutorJoined {
  std::string name;
  std::string instance;
  Incarnation incarnation;
  std::string address;
  Resources resources;
};
struct ExecutorLost {
  std::string name;
  Incarnation incarnation;
  std::string reason;
};

using Fact = std::variant<SweepCreated, SweepStopping, SweepEnded, SearchExhausted, TrialCreated,
                          AttemptAssigned, AttemptStarted, AttemptFirstStep, TrialReported,
                          TrialDecided, CheckpointSaved, AttemptEnded, TrialRequeued, TrialEnded,
                          ExecutorJoined, ExecutorLost>;

// A fact with its place in the log.
struct Event {
  EventSeq seq;
  Time time;
  Fact fact;
};

// The sweep and the trial a fact is about, where it is about one.
std::optional<SweepId> SweepOf(const Fact& fact);
std::optional<TrialId> TrialOf(const Fact& fact);

}  // namespace attune
