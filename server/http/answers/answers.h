#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/algorithms/algorithms.h"
#include "rest/contract.h"
#include "server/http/backend/backend.h"
#include "server/http/transport/message.h"
#include "server/store/json.h"
#include "server/store/reader.h"

namespace attune::server {

Response JsonAnswer(const Json& json, int status = 200);

// Like JsonAnswer, for a struct of the REST contract.
template <class T>
Response Render(const T& value, int status = 200) {
  return JsonAnswer(rest::ToJson(value), status);
}

// The part of a specification that the request's token may see: only admins see `env`.
SweepSpec VisibleSpec(const Request& request, SweepSpec spec);

// Builds answers for sweeps and trials from rows of the store, the present state of the brain, and
// the reasons why waiting gangs get no pilots.
class Answers {
 public:
  // Returns why the gangs of a sweep get no pilots, as a suffix of the reason for waiting; empty:
  // no reason is known. Any thread.
  using Blockers = std::function<std::string(SweepId)>;

  // All arguments must outlive the object.
  Answers(Backend& backend, Reader& reader, const Algorithms& algorithms, Blockers blockers)
      : backend_(backend),
        reader_(reader),
        algorithms_(algorithms),
        blockers_(std::move(blockers)) {}

  // `effect` describes the effect of a request that changed the sweep or trial; empty: a read.
  Response Sweep(const Request& request, SweepId id, int status = 200,
                 const std::string& effect = "") const;
  Response Trial(const TrialId& id, int status = 200, const std::string& effect = "") const;

  std::vector<rest::Sweep> Sweeps(std::span<const SweepRow> rows) const;
  std::vector<rest::Trial> Trials(std::span<const TrialRow> rows) const;

  std::vector<Step> RungsOf(const SweepSpec& spec) const;

 private:
  Backend& backend_;
  Reader& reader_;
  const Algorithms& algorithms_;
  const Blockers blockers_;
};

}  // namespace attune::server
