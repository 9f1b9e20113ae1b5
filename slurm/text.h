#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What Slurm's tools print, and what people write for them.
namespace attune::slurm {

std::vector<std::string> Split(std::string_view text, char by);

// Without spaces and line ends around it.
std::string Trimmed(std::string_view text);

// Limits, and how long a job has run. Of "90", "90:30", "4:00:00", "1-12", "1-12:30", "1-12:30:00":
// minutes, or as said. nullopt: none of these.
std::optional<std::chrono::seconds> ParseTimeLimit(std::string_view text);

// GPUs a node of "gpu:8", "gpu:a100:4(S:0-1),mps:400", "gpu"; those of all types together. 0 where
// there are none.
int GpusOf(std::string_view gres);

// Where a job is in its life, by Slurm's word for its state. A word that is not known counts as
// running: nothing is done twice for it.
enum class Phase { kPending, kRunning, kEnding, kEnded };
Phase PhaseOf(std::string_view state);

}  // namespace attune::slurm
