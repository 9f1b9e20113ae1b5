#pragma once

#include <optional>

#include "core/log/archive.h"
#include "core/log/event.h"
#include "core/space/value.h"

namespace attune {

// Proposes configurations. Deterministic: the same events and trial number give the same proposal.
// It lives on the conductor's thread and sees neither clock nor I/O.
class Searcher {
 public:
  virtual ~Searcher() = default;

  // The configuration for this trial, valid in the sweep's space. nullopt: there is no further one.
  virtual std::optional<Config> Suggest(TrialNumber trial) const = 0;

  // Called for every event of the sweep, in order; the only way the searcher changes.
  virtual void Observe(const Event& event) = 0;

  // All that Observe has changed, as bytes, and back again into a searcher of the same spec. After
  // an extension the spec has larger limits than the one that was saved.
  virtual void Save(ArchiveWriter& archive) const = 0;
  virtual void Load(ArchiveReader& archive) = 0;
};

}  // namespace attune
