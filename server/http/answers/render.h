#pragma once

#include <string>
#include <vector>

#include "core/log/sweep_spec.h"
#include "server/http/backend/backend.h"
#include "server/store/json.h"
#include "server/store/reader.h"

// Rows as the JSON of docs/rest-api.md.
namespace attune::server {

// What only the brain knows of a sweep.
struct LiveSweep {
  std::string waiting;   // what its next gang waits for
  std::string stopping;  // how it will have ended
};

// Without `file` and `parameters`, as in lists.
Json SweepToJson(const SweepRow& sweep, const std::vector<Step>& rungs, const LiveSweep& live);
Json LimitsToJson(const StopPolicy& stop);
Json ParametersToJson(const SearchSpace& space);
Json StepsToJson(const std::vector<Step>& steps);

Json TrialToJson(const TrialRow& trial, const std::string& waiting);
// Why it has its configuration and, where something was decided, why that.
Json ExplanationToJson(const TrialRow& trial, const std::optional<Explanation>& explanation);
Json KeptToJson(SweepId sweep, const std::vector<KeptRow>& kept);
Json DetailToJson(const TrialDetail& detail, const std::string& waiting);

Json ImportancesToJson(const std::string& metric, const Importances& importances);
Json LoggedToJson(const LoggedRow& row);
// As text: built without a document, because curves are long.
std::string CurvesToText(const std::string& metric, const Curves& curves);

// What the state says of it; `silent_seconds` as in the result.
Backend::ExecutorStatus StatusOf(const State& state, const Executor& executor,
                                 std::optional<double> silent_seconds);
Json DemandToJson(const Demand& demand);
Json ExecutorToJson(const Backend::ExecutorStatus& executor);

}  // namespace attune::server
