#pragma once

#include <string>

#include "core/brain/consequences.h"
#include "core/log/command.h"

namespace attune {

// What a word about a live attempt leads to: verdicts on its reports, its end and what follows. A
// word of another epoch, of an attempt that has ended, or said before leads to nothing.
void Record(const State& state, const RecordFact& command, Time now, Facts& facts);

// The part of the trial's gang on this executor has ended, and with the last part the attempt; it
// has the outcome of the first part that did not finish. `over`: the facts say already that the
// trial has ended. REQUIRES: trial.live holds slots there, or has no ranks.
void EndPart(const State& state, const Trial& trial, const std::string& executor,
             const AttemptEnded& end, bool over, Time now, Facts& facts);

}  // namespace attune
