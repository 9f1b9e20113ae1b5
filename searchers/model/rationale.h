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
Rationale StartPoint(ProposalNumber proposal, int attempt, const std::string& until);

// Of these trials the one that lies nearest to a point of the cube, of equals the first. Listed
// values that differ, and parameters that only one of the two has, are as far apart as a range is
// wide. REQUIRES: a trial.
uint32_t Nearest(const Record& record, const std::vector<uint32_t>& trials, const Point& point);

// What a configuration has otherwise than a trial, the two largest changes by name: "lr from 0.03
// to 0.021, width 32 is new and 3 more". Empty where nothing differs.
// REQUIRES: one of the record's space.
std::string Changes(const Record& record, uint32_t trial, const Config& config);

}  // namespace attune::searchers
