#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "cli/text/style.h"

namespace attune::cli {

// Trials of REST as people read them.
std::vector<std::string> TrialTable(const Json& trials, const std::string& metric,
                                    const Style& style, int width);

// One trial in sections: its configuration, attempts, decisions with reasons, checkpoints, and what
// it reported.
std::vector<std::string> TrialSections(const Json& trial, const Style& style, int width);

// A decision as a sentence, what has become of the trial since, and the trials at its rung, the
// best first; the one of this number, whose decision it is, is marked. Then why it was promoted,
// each time. `trial` is null where nothing is known of it.
std::vector<std::string> ExplanationSections(const Json& explanation, int64_t number,
                                             const Json& trial, const Style& style, int width);

// From which steps on its weights were trained with which configuration, and by which trial.
std::vector<std::string> ScheduleTable(const Json& schedule, const Style& style, int width);

// How a training of its own ended: its last metrics, its checkpoint, or why it failed.
std::vector<std::string> TrainingLines(const Json& trial, const Style& style);

}  // namespace attune::cli
