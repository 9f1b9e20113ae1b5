#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/state/state.h"
#include "server/conductor/submissions.h"
#include "server/store/reader.h"

namespace attune::server {

// A checkpoint that a store must have a copy of.
struct WantedCopy {
  CheckpointId id;
  std::string digest;
  std::string path;      // of its folder on the executor
  std::string executor;  // the executor that saved it
  std::string folder;    // the data folder (ExecutorJoined); empty: the executor's own
  std::string stored;    // the address of the store that has a copy; empty: none
  bool best = false;     // of one of the sweep's best reports

  bool operator==(const WantedCopy&) const = default;
};

// The copies that a store must have of a sweep.
struct WantedCopies {
  std::string address;             // of the store; empty: the sweep uses none
  LogIdentity identity;            // of the log when the sweep was created
  std::string ended;               // when the sweep ended; empty: it has not
  std::vector<WantedCopy> copies;  // the best first, then the newest
};

// The checkpoint from which each trial that has not ended would continue.
std::vector<WantedCopy> CopiesToContinue(const Sweep& sweep);

// The copies of both lists, each once: `best`, then `newest` with the latest steps first.
std::vector<WantedCopy> MergeCopies(std::vector<WantedCopy> best, std::vector<WantedCopy> newest);

// Calls a function with the state and waits for it.
using StateQuery = std::function<void(const StateReader& look)>;

// Reads the wanted copies of a sweep: the checkpoints of its best reports, and those from which
// trials continue. kNotFound: there is no such sweep.
Result<WantedCopies> ReadWanted(SweepId sweep, Reader& reader, const StateQuery& query);

}  // namespace attune::server
