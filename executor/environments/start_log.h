#pragma once

#include <string_view>

#include "executor/gang/spec.h"
#include "system/unique_fd.h"

namespace attune::agent {

// The log of an attempt's first rank on this host, before the rank starts.
class StartLog {
 public:
  // Appends a line. A log that cannot be opened is no error: the start of the gang reports it.
  void Write(const gang::GangSpec& spec, std::string_view line);

  void Close() { file_.reset(); }

 private:
  UniqueFd file_;  // opened for the first line
};

}  // namespace attune::agent
