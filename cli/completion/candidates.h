#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "cli/client/endpoint.h"

namespace attune::cli {

struct Candidate {
  std::string word;   // whole, as it would stand on the command line
  std::string about;  // may be empty
};

struct Candidates {
  enum class Kind {
    kWords,    // those below
    kFiles,    // any file
    kFolders,  // any folder
  };
  Kind kind = Kind::kWords;
  std::vector<Candidate> words;
};

// Sweeps of the server that the command line names so far.
using ListSweeps = std::function<std::vector<Candidate>(const ServerChoice&)>;

// What may stand for the last of `words`, of which the beginning has been typed. `words` are
// without the program's name.
Candidates FindCandidates(const CLI::App& app, const std::vector<std::string>& words,
                          const ListSweeps& list_sweeps);

// The same as scripts read it.
std::string ToText(const Candidates& candidates);

}  // namespace attune::cli
