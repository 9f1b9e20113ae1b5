#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/brain/consequences.h"

// What a sweep runs next. A searcher that thinks is not asked here: its proposal is begun, and
// comes back as a command.
namespace attune {

// Whether the sweep may have one more attempt now.
bool MayStart(const Sweep& sweep);

// Whether neither a limit nor the searcher forbids another trial.
bool MayCreate(const Sweep& sweep);

// Whether an initial point of the sweep's has not been tried, and which is next.
bool HasPoint(const Sweep& sweep);
Proposed NextPoint(const Sweep& sweep);  // REQUIRES: HasPoint(sweep)

// Trials that wait for executors of their own, so that others take their turn.
using PassedOver = std::set<TrialNumber>;

// What the sweep would do with a free slot. A trial that waits for its next attempt (requeued,
// enqueued, promoted or just created, and its backoff is over) goes before all that the scheduler
// says. The searcher is not asked here.
using NextUp = std::variant<const Trial*, NextMove>;
NextUp WhatIsNext(const Sweep& sweep, Time now, const PassedOver& passed = {});

// Whether that is to start something: a trial that waits, a promotion, or a new trial.
bool HasNext(const Sweep& sweep, Time now, const PassedOver& passed = {});

// The trial that has its attempt next; null when it has yet to be created, or there is none.
const Trial* NextWaiting(const Sweep& sweep, Time now, const PassedOver& passed = {});

// The sweep's next step, one at a time, so that searcher and scheduler see each: a new trial is
// created, or a paused one promoted; one that waits gets its attempt on these ranks, or one without
// ranks for whoever asks with this key. A searcher that has no further configuration says so
// instead; while it waits there are no facts.
// REQUIRES: HasNext(sweep, now).
void StartNext(const State& state, const Sweep& sweep, std::vector<RankSlot> ranks,
               const std::string& idempotency_key, Time now, Facts& facts,
               const PassedOver& passed = {});

// What comes of a proposal that was thought about. REQUIRES: sweep.thinking.
void EndThought(const Sweep& sweep, const Suggestion& suggestion, Facts& facts);

}  // namespace attune
