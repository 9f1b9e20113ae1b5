#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "core/log/sweep_spec.h"
#include "core/space/value.h"

// Values inside of events.
namespace attune {

enum class SweepState { kRunning, kPaused, kCompleted, kStopped, kFailed, kKilled };
enum class TrialState { kPending, kRunning, kPaused, kCompleted, kStopped, kFailed, kKilled };
enum class AttemptState { kAssigned, kRunning, kEnded };
enum class Outcome { kFinished, kStopped, kPaused, kFailed, kLost, kKilled };

std::string_view Name(SweepState state);  // "running" and so on, the same for every user interface
std::string_view Name(TrialState state);
std::string_view Name(AttemptState state);
std::string_view Name(Outcome outcome);

bool HasEnded(SweepState state);
bool HasEnded(TrialState state);

// Metrics of a trial at a step, from rank 0. `seconds` is training time since the attempt began.
struct Report {
  Step step;
  Metrics metrics;
  Seconds seconds{0};
  bool waits = false;  // rank 0 waits for a verdict on this report
};

// The resources that a rank occupies on its executor.
struct RankSlot {
  std::string executor;
  int local_rank = 0;
  int cpus = 1;
  std::vector<int> gpus;  // indices of the executor's GPUs
  int64_t memory_bytes = 0;
  int gpu_percent = 100;  // its share of each of them
  bool operator==(const RankSlot&) const = default;
};

// The share of GPUs that the slot occupies in total: 200 for two whole GPUs.
inline int GpuPercent(const RankSlot& slot) {
  return static_cast<int>(slot.gpus.size()) * slot.gpu_percent;
}

struct CheckpointRef {
  Step step;
  std::string path;
  std::string digest;
  bool operator==(const CheckpointRef&) const = default;
};

// KeptCheckpoint::folder if no executor has the files. No executor has this folder.
inline constexpr std::string_view kNoFolder = "none";

// A checkpoint that has not been dropped.
struct KeptCheckpoint {
  uint32_t attempt = 0;
  CheckpointRef ref;
  std::string executor;        // the executor that holds it
  std::string folder;          // the data folder (ExecutorJoined); empty: the executor's own
  std::vector<double> values;  // of the objectives at its step, if that report counts; else empty
  bool pinned = false;         // by a user
  bool unreported = false;     // the report of its step has not arrived, and may never arrive
  std::string stored;          // the address of the object store that has a copy; empty: none
  bool operator==(const KeptCheckpoint&) const = default;
};

// A patch of the code of one trial.
struct TrialPatch {
  std::string sha256;  // of the text of the patch
  std::string code;    // the digest of the snapshot with the patch
  bool operator==(const TrialPatch&) const = default;
};

// A trial that has ended, complete enough to open it again.
struct TrialRecord {
  TrialId id;
  Config config;
  std::optional<TrialPatch> patch = {};
  TrialState state = TrialState::kCompleted;
  uint32_t attempts = 0;
  Step last_step{0};
  Seconds seconds{0};                       // trained, over all attempts
  std::vector<KeptCheckpoint> checkpoints;  // in the order they were saved
  EventSeq seen{0};                         // the newest event that it includes
};

enum class FailureKind {
  kNone,
  kExit,
  kSignal,
  kStall,
  kStart,
  kProtocol,
  kLease,
  kHost,
  kDisk,
  kEnvironment,  // the host could not install the packages of the program
};
std::string_view Name(FailureKind kind);

struct Failure {
  FailureKind kind = FailureKind::kNone;
  int rank = -1;
  int exit_code = 0;
  int signal = 0;
  std::string message;   // one sentence
  std::string log_tail;  // last lines of that rank's log
  // The rank failed because it lost another rank, which may be the cause.
  bool lost_peer = false;
  std::string executor;  // of the rank; empty: unknown
  // The first pattern of failure.on_log that a log of these ranks has; empty: none.
  std::string pattern;
  std::string line;  // the line that has the pattern

  bool operator==(const Failure&) const = default;
};

// The address at which the ranks of a gang on several executors meet.
struct Rendezvous {
  std::string address;  // of rank 0's host, for MASTER_ADDR
  int master_port = 0;
  std::string host;  // where rank 0 listens; empty: not yet known
  int port = 0;

  bool operator==(const Rendezvous&) const = default;
};

inline constexpr size_t kFailuresKept = 100;

// Recent successes and failures of gangs on an executor.
struct GangHistory {
  // The trials of the failures since the last success, at most kFailuresKept.
  std::vector<TrialId> failed;
  // Since the last failure, a gang made its first step or left without failure.
  bool worked = false;
  int times = 0;  // quarantines since the last success
  bool operator==(const GangHistory&) const = default;
};

// The part of the state that events of every sweep change (core/state/shared_state.h).
struct SharedState {
  Epoch last_epoch{0};
  std::optional<Epoch> reserved_since;  // Reservation::since; nullopt: no slots are reserved
  std::map<std::string, GangHistory> gang_history;  // by executor; absent: GangHistory{}
  std::vector<SweepId> reopenable;                  // ended sweeps, by when they ended
  EventSeq changes_after{0};                        // State::changes_after
  bool operator==(const SharedState&) const = default;
};

// What a user notes on a sweep or a trial. Absent members stay as they are.
struct Annotation {
  std::optional<std::string> note = {};               // it may have several lines; empty: none
  std::optional<std::vector<std::string>> tags = {};  // all of them
  bool operator==(const Annotation&) const = default;
};

inline constexpr size_t kNoteBytesMax = 16 * 1024;
inline constexpr size_t kTagsMax = 32;
inline constexpr size_t kTagBytesMax = 64;

// The ranks of a gang on one executor.
struct GangPart {
  std::string executor;
  int workers = 0;
  bool operator==(const GangPart&) const = default;
};

}  // namespace attune
