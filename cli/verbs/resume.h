#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client/api.h"
#include "cli/json.h"
#include "core/log/sweep_spec.h"

namespace attune::cli {

// Sweeps in the data folder of `attune run FILE` that have not ended.
struct Unfinished {
  // The newest sweep of this file.
  std::optional<Parsed<rest::SweepDetail>> same;
  std::vector<std::string> others;  // ids of the other sweeps; they run as well
};

// What makes a sweep one of this file: its absolute path or, if that is unknown, its text; always
// its text.
enum class SameBy { kPath, kText };

// Reads the sweeps over REST.
Result<Unfinished> FindUnfinished(Api& api, const SweepDocument& document,
                                  SameBy by = SameBy::kPath);

// How a sweep file differs from a sweep of it. Files are compared by what they mean.
struct FileDifference {
  std::vector<std::string> changes;  // that an edit of the sweep makes: "stop.max_trials 200"
  Json patch = Json::object();       // that makes them (RFC 7396)
  std::string obstacle;  // why an edit cannot make the sweep what the file says; empty: it can

  bool empty() const { return changes.empty() && obstacle.empty(); }
};

// `now`: what the file means. Empty if the file means what it meant when the sweep was created, or
// what the sweep is by now, after edits.
Result<FileDifference> CompareWithFile(Api& api, const rest::SweepDetail& sweep,
                                       const SweepDocument& document, const SweepSpec& now);

}  // namespace attune::cli
