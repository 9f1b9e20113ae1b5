#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "cli/client/endpoint.h"

namespace attune::cli {

struct Candidate {
  std::string word;   // the whole word, not only its missing end
  std::string about;  // may be empty
};

struct Candidates {
  enum class Kind {
    kWords,    // `words`
    kFiles,    // any file
    kFolders,  // any folder
  };
  Kind kind = Kind::kWords;
  std::vector<Candidate> words;
};

// Lists the sweeps of the server that the command line names so far.
using ListSweeps = std::function<std::vector<Candidate>(const ServerChoice&)>;

// Completes the last of `words`, which may be partly typed or empty. `words` do not include the
// program's name.
Candidates FindCandidates(const CLI::App& app, const std::vector<std::string>& words,
                          const ListSweeps& list_sweeps);

// The candidates in the format of `attune __complete` (README.md).
std::string ToText(const Candidates& candidates);

}  // namespace attune::cli
