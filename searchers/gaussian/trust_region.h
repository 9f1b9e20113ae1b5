#pragma once

#include <cstddef>
#include <vector>

#include "searchers/model/cube.h"

namespace attune::searchers {

// The part of the cube that is searched: a box over its numbers. All values of lists are searched.
struct Box {
  Point low;
  Point high;
};

// The side of a trust region after these losses, in the order of their trials (Eriksson, Pearce,
// Gardner, Turner and Poloczek, "Scalable Global Optimization via Local Bayesian Optimization",
// NeurIPS 2019, §3).
//
// The side doubles after 3 successive improvements, up to 1.6. It halves after a series of losses
// without an improvement, whose length is the number of dimensions but at least 4. Below 2^-7 it
// starts again. A loss may be infinite.
double TrustRegionSide(const std::vector<double>& losses, size_t dimensions);

// The box around a point with this side on average. Its sides are proportional to the lengthscales.
// It is clipped to the cube. In a dimension with an absent coordinate it covers the whole range.
Box TrustRegion(const Point& centre, const std::vector<double>& lengthscales, double side);

}  // namespace attune::searchers
