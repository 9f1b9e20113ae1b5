#include "trainable/driver/worker_options.h"

#include "attune/error.h"

#ifdef ATTUNE_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace attune::inline sdk::trainable {
namespace {

constexpr int kWorkersMax = 4096;

std::string NumWorkers(int value) { return "num_workers: " + std::to_string(value); }

}  // namespace

int CountGpus() {
#ifdef ATTUNE_CUDA
  return c10::cuda::device_count();
#else
  return 0;
#endif
}

void OptionCheck::Require(bool holds, const std::string& option, const std::string& rule) const {
  if (!holds) throw Error(owner_ + ": " + option + " " + rule);
}

void OptionCheck::RequireWorkers(int num_workers, int cpus_per_worker, std::uint64_t seed) const {
  Require(num_workers >= 1 && num_workers <= kWorkersMax, NumWorkers(num_workers),
          "must be from 1 to " + std::to_string(kWorkersMax));
  Require(cpus_per_worker >= 1, "cpus_per_worker: " + std::to_string(cpus_per_worker),
          "must be at least 1");
  Require(seed >> kSeedBits == 0, "seed: " + std::to_string(seed), "must be below 2^53");
}

void OptionCheck::RequireGpus(int num_workers, int needed) const {
  Require(CountGpus() >= needed, NumWorkers(num_workers),
          "with use_gpu needs as many GPUs, but there are " + std::to_string(CountGpus()));
}

}  // namespace attune::inline sdk::trainable
