#pragma once

#include "core/base/random.h"
#include "core/log/sweep_spec.h"

// Parts of a sweep that are drawn from separate random streams. So a change of one function does
// not change what the same seed draws elsewhere.
namespace attune::sim {

// Some sweeps count time in samples instead of steps.
void DrawTimeUnit(SweepSpec& spec);

// Which gangs grow first, if gangs of the sweep can grow.
void DrawGrowth(SweepSpec& spec);

// Packages and data that hosts need, if the sweep has a program.
void DrawFiles(SweepSpec& spec);

// Draws small values, so that a scheduler makes all kinds of decisions with few trials and steps.
void DrawOptions(SweepSpec& spec, RandomStream& random);

}  // namespace attune::sim
