#pragma once

#include <attune/context.h>

namespace tour {

// A stream is shared by the ranks, saved in the middle of an epoch, and gone on with.
void ReadStream(attune::Context& context);

// A loader draws rare samples more often.
void DrawByWeight(attune::Context& context);

// A program reads data by itself, and asks a sampler which samples are its own.
void SampleByHand(attune::Context& context);

}  // namespace tour
