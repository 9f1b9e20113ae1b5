#pragma once

#include <cstddef>
#include <vector>

#include "searchers/model/cube.h"

namespace attune::searchers {

// The part of the cube in which is searched: a box of its numbers; lists are searched whole.
struct Box {
  Point low;
  Point high;
};

// The side of a trust region after these losses, in the order in which their trials were made
// (Eriksson, Pearce, Gardner, Turner and Poloczek, "Scalable Global Optimization via Local Bayesian
// Optimization", NeurIPS 2019, §3): twice as long after 3 that were better than all before, half as
// long after as many that were not as there are dimensions, at least 4; between 2^-7, where it
// begins again, and 1.6, which is everywhere. Infinity counts as a loss.
double TrustRegionSide(const std::vector<double>& losses, size_t dimensions);

// A box of this side on average around the point, its sides in the ratio of the lengthscales, as
// far as it lies in the cube; all of it where a coordinate is absent.
Box TrustRegion(const Point& centre, const std::vector<double>& lengthscales, double side);

}  // namespace attune::searchers
