#pragma once

#include "core/brain/consequences.h"
#include "core/log/command.h"

namespace attune {

// What a word about a live attempt leads to: verdicts on its reports, its end and what follows. A
// word of another epoch, of an attempt that has ended, or said before leads to nothing.
void Record(const State& state, const RecordFact& command, Time now, Facts& facts);

}  // namespace attune
