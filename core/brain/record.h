#pragma once

#include <string>

#include "core/brain/consequences.h"
#include "core/log/command.h"

namespace attune {

// Decides on a message about a live attempt: verdicts on its reports, its end, and the
// consequences. A message with another epoch, about an ended attempt, or a repeated one leads to no
// facts.
void Record(const State& state, const RecordFact& command, Time now, Facts& facts);

// Ends the part of the trial's gang on this executor. The last part ends the attempt, whose outcome
// is that of the first part that did not finish. `over`: the facts already end the trial. REQUIRES:
// trial.live holds slots there, or has no ranks.
void EndPart(const State& state, const Trial& trial, const std::string& executor,
             const AttemptEnded& end, bool over, Time now, Facts& facts);

}  // namespace attune
