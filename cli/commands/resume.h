#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client/api.h"
#include "cli/json.h"
#include "core/log/sweep_spec.h"

namespace attune::cli {

// The unfinished sweeps in the data folder of `attune run FILE`.
struct Unfinished {
  // The newest sweep of this file.
  std::optional<Parsed<rest::SweepDetail>> same;
  std::vector<std::string> others;  // ids of the other sweeps, which also run
};

// How to decide whether a sweep belongs to a file: by the absolute path (by the text, if the path
// is unknown), or always by the text.
enum class SameBy { kPath, kText };

// Reads the sweeps over REST.
Result<Unfinished> FindUnfinished(Api& api, const SweepDocument& document,
                                  SameBy by = SameBy::kPath);

// How a sweep file differs from its sweep. Compares resolved files, so comments and order do not
// count.
struct FileDifference {
  std::vector<std::string> changes;  // changes that an edit would make: "stop.max_trials 200"
  Json patch = Json::object();       // the edit (RFC 7396)
  std::string obstacle;              // why an edit cannot apply the file; empty if it can

  bool empty() const { return changes.empty() && obstacle.empty(); }
};

// `file`: the parsed document. The result is empty if the file is equivalent to the file that
// created the sweep, or to the sweep after its edits.
Result<FileDifference> CompareWithFile(Api& api, const rest::SweepDetail& sweep,
                                       const SweepDocument& document, const SweepSpec& file);

}  // namespace attune::cli
