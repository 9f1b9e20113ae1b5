#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/log/suggestion.h"
#include "searchers/model/record.h"

namespace attune::searchers {

// What searchers say of their proposals. A sentence names few things, and each of them shortly: one
// is kept with every trial.

// A point of a Sobol sequence at a searcher's first attempt, which goes on `until` then; at a later
// one a draw, since that point was tried.
Rationale ExplainStartPoint(ProposalNumber proposal, int attempt, const std::string& until);

// What a configuration has otherwise than a trial, the two largest changes by name: "lr from 0.03
// to 0.021, width 32 is new and 3 more". Empty where nothing differs.
// REQUIRES: one of the record's space.
std::string DescribeChanges(const Record& record, uint32_t trial, const Config& config);

}  // namespace attune::searchers
