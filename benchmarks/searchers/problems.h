#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/space/search_space.h"

namespace attune::benchmarks {

// A function to minimise. Its smallest value is known.
struct Problem {
  std::string name;
  int dimensions = 0;
  SearchSpace space;
  std::function<double(const Config&)> loss;
  double optimum = 0;
};

// Functions from the literature (Jamil and Yang, arXiv:1308.4008; Hansen et al., "Real-parameter
// black-box optimization benchmarking", 2009), in 2 to 10 dimensions, and one mixed and one
// conditional space. Functions with their optimum at the centre are shifted and rotated at random,
// because a searcher may begin at the centre. Each instance has another shift and rotation.
std::vector<Problem> StandardProblems(uint64_t instance);

// Trees of lists: the value of a list decides which list or parameters follow. There are two to
// nine paths. Each ends in a quadratic bowl over two or three numbers. `dimensions` counts the
// parameters of one path.
std::vector<Problem> BranchingProblems(uint64_t instance);

}  // namespace attune::benchmarks
