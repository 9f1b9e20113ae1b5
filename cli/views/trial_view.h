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

// A decision as a sentence, the trial's state since, and the trials at its rung, best first, with
// this trial marked. Then the reason of each promotion. `trial` is null if it is unknown.
std::vector<std::string> ExplanationSections(const Json& explanation, int64_t number,
                                             const Json& trial, const Style& style, int width);

// The configurations that its weights were trained with, each with its first step and its trial.
std::vector<std::string> ScheduleTable(const Json& schedule, const Style& style, int width);

// How a single training ended: its last metrics and checkpoint, or why it failed.
std::vector<std::string> TrainingLines(const Json& trial, const Style& style);

}  // namespace attune::cli
