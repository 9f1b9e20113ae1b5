#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/log/suggestion.h"
#include "searchers/model/record.h"

namespace attune::searchers {

// Texts that explain proposals. They are short, because one is stored with each trial.

// Explains a proposal before a searcher has a model. Attempt 0 is a point of a Sobol sequence,
// which is used `until` a condition. A later attempt is a random draw, because that point was
// tried.
Rationale ExplainStartPoint(ProposalNumber proposal, int attempt, const std::string& until);

// Describes how a configuration differs from a trial, with the two largest changes by name: "lr
// from 0.03 to 0.021, width 32 is new and 3 more". Empty without a difference. REQUIRES: the
// configuration is in the record's space.
std::string DescribeChanges(const Record& record, uint32_t trial, const Config& config);

}  // namespace attune::searchers
