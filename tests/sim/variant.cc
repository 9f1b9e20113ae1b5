#include "tests/sim/variant.h"

#include <utility>

namespace attune::sim {
namespace {

constexpr std::pair<Variant, std::string_view> kNames[] = {
    {Variant::kNone, "none"},
    {Variant::kActsBeforeAppend, "acts-before-append"},
    {Variant::kAcksBeforeDurable, "acks-before-durable"},
    {Variant::kNeverResends, "never-resends"},
    {Variant::kForgetsEpoch, "forgets-epoch"},
    {Variant::kGivesAwayEarly, "gives-away-early"},
    {Variant::kResumesTwice, "resumes-twice"},
    {Variant::kFreesDonor, "frees-donor"},
    {Variant::kForgetsEarlier, "forgets-earlier"},
    {Variant::kForgetsRemovals, "forgets-removals"},
    {Variant::kForgetsDeletedSweeps, "forgets-deleted-sweeps"},
    {Variant::kIgnoresReservation, "ignores-reservation"},
    {Variant::kForgetsShares, "forgets-shares"},
    {Variant::kReleasesWhenAway, "releases-when-away"},
    {Variant::kKeepsReservation, "keeps-reservation"},
    {Variant::kOverlooksDepartures, "overlooks-departures"},
    {Variant::kRecordsTwice, "records-twice"},
    {Variant::kSleepsThroughLease, "sleeps-through-lease"},
    {Variant::kForgetsErasedEpochs, "forgets-erased-epochs"},
    {Variant::kForgetsEdits, "forgets-edits"},
    {Variant::kForgetsRestart, "forgets-restart"},
    {Variant::kLeasesInLog, "leases-in-log"},
    {Variant::kTakesDeadHellos, "takes-dead-hellos"},
    {Variant::kForgetsFolders, "forgets-folders"},
    {Variant::kIgnoresLabels, "ignores-labels"},
    {Variant::kForgetsDrains, "forgets-drains"},
    {Variant::kForgetsProblems, "forgets-problems"},
    {Variant::kForgetsExclusions, "forgets-exclusions"},
    {Variant::kGrowsBlindly, "grows-blindly"},
    {Variant::kKeepsZombies, "keeps-zombies"},
    {Variant::kForgetsEnds, "forgets-ends"},
    {Variant::kForgetsPaused, "forgets-paused"},
    {Variant::kWastesSlots, "wastes-slots"},
    {Variant::kIgnoresRestore, "ignores-restore"},
    {Variant::kKeepsLostFiles, "keeps-lost-files"},
    {Variant::kForgetsInventory, "forgets-inventory"},
    {Variant::kOversleeps, "oversleeps"},
    {Variant::kBlamesTrialsForDisks, "blames-trials-for-disks"},
    {Variant::kForgivesFillers, "forgives-fillers"},
};

}  // namespace

std::string_view Name(Variant variant) {
  for (const auto& [known, name] : kNames) {
    if (known == variant) return name;
  }
  return "";
}

std::optional<Variant> FindVariant(std::string_view name) {
  for (const auto& [variant, known] : kNames) {
    if (known == name) return variant;
  }
  return std::nullopt;
}

}  // namespace attune::sim
