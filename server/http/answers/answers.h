#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "server/http/backend/backend.h"
#include "server/http/routes/fleet/pilots.h"
#include "server/http/transport/message.h"
#include "server/store/json.h"
#include "server/store/reader.h"

namespace attune::server {

Response JsonAnswer(const Json& json, int status = 200);

// Sweeps and trials as answers: rows of the store with what only the brain knows of them now, and
// what keepers of pilots say about those that wait for room.
class Answers {
 public:
  // All outlive the object.
  Answers(Backend& backend, Reader& reader, const Algorithms& algorithms, const Pilots& pilots)
      : backend_(backend), reader_(reader), algorithms_(algorithms), pilots_(pilots) {}

  // `effect` of a request that steers; empty: it was only asked for.
  Response Sweep(SweepId id, int status = 200, const std::string& effect = "") const;
  Response Trial(const TrialId& id, int status = 200, const std::string& effect = "") const;

  Json Sweeps(std::span<const SweepRow> rows) const;
  Json Trials(std::span<const TrialRow> rows) const;

  std::vector<Step> RungsOf(const SweepSpec& spec) const;

 private:
  Backend& backend_;
  Reader& reader_;
  const Algorithms& algorithms_;
  const Pilots& pilots_;
};

}  // namespace attune::server
