#include "trainable/driver/gpus.h"

#ifdef ATTUNE_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace attune::trainable {

int CountGpus() {
#ifdef ATTUNE_CUDA
  return c10::cuda::device_count();
#else
  return 0;
#endif
}

}  // namespace attune::trainable
