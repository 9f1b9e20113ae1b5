#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "attune/config.h"

namespace attune::inline sdk::trainable {

// The command line of a training program run by hand.
struct StandaloneOptions {
  Config config;
  int workers = 1;
  int cpus_per_worker = 1;
  std::int64_t max_step = 0;  // 0: the program decides
  std::int64_t checkpoint_every = 0;
  std::string checkpoint_dir;  // empty: no checkpoints
  std::string resume;          // folder of a checkpoint, or empty
  bool cuda = false;
  std::uint64_t seed = 0;
  std::vector<std::string> args;  // arguments after `--`, for the program
};

// Returns the options. After printing help it returns exit code 0, and after an error message 2.
std::variant<StandaloneOptions, int> ParseStandaloneOptions(int argc, char** argv,
                                                            std::int64_t default_max_step);

// Parses "lr=0.1,width=32,nesterov=true,optimizer=sgd". true and false are booleans; complete
// integers and reals are numbers; everything else is text. Throws attune::Error.
std::map<std::string, Config::Value> ParseAssignments(const std::string& text);

}  // namespace attune::inline sdk::trainable
