#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pilots/engine.h"

// Reads the output of Slurm's tools, and values that users write for them.
namespace attune::slurm {

std::vector<std::string> Split(std::string_view text, char separator);

// Parses a time limit or the run time of a job. Formats: MINUTES ("90"), MINUTES:SECONDS ("90:30"),
// "4:00:00", DAYS-HOURS ("1-12"), "1-12:30", "1-12:30:00". nullopt for any other text.
std::optional<std::chrono::seconds> ParseTimeLimit(std::string_view text);

// The number of GPUs of all types in a GRES text such as "gpu:8", "gpu:a100:4(S:0-1),mps:400" or
// "gpu". 0 if it names no GPUs.
int CountGpus(std::string_view gres);

// The phase of a job, from Slurm's name of its state. An unknown state counts as running.
pilots::Phase PhaseOf(std::string_view state);

}  // namespace attune::slurm
