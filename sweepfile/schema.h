#pragma once

#include <string>

#include "core/algorithms/algorithms.h"
#include "sweepfile/codec.h"

namespace attune::sweepfile {

// A JSON schema for sweep files, as far as a schema can express the rules of ParseSweep. It uses
// draft 7, which editors support.
Json SweepSchema(const Algorithms& algorithms);

// The tables of every key, in Markdown: the reference in docs/reference/sweep-file.md.
std::string KeyReference(const Algorithms& algorithms);

}  // namespace attune::sweepfile
