#pragma once

#include <optional>
#include <string_view>

namespace attune::sim {

// Services that are wrong on purpose, to see that the checkers notice. Each is a change of the
// doubles in this folder; the originals have no part in it.
enum class Variant {
  kNone,
  kActsBeforeAppend,      // the server answers and publishes, and then appends
  kAcksBeforeDurable,     // a fact is acknowledged when it arrives
  kNeverResends,          // an executor takes what it sent before a reconnect for received
  kForgetsEpoch,          // a fact of an earlier attempt is recorded as the present one's
  kGivesAwayEarly,        // an executor is lost before its lease is over
  kResumesTwice,          // the executor of the last attempt is told to run the present one as well
  kFreesDonor,            // a donor's checkpoint is dropped once the trial that clones it has left
  kForgetsEarlier,        // of a trial that begins anew nobody knows what it had saved before
  kForgetsRemovals,       // executors are not told which checkpoints to delete
  kForgetsDeletedSweeps,  // executors are not told which sweeps to delete
  kIgnoresReservation,    // gangs start as if no slots were reserved
  kForgetsShares,     // gangs with a share of a GPU that began since a reservation are not counted
  kReleasesWhenAway,  // a reservation is released as soon as its executor is away
  kKeepsReservation,  // a reservation is kept although it is no longer of use
  kOverlooksDepartures,   // nothing starts because an executor has left
  kRecordsTwice,          // a scheduler records each report twice at its rung
  kSleepsThroughLease,    // an executor's clock stands still while its host does
  kForgetsErasedEpochs,   // the epochs of a deleted sweep are erased with its events
  kForgetsEdits,          // proposals go on in the space that a sweep had before it was edited
  kForgetsRestart,        // the server comes back without the last event of its log
  kLeasesInLog,           // while the disk is full no executor is heard
  kTakesDeadHellos,       // of two processes of a name the one whose Hello is read last is taken
  kForgetsFolders,        // every checkpoint counts as readable everywhere
  kIgnoresLabels,         // gangs start as if they asked for none
  kForgetsDrains,         // an executor that joins again is not drained any more
  kForgetsProblems,       // an executor that says it has a problem gets gangs all the same
  kForgetsExclusions,     // and so does one that the sweep's failure.on_log has excluded
  kGrowsBlindly,          // small gangs are asked to grow whatever there is room for
  kKeepsZombies,          // who is lost while its connection stands keeps it, and stays lost
  kForgetsEnds,           // of a program that ends by itself nobody is told
  kForgetsPaused,         // paused trials are promoted only once nothing else runs
  kWastesSlots,           // what a program that has ended leaves free is seen at the next occasion
  kIgnoresRestore,        // a log whose end is lost keeps its identity
  kKeepsLostFiles,        // executors leave files of a lost part of the log where they are
  kForgetsInventory,      // executors do not say what is gone after a backup was restored
  kOversleeps,            // the server does nothing because its time has come
  kBlamesTrialsForDisks,  // an executor tells of a full disk as of any failure of a rank
  kForgivesFillers,       // who fills a disk is told of as if the disk had been full
};

std::string_view Name(Variant variant);  // as --variant takes it: acts-before-append
std::optional<Variant> FindVariant(std::string_view name);

}  // namespace attune::sim
