#pragma once

#include <optional>
#include <string_view>

namespace attune::sim {

// Services with a deliberate fault, which the checkers must find. Each fault is in the doubles of
// this folder, not in the real code.
enum class Variant {
  kNone,
  kActsBeforeAppend,      // the server answers and publishes before it appends
  kAcksBeforeDurable,     // a fact is acknowledged on arrival, before it is durable
  kNeverResends,          // an executor does not resend facts after a reconnect
  kForgetsEpoch,          // a fact of an earlier attempt is recorded for the current one
  kGivesAwayEarly,        // an executor counts as lost before its lease ends
  kResumesTwice,          // the executor of the last attempt is told to run the current one, too
  kFreesDonor,            // a donor's checkpoint is dropped before its clone has resumed from it
  kForgetsEarlier,        // a trial that restarts from scratch loses its earlier checkpoints
  kForgetsRemovals,       // executors are not told which checkpoints to delete
  kForgetsDeletedSweeps,  // executors are not told which sweeps to delete
  kIgnoresReservation,    // gangs start as if no slots were reserved
  kForgetsShares,     // gangs with a share of a GPU that started after a reservation do not count
  kReleasesWhenAway,  // a reservation is released as soon as its executor is unreachable
  kKeepsReservation,  // a reservation that is no longer needed is kept
  kOverlooksDepartures,   // after an executor leaves, no other gang starts
  kRecordsTwice,          // a scheduler records each report twice at its rung
  kSleepsThroughLease,    // an executor's clock stops while its host is frozen
  kForgetsErasedEpochs,   // the epochs of a deleted sweep are erased with its events
  kForgetsEdits,          // after an edit, proposals use the old search space
  kForgetsRestart,        // a restarted server does not read the last event of its log
  kLeasesInLog,           // while the disk is full, the server ignores all executors
  kTakesDeadHellos,       // of two processes with one name, the last Hello to be read wins
  kForgetsFolders,        // every checkpoint counts as readable everywhere
  kIgnoresLabels,         // gangs start as if they required no labels
  kForgetsDrains,         // an executor that joins again is no longer drained
  kForgetsProblems,       // an executor that reported a problem still gets gangs
  kForgetsExclusions,     // an executor that failure.on_log has excluded still gets gangs
  kGrowsBlindly,          // small gangs are told to grow without free slots
  kKeepsZombies,          // a lost executor keeps its connection and stays lost
  kForgetsEnds,           // an early end of a program is not reported
  kForgetsPaused,         // paused trials are promoted only when nothing else runs
  kWastesSlots,           // the slots of a finished program are used only after the next event
  kIgnoresRestore,        // a log keeps its identity after its end was lost
  kKeepsLostFiles,        // executors keep files that the restored log does not know
  kForgetsInventory,      // executors do not report missing files after a restore
  kOversleeps,            // the server never acts because time has passed
  kBlamesTrialsForDisks,  // an executor reports a full disk as the failure of a rank
  kForgivesFillers,       // a trial that fills a disk is reported as if the disk had been full
};

std::string_view Name(Variant variant);  // the value of --variant, for example "acts-before-append"
std::optional<Variant> FindVariant(std::string_view name);

}  // namespace attune::sim
