#pragma once

namespace attune::trainable {

// GPUs that this process sees.
int CountGpus();

}  // namespace attune::trainable
