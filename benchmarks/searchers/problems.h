#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/space/search_space.h"

namespace attune::benchmarks {

// A function to minimise, whose smallest value is known.
struct Problem {
  std::string name;
  int dimensions = 0;
  SearchSpace space;
  std::function<double(const Config&)> loss;
  double optimum = 0;
};

// Functions of the literature by their definitions (Jamil and Yang, arXiv:1308.4008; Hansen et al.,
// "Real-parameter black-box optimization benchmarking", 2009), in 2 to 10 dimensions. Those that
// are best at the centre are shifted and rotated at random, since a first point there would
// flatter; another instance is another shift and rotation. Then a family of mixed spaces (reals,
// integers on two scales, lists) and one of conditional ones.
std::vector<Problem> StandardProblems(uint64_t instance);

// Lists that decide which parameters there are, one below the other: two to nine ways that end in a
// bowl each, over two or three numbers. `dimensions` counts what one way has.
std::vector<Problem> BranchingProblems(uint64_t instance);

}  // namespace attune::benchmarks
