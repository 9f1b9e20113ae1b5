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
  std::int64_t max_step = 0;  // 0: until the program ends
  std::int64_t checkpoint_every = 0;
  std::string checkpoint_dir;  // empty: keep none
  std::string resume;          // a checkpoint's folder, or empty
  bool cuda = false;
  std::uint64_t seed = 0;
  std::vector<std::string> args;  // what follows `--`: the program's own
};

// The options, or the exit code after help (0) or a message about what is wrong (2) was printed.
std::variant<StandaloneOptions, int> ParseStandaloneOptions(int argc, char** argv,
                                                            std::int64_t default_max_step);

// "lr=0.1,width=32,nesterov=true,optimizer=sgd": true and false are booleans, what reads entirely
// as an integer or a real is one, all else is text. Throws attune::Error.
std::map<std::string, Config::Value> ParseAssignments(const std::string& text);

}  // namespace attune::inline sdk::trainable
