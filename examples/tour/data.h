#pragma once

#include <attune/context.h>

namespace tour {

// The ranks share a stream, save its position in the middle of an epoch, and continue from there.
void ReadStream(attune::Context& context);

// A loader draws rare samples more often than others.
void DrawByWeight(attune::Context& context);

// A program reads data without a loader. A sampler decides which samples each rank reads.
void SampleByHand(attune::Context& context);

}  // namespace tour
