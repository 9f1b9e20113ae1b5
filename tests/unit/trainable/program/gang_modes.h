#pragma once

#include <attune/context.h>

namespace at {
class Tensor;
}

// Training functions of the gang program. The value of GANG_PROGRAM_FORM selects one.
namespace gang {

void Checkpoints(attune::Context& context);  // "checkpoints"
void Collectives(attune::Context& context);  // "collectives"
void Docs(attune::Context& context);         // "docs"
void Draws(attune::Context& context);        // "draws"
void Exchange(attune::Context& context);     // "exchange"
void Files(attune::Context& context);        // "files"
void Gradients(attune::Context& context);    // "gradients"
void Loader(attune::Context& context);       // "loader"
void Norms(attune::Context& context);        // "norms"

// Complete programs.
int Hooked(int argc, char** argv);        // "hooked": a whole main() of docs/reference/cpp-sdk.md
int MainOfSplit(int argc, char** argv);   // "split"
int Trainer(int argc, char** argv);       // "trainer"
int TunedTrainer(int argc, char** argv);  // "tuned_trainer"
int ResizedTrial(int argc, char** argv);  // "resized_trial"
int RunGangsInSequence();                 // "one_after_another": gangs of this program

// A 24-bit hash of the values' bit patterns. It is exact in a double, even when squared and summed.
double Hash(const at::Tensor& floats);

}  // namespace gang
