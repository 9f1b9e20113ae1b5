#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/boxed.h"
#include "core/base/ids.h"
#include "core/log/suggestion.h"
#include "core/log/sweep_spec.h"
#include "core/log/verdict.h"
#include "core/log/warm_start.h"
#include "core/space/value.h"

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
  bool waits = false;  // rank 0 goes no further before it has a verdict on this report
};

// Where a rank runs: what it occupies on its executor.
struct RankSlot {
  std::string executor;
  int local_rank = 0;
  int cpus = 1;
  std::vector<int> gpus;  // indices of the executor's GPUs
  int64_t memory_bytes = 0;
  int gpu_percent = 100;  // what it has of each of them; others may have the rest
  bool operator==(const RankSlot&) const = default;
};

// What it has of GPUs altogether: 200 of two.
inline int GpuPercent(const RankSlot& slot) {
  return static_cast<int>(slot.gpus.size()) * slot.gpu_percent;
}

struct CheckpointRef {
  Step step;
  std::string path;
  std::string digest;
  bool operator==(const CheckpointRef&) const = default;
};

// A checkpoint that has not been dropped.
struct KeptCheckpoint {
  uint32_t attempt = 0;
  CheckpointRef ref;
  std::string executor;        // that holds it
  std::string folder;          // in which data folder (ExecutorJoined); empty: that executor's
  std::vector<double> values;  // of the objectives at its step, where that report counts
  bool pinned = false;         // by a person
  bool unreported = false;     // the report of its step has not come, and may never
  bool operator==(const KeptCheckpoint&) const = default;
};

// What the log says of a trial that has ended: enough to open it again.
struct TrialRecord {
  TrialId id;
  Config config;
  TrialState state = TrialState::kCompleted;
  uint32_t attempts = 0;
  Step last_step{0};
  Seconds seconds{0};                       // trained, over all attempts
  std::vector<KeptCheckpoint> checkpoints;  // in the order they were saved
  EventSeq seen{0};                         // the newest event that it knows of
};

enum class FailureKind { kNone, kExit, kSignal, kStall, kStart, kProtocol, kLease, kHost };
std::string_view Name(FailureKind kind);

struct Failure {
  FailureKind kind = FailureKind::kNone;
  int rank = -1;
  int exit_code = 0;
  int signal = 0;
  std::string message;   // one sentence
  std::string log_tail;  // last lines of that rank's log
  // The rank tells of another one that is gone: it is a victim if anybody else is the cause.
  bool lost_peer = false;
  std::string executor;  // whose ranks, as the brain knows; empty: nobody's
  // Of failure.on_log, the first whose pattern stands in the logs of these ranks; empty: none does.
  std::string pattern;
  std::string line;  // in which it stands
};

// Where the ranks of a gang over several executors meet, as that of rank 0 says.
struct Rendezvous {
  std::string address;  // of its host, for MASTER_ADDR
  int master_port = 0;
  std::string host;  // where rank 0 listens; empty: it has not said so yet
  int port = 0;

  bool operator==(const Rendezvous&) const = default;
};

// ---- Facts, complete in themselves ---------------------------------------------------------
//
// `kKind` is a fact's name in the log, `kVersion` that of its form there (1 where none stands).
// What its fields are called stands in fact_fields.h. Most events are reports, so what is large and
// seldom in another fact is Boxed: an event is as small as a report makes it.

// Who acts where nobody else does: the service itself.
inline constexpr std::string_view kService = "attune";

// The first token of a server; and who owns the sweeps of logs that name no owner.
inline constexpr std::string_view kAdmin = "admin";

struct SweepCreated {
  static constexpr std::string_view kKind = "sweep_created";
  SweepId sweep;
  Boxed<SweepSpec> spec;
  std::string source;                             // the sweep file as it was sent
  std::string idempotency_key;                    // empty: none
  std::string owner{kAdmin};                      // the token that asked for it, by name
  Boxed<std::vector<WarmStart>> warm_start = {};  // of each of spec's, in their order
};
struct SweepPaused {  // nothing starts; running trials yield
  static constexpr std::string_view kKind = "sweep_paused";
  SweepId sweep;
  std::string reason;
};
struct SweepResumed {
  static constexpr std::string_view kKind = "sweep_resumed";
  SweepId sweep;
};
struct SweepExtended {  // the limits from now on; of logs that know no SweepEdited
  static constexpr std::string_view kKind = "sweep_extended";
  SweepId sweep;
  StopPolicy stop;
  Step max_step{0};
};
struct SweepEdited {  // the specification from now on, complete
  static constexpr std::string_view kKind = "sweep_edited";
  SweepId sweep;
  Boxed<SweepSpec> spec;
  std::vector<std::string> changes;  // what is new in it, for people
};
struct SweepReopened {  // one that had ended; it runs again, with nothing to do yet
  static constexpr std::string_view kKind = "sweep_reopened";
  SweepId sweep;
  std::string reason;
};
struct SweepStopping {  // no new trials; the sweep ends as `outcome` when the running ones have
  static constexpr std::string_view kKind = "sweep_stopping";
  SweepId sweep;
  SweepState outcome;  // kCompleted, kStopped, kFailed or kKilled
  std::string reason;
};
struct SweepEnded {
  static constexpr std::string_view kKind = "sweep_ended";
  SweepId sweep;
  SweepState state;
  std::string reason;
};
struct SweepDeleted {  // one that has ended, for good; whoever holds files of it is to delete them
  static constexpr std::string_view kKind = "sweep_deleted";
  SweepId sweep;
};
struct SweepRemoved {  // the files of a deleted one are gone from this data folder
  static constexpr std::string_view kKind = "sweep_removed";
  SweepId sweep;
  std::string folder;    // FolderOf(executor)
  std::string executor;  // that says so
};
inline constexpr std::string_view kInitialPoints = "initial_points";
inline constexpr std::string_view kEnqueued = "enqueued";

struct TrialCreated {
  static constexpr std::string_view kKind = "trial_created";
  TrialId trial;
  Config config;
  std::string origin;           // name of the searcher, kInitialPoints or kEnqueued
  std::string idempotency_key;  // of the request that asked for it; empty: none
  // The searcher's count, which the random draws of its proposal are keyed by; null: not its own.
  std::optional<ProposalNumber> proposal = {};
  std::optional<EventSeq> thought = {};            // of the ProposalBegun that it answers
  std::optional<Boxed<Rationale>> rationale = {};  // null in logs that tell none
};
struct TrialReopened {  // one that had ended waits for another attempt
  static constexpr std::string_view kKind = "trial_reopened";
  TrialRecord record;
  Step until{0};            // goes on to this step whatever the scheduler says; 0: as any trial
  bool from_start = false;  // not from its newest checkpoint
  std::string reason;
};
struct SearchExhausted {  // the searcher has no further configuration
  static constexpr std::string_view kKind = "search_exhausted";
  SweepId sweep;
  std::string reason = {};
  std::optional<EventSeq> thought = {};  // as of a trial
};
struct ProposalBegun {  // the searcher thinks; it has seen the log up to this event
  static constexpr std::string_view kKind = "proposal_begun";
  SweepId sweep;
  ProposalNumber proposal;
};
struct SearchWaits {  // it has thought, and proposes nothing before something else has happened
  static constexpr std::string_view kKind = "search_waits";
  SweepId sweep;
  EventSeq thought;
  std::string reason;
};
// What an asked trial's lease is where the asker says nothing of it.
inline constexpr Seconds kAskedLease{3600};

struct AttemptAssigned {
  static constexpr std::string_view kKind = "attempt_assigned";
  AttemptId attempt;
  Epoch epoch;
  std::vector<RankSlot> ranks;  // by rank
  std::optional<CheckpointRef> resume;
  Step milestone;               // 0: none
  std::string idempotency_key;  // of the request that asked for it; empty: none
  std::string reason;           // why not from its newest checkpoint; empty: from that one
  // Without ranks: when nothing is told of it for so long, whoever asked for it is gone. 0:
  // kAskedLease.
  Seconds lease{0};
};
struct AttemptRenewed {  // whoever asked for it is still there (AttemptAssigned::lease)
  static constexpr std::string_view kKind = "attempt_renewed";
  AttemptId attempt;
};
struct AttemptStarted {
  static constexpr std::string_view kKind = "attempt_started";
  AttemptId attempt;
  std::vector<int64_t> pids;  // by rank
};
struct AttemptFirstStep {  // every rank has finished its first optimizer step
  static constexpr std::string_view kKind = "attempt_first_step";
  AttemptId attempt;
  Time at;  // by the executor's clock
};
struct RendezvousOpened {  // of a gang over several executors; said again when rank 0 listens
  static constexpr std::string_view kKind = "rendezvous_opened";
  AttemptId attempt;
  Rendezvous rendezvous;
};
struct TrialReported {
  static constexpr std::string_view kKind = "trial_reported";
  static constexpr int kVersion = 2;
  AttemptId attempt;
  Report report;
};
// What a program logs between reports (Context::Log): points of curves, and nothing else. No
// searcher, scheduler or limit sees them.
struct MetricsLogged {
  static constexpr std::string_view kKind = "metrics_logged";
  AttemptId attempt;
  int64_t number = 0;  // from 1 on within the attempt: what is said again is known by it
  double step = 0;     // in the trial's steps: 2.25 is a quarter of the way from step 2 to step 3
  Metrics metrics;
};
struct TrialYielding {  // gets this verdict at the next report that waits; kContinue: any
  static constexpr std::string_view kKind = "trial_yielding";
  TrialId trial;
  Verdict verdict;
};
struct TrialDecided {  // the verdict on a report that waits for one
  static constexpr std::string_view kKind = "trial_decided";
  AttemptId attempt;
  Step step;
  Verdict verdict;
  Step milestone;                               // the next one; 0 when it does not continue
  std::optional<Boxed<KeptCheckpoint>> cloned;  // kExploit: the donor's
};
struct TrialPromoted {  // one that the scheduler paused waits for its next attempt
  static constexpr std::string_view kKind = "trial_promoted";
  TrialId trial;
  Reason reason;
  std::optional<Config> config = {};                 // it goes on with another one
  std::optional<CheckpointId> donor = {};            // it goes on from another's checkpoint
  std::optional<Boxed<KeptCheckpoint>> cloned = {};  // that one
};
struct CheckpointSaved {
  static constexpr std::string_view kKind = "checkpoint_saved";
  AttemptId attempt;
  CheckpointRef checkpoint;
  int64_t bytes = 0;
};
struct CheckpointPinned {
  static constexpr std::string_view kKind = "checkpoint_pinned";
  CheckpointId checkpoint;
  bool pinned = true;
};
struct CheckpointDropped {  // nothing needs it; its executor is to delete it
  static constexpr std::string_view kKind = "checkpoint_dropped";
  CheckpointId checkpoint;
  std::string executor;
  std::string path;
  std::string reason;
};
struct CheckpointRemoved {  // its files are gone
  static constexpr std::string_view kKind = "checkpoint_removed";
  CheckpointId checkpoint;
};
struct AttemptPartEnded {  // on one executor of several; the last one ends the attempt
  static constexpr std::string_view kKind = "attempt_part_ended";
  AttemptId attempt;
  std::string executor;
  Outcome outcome;
  Failure failure;  // kFailed; kLost: a message
};
struct AttemptEnded {  // as its first part that did not finish
  static constexpr std::string_view kKind = "attempt_ended";
  AttemptId attempt;
  Outcome outcome;
  Failure failure;  // kFailed
};
struct TrialRequeued {  // will be tried again
  static constexpr std::string_view kKind = "trial_requeued";
  TrialId trial;
  std::string reason;
  Time not_before;
  std::string avoided;  // an executor that it does not go back to if another has room; empty: none
};
struct TrialEnded {
  static constexpr std::string_view kKind = "trial_ended";
  TrialId trial;
  TrialState state;
  std::string reason;
};
// Slots for so many ranks of a gang, on one executor.
struct GangPart {
  std::string executor;
  int workers = 0;
  bool operator==(const GangPart&) const = default;
};
struct SlotsReserved {  // others leave this executor alone until the sweep's next gang fits there
  static constexpr std::string_view kKind = "slots_reserved";
  SweepId sweep;
  std::string executor;
  std::string reason;
  std::vector<GangPart> parts;  // where it needs several, `executor` among them; empty: one does
};
struct ReservationReleased {
  static constexpr std::string_view kKind = "reservation_released";
  SweepId sweep;
  std::string reason;
};
struct ExecutorJoined {
  static constexpr std::string_view kKind = "executor_joined";
  std::string name;
  std::string instance;
  Incarnation incarnation;
  std::string address;
  Resources resources;
  bool spans = false;  // gangs can have ranks here and elsewhere
  // Which data folder it keeps checkpoints in: executors that say the same read and write the same
  // files. Empty: nothing is known, and every checkpoint is taken to be readable everywhere.
  std::string folder;
  Labels labels;
  Seconds time_left{0};  // until it has to end, from this event on; 0: as long as it likes
  std::vector<SweepId> deleted = {};  // deleted sweeps of which its data folder has files
};
struct ExecutorLost {
  static constexpr std::string_view kKind = "executor_lost";
  std::string name;
  Incarnation incarnation;
  std::string reason;
};
struct ExecutorDrained {  // nothing more starts there, until it is resumed
  static constexpr std::string_view kKind = "executor_drained";
  std::string name;
  std::string reason;  // a person's words; empty: none
  bool now = false;    // what runs there is asked to go on elsewhere
};
struct ExecutorResumed {  // also one that was set aside, or that a sweep has excluded
  static constexpr std::string_view kKind = "executor_resumed";
  std::string name;
};
struct ExecutorHealth {  // as it says itself: with a problem, nothing more starts there
  static constexpr std::string_view kKind = "executor_health";
  std::string name;
  std::string problem;  // the end of a sentence: "its disk has 0.2 GiB left"; empty: it is well
};
struct ExecutorSetAside {  // its gangs keep failing: nothing more starts there for a while
  static constexpr std::string_view kKind = "executor_set_aside";
  std::string name;
  std::string reason;
  Time until;
};
struct ExecutorReadmitted {  // one that was set aside is tried again
  static constexpr std::string_view kKind = "executor_readmitted";
  std::string name;
  std::string reason;
};
struct ExecutorExcluded {  // from a sweep, by its failure.on_log, until it starts anew
  static constexpr std::string_view kKind = "executor_excluded";
  SweepId sweep;
  std::string name;
  std::string reason;
};
struct ExecutorForgotten {  // a lost one, with what it was to delete
  static constexpr std::string_view kKind = "executor_forgotten";
  std::string name;
  std::string reason;
};

using AnyFact =
    std::variant<SweepCreated, SweepPaused, SweepResumed, SweepExtended, SweepEdited, SweepReopened,
                 SweepStopping, SweepEnded, SweepDeleted, SweepRemoved, SearchExhausted,
                 ProposalBegun, SearchWaits, TrialCreated, TrialReopened, AttemptAssigned,
                 AttemptRenewed, AttemptStarted, AttemptFirstStep, RendezvousOpened, TrialReported,
                 MetricsLogged, TrialYielding, TrialDecided, TrialPromoted, CheckpointSaved,
                 CheckpointPinned, CheckpointDropped, CheckpointRemoved, AttemptPartEnded,
                 AttemptEnded, TrialRequeued, TrialEnded, SlotsReserved, ReservationReleased,
                 ExecutorJoined, ExecutorLost, ExecutorDrained, ExecutorResumed, ExecutorHealth,
                 ExecutorSetAside, ExecutorReadmitted, ExecutorExcluded, ExecutorForgotten>;

template <class T>
concept FactKind =
    std::is_constructible_v<AnyFact, T> && !std::is_base_of_v<AnyFact, std::remove_cvref_t<T>>;

// What has happened. A class and not the variant itself, so that what copies and destroys one of so
// many kinds is compiled in one place and not in every source.
class Fact : public AnyFact {
 public:
  template <FactKind T>
  Fact(T&& fact) : AnyFact(std::forward<T>(fact)) {}  // NOLINT(runtime/explicit)
  Fact();
  Fact(const Fact& other);
  Fact(Fact&& other) noexcept;
  Fact& operator=(const Fact& other);
  Fact& operator=(Fact&& other) noexcept;
  ~Fact();
};

// A fact with its place in the log.
struct Event {
  EventSeq seq;
  Time time;
  Fact fact;
  std::string actor{kService};  // who made it happen: a token or an executor by name, or kService
};

// The sweep and the trial a fact is about, where it is about one.
std::optional<SweepId> SweepOf(const Fact& fact);
std::optional<TrialId> TrialOf(const Fact& fact);

// Whether the fact changes the record of a trial that has ended, or makes it end.
bool ChangesRecord(const Fact& fact);

}  // namespace attune
