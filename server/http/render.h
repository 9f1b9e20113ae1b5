#pragma once

#include <string>
#include <vector>

#include "server/http/backend.h"
#include "server/store/json.h"
#include "server/store/reader.h"

// Rows as the JSON of docs/rest-api.md.
namespace attune::server {

// Without `file` and `parameters`, as in lists.
Json SweepToJson(const SweepRow& sweep, const std::vector<Step>& rungs, std::string waiting);
Json ParametersToJson(const SearchSpace& space);
Json StepsToJson(const std::vector<Step>& steps);

Json TrialToJson(const TrialRow& trial);
Json DetailToJson(const TrialDetail& detail);

// As text: built without a document, because curves are long.
std::string CurvesToText(const std::string& metric, const Curves& curves);

Json ExecutorToJson(const Backend::ExecutorStatus& executor);

}  // namespace attune::server
