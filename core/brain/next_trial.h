#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/brain/consequences.h"

// Decides what a sweep runs next. If its searcher thinks (Searcher::NeedsThread), it is not asked
// here. A ProposalBegun starts the computation, and the proposal comes back as a command.
namespace attune {

// Whether the sweep may start one more attempt now.
bool MayStart(const Sweep& sweep);

// Whether neither a limit nor the searcher forbids another trial.
bool MayCreate(const Sweep& sweep);

// Whether the sweep has an initial point that was not tried, and the next one.
bool HasInitialPoint(const Sweep& sweep);
Proposed NextInitialPoint(const Sweep& sweep);  // REQUIRES: HasInitialPoint(sweep)

// Trials that are skipped, because they wait for particular executors.
using SkippedTrials = std::set<TrialNumber>;

// What the sweep would do with a free slot. A trial that waits for an attempt goes first, if its
// backoff is over. Otherwise the scheduler decides. The searcher is not asked here.
using NextAction = std::variant<const Trial*, NextMove>;
NextAction ChooseNextAction(const Sweep& sweep, Time now, const SkippedTrials& passed = {});

// Whether the sweep would use a free slot: for a waiting trial, a promotion, or a new trial.
bool HasNext(const Sweep& sweep, Time now, const SkippedTrials& passed = {});

// The trial that gets the next attempt. Null if it must be created first, or if there is none.
const Trial* NextWaiting(const Sweep& sweep, Time now, const SkippedTrials& passed = {});

// Adds the fact for the sweep's next step. It is one step at a time, so that the searcher and the
// scheduler observe each. A waiting trial gets its attempt with these ranks, or without ranks for a
// client's request with this key. Otherwise a paused trial is promoted, or a new one is created. If
// the searcher is exhausted, the fact says so. If it waits, no fact is added.
// REQUIRES: HasNext(sweep, now, passed).
void StartNext(const State& state, const Sweep& sweep, std::vector<RankSlot> ranks,
               const std::string& idempotency_key, Time now, Facts& facts,
               const SkippedTrials& passed = {});

// Adds the fact for the answer of a searcher that thinks. REQUIRES: sweep.thinking.
void EndThought(const Sweep& sweep, const Suggestion& suggestion, Facts& facts);

}  // namespace attune
