#pragma once

#include <string>
#include <vector>

#include "cli/text/style.h"
#include "rest/contract.h"

namespace attune::cli {

std::vector<std::string> TrialTable(const std::vector<rest::Trial>& trials,
                                    const std::string& metric, const Style& style, int width);

// One trial in sections: its configuration, attempts, decisions with reasons, checkpoints and
// reports.
std::vector<std::string> TrialSections(const rest::TrialDetail& trial, const Style& style,
                                       int width);

// A decision as a sentence, the trial's state since, and the trials at its rung, best first, with
// this trial marked. Then the reason of each promotion. `trial` is null if it is unknown.
std::vector<std::string> ExplanationSections(const rest::Explanation& explanation, int64_t number,
                                             const rest::TrialDetail* trial, const Style& style,
                                             int width);

// The configurations that a trial's weights were trained with, each with its first step and the
// trial that used it.
std::vector<std::string> ScheduleTable(const rest::Schedule& schedule, const Style& style,
                                       int width);

// How a single training ended: its last metrics and checkpoint, or why it failed.
std::vector<std::string> TrainingLines(const rest::TrialDetail& trial, const Style& style);

}  // namespace attune::cli
