#pragma once

#include <string>

#include "core/algorithms/algorithms.h"
#include "schedulers/register.h"
#include "searchers/register.h"

namespace attune::sweepfile {

inline Algorithms AllAlgorithms() {
  Algorithms algorithms;
  searchers::RegisterSearchers(algorithms);
  schedulers::RegisterSchedulers(algorithms);
  return algorithms;
}

// The tables stand between these lines of docs/sweep-file.md.
inline constexpr std::string_view kReferenceBegin = "<!-- keys: begin -->\n";
inline constexpr std::string_view kReferenceEnd = "<!-- keys: end -->";

}  // namespace attune::sweepfile
