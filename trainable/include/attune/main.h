#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "attune/trainable.h"

namespace attune::inline sdk {

// What a rank knows before it joins its gang.
struct RankInfo {
  // The members have the same meaning as in Context.
  int rank;
  int world_size;
  int local_rank;
  int local_world_size;
  c10::Device device;
  std::uint64_t seed;
  const Config& config;
  const std::vector<std::string>& args;
};

// Options of Main().
struct MainOptions {
  // Called on each rank, however it was started, before its settings take effect: no process group
  // exists and no GPU has been used. Use it for environment variables of NCCL, Gloo and CUDA, for
  // at::set_num_threads (already set to the rank's CPUs), and for seeds of other libraries.
  // LibTorch's generators are seeded afterwards. An exception fails the rank.
  std::function<void(const RankInfo&)> initialization_hook;
};

namespace trainable {

// A training program that Main() runs on every rank.
struct Program {
  std::function<void(Context&)> train;
  bool distributed = true;    // false: only one process is allowed
  std::int64_t max_step = 0;  // used if run by hand without --max-step; 0: until `train` returns
  MainOptions options;
};

int RunMain(int argc, char** argv, const Program& program);
void TrainByStep(Context& context, Trainable& trainable,
                 const Context::SaveShardFunction& save_shard);

// Empty if SaveShard() is not overridden; ranks then need not communicate before saving.
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

// Number of steps of a Trainable that is run by hand without --max-step. A Trainable has no end
// itself.
inline constexpr std::int64_t kStandaloneSteps = 10;

}  // namespace trainable

// The main() of a training program. Under an executor, the process is a rank, or a launcher of
// ranks (see docs/reference/worker-channel.md). Run by hand, it trains once; see --help. Returns
// the exit code: 0 for success, 1 if training failed, 2 for wrong arguments.
//
// If ranks are forked from a launcher, code before Main() runs once for each host, and its memory
// is shared. Read data that every rank needs there.
//
// A rank does not destroy static objects at exit, and does not run atexit handlers registered
// before Main(). Destroying LibTorch's objects would take longer than many training steps.
//
// REQUIRES: the process has not used a tensor or started a thread before, because Main() forks.
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

// The same for a training loop that is one function. It runs on every rank:
//
//   return attune::Main(argc, argv, [](attune::Context& context) {
//     …
//     while (context.Report(TrainEpoch(), [&](auto& checkpoint) { checkpoint.Write("model", *net);
//     })) {
//     }
//   });
int Main(int argc, char** argv, std::function<void(Context&)> train, MainOptions options = {});

}  // namespace attune::inline sdk
