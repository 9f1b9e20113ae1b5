#pragma once

#include <cstdint>
#include <unordered_set>

#include "core/log/archive.h"
#include "core/log/event.h"
#include "searchers/model/cube.h"

namespace attune::searchers {

// Whether random and sobol propose each configuration of the space once and then end. A finite
// space ends. A space with a single configuration is an exception: the configuration is repeated,
// to show how much results scatter.
bool ProposesOnce(const Cube& cube);

// The configurations that trials of a sweep were created with, for searchers that remember nothing
// else. It keeps a hash of 64 bits per configuration, so with n configurations the odds that
// another one counts as tried are n to 2^64.
class TriedConfigs {
 public:
  // Remembers nothing of a space that has no end (ProposesOnce).
  void Observe(const Event& event, const Cube& cube);
  bool Contains(const Config& config) const;

  void Save(ArchiveWriter& archive) const;
  void Load(ArchiveReader& archive);

 private:
  std::unordered_set<uint64_t> hashes_;
};

}  // namespace attune::searchers
