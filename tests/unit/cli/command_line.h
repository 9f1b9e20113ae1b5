#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "cli/run.h"

namespace attune::cli {

struct Ran {
  ExitCode code;
  std::string out;
  std::string err;
};

// Runs `attune ARGS…` in this process, with streams that are not terminals.
inline Ran RunAttune(const std::vector<std::string>& args, const Host& host, Interrupt& interrupt) {
  std::ostringstream out_text;
  std::ostringstream err_text;
  Output out(out_text, {});
  Output err(err_text, {});
  Console console{.out = out, .err = err, .interrupt = interrupt, .host = host};
  const ExitCode code = Run(args, console);
  return {code, out_text.str(), err_text.str()};
}

inline Ran RunAttune(const std::vector<std::string>& args) {
  Interrupt interrupt;
  return RunAttune(args, Host{}, interrupt);
}

}  // namespace attune::cli
