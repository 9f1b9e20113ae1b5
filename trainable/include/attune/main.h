#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "attune/trainable.h"

namespace attune::inline sdk {

// What a rank knows about itself before it joins its gang.
struct RankInfo {
  // As in Context.
  int rank;
  int world_size;
  int local_rank;
  int local_world_size;
  c10::Device device;
  std::uint64_t seed;
  const Config& config;
  const std::vector<std::string>& args;
};

// Of Main().
struct MainOptions {
  // Called on each rank, however it was started, before anything of it depends on what is set here:
  // no process group exists, no GPU has been touched. The place for environment variables of NCCL,
  // Gloo and CUDA, for at::set_num_threads (it is the rank's CPUs by now), and for seeds of other
  // libraries (LibTorch's generators are seeded afterwards). An exception fails the rank.
  std::function<void(const RankInfo&)> initialization_hook;
};

namespace trainable {

// A training program: what Main() runs on every rank.
struct Program {
  std::function<void(Context&)> train;
  bool distributed = true;    // false: one process only
  std::int64_t max_step = 0;  // when run by hand without --max-step; 0: until `train` returns
  MainOptions options;
};

int RunMain(int argc, char** argv, const Program& program);
void TrainByStep(Context& context, Trainable& trainable,
                 const Context::SaveShardFunction& save_shard);

// Nothing where SaveShard() is not overridden: ranks then need not ask each other what is due.
template <typename T>
Context::SaveShardFunction SaveShardOf(T& trainable) {
  if constexpr (std::derived_from<T, DistributedTrainable>) {
    if constexpr (!std::same_as<decltype(&T::SaveShard),
                                decltype(&DistributedTrainable::SaveShard)>) {
      return [&trainable](ShardWriter& shard) { trainable.SaveShard(shard); };
    }
  }
  return {};
}

// Steps of a Trainable run by hand without --max-step: it has no end of its own.
inline constexpr std::int64_t kStandaloneSteps = 10;

}  // namespace trainable

// The main() of a training program. Under an executor it is a rank (or a launcher of ranks, see
// docs/reference/worker-channel.md); run by hand it trains once: see --help. Returns the exit code:
// 0, 1 when training failed, 2 for wrong arguments.
//
// What a program does before Main() is done once a host where ranks are forked from a launcher, and
// its memory is shared: the place to read data that every rank needs.
//
// A rank does not destroy static objects at its exit, nor run what was registered with atexit
// before Main(): those of LibTorch would take longer than many a training step.
//
// REQUIRES: nothing has touched a tensor or started a thread before: Main() forks.
//
//   return attune::Main<Mnist>(argc, argv, {.initialization_hook = [](const attune::RankInfo&) {
//     setenv("NCCL_SOCKET_IFNAME", "eth1", 0);
//   }});
template <std::derived_from<Trainable> T>
int Main(int argc, char** argv, MainOptions options = {}) {
  return trainable::RunMain(argc, argv,
                            {.train =
                                 [](Context& context) {
                                   T trainable;
                                   trainable::TrainByStep(context, trainable,
                                                          trainable::SaveShardOf(trainable));
                                 },
                             .distributed = std::derived_from<T, DistributedTrainable>,
                             .max_step = trainable::kStandaloneSteps,
                             .options = std::move(options)});
}

// The same for a training loop that is one function, run on every rank:
//
//   return attune::Main(argc, argv, [](attune::Context& context) {
//     …
//     while (context.Report(TrainEpoch(), [&](auto& checkpoint) { checkpoint.Write("model", *net);
//     })) {
//     }
//   });
int Main(int argc, char** argv, std::function<void(Context&)> train, MainOptions options = {});

}  // namespace attune::inline sdk
