#pragma once

#include <string>

#include "core/algorithms/algorithms.h"
#include "sweepfile/codec.h"

namespace attune::sweepfile {

// A JSON schema (draft 7, which editors know) of the sweep files that ParseSweep takes, as far as a
// schema can say it.
Json SweepSchema(const Algorithms& algorithms);

// The tables of every key, in Markdown: the reference in docs/reference/sweep-file.md.
std::string KeyReference(const Algorithms& algorithms);

}  // namespace attune::sweepfile
