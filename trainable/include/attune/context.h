#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attune/checkpoint.h"
#include "attune/config.h"
#include "attune/metrics.h"

namespace c10d {
class ProcessGroup;
}
namespace torch::nn {
template <typename Contained>
class ModuleHolder;
}

namespace attune::inline sdk {

template <typename Dataset>
class DataLoader;
struct DataLoaderOptions;
struct DistributedModelOptions;
class DistributedSampler;
struct DistributedSamplerOptions;

namespace trainable {
class Channel;
class ProcessGroups;
struct Start;
template <typename M>
class ModelOf;

// The module in a holder such as torch::nn::Linear; any other type is a module itself.
template <typename M>
struct ModuleIn {
  using Type = M;
};
template <typename M>
requires requires { typename M::ContainedType; }
struct ModuleIn<M> {
  using Type = typename M::ContainedType;
};
}  // namespace trainable

// The result of PrepareModel(); see attune/distributed_model.h.
template <typename M>
using DistributedModel = trainable::ModelOf<typename trainable::ModuleIn<M>::Type>;

// The interface of a rank to its trial: what it knows about the trial, and how it reports. Main()
// creates one per process, and it lives as long as the training code runs. Only the thread that
// runs the training code may call it.
class Context {
 public:
  // Writes the state that is needed to resume; see Report().
  using SaveFunction = std::function<void(CheckpointWriter&)>;
  using SaveShardFunction = std::function<void(ShardWriter&)>;

  // Joins the gang. Blocks until every rank has joined.
  Context(const trainable::Start& start, trainable::Channel& channel,
          std::vector<std::string> args);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // The trial's configuration, equal on all ranks.
  const Config& config() const;

  // Arguments for the program itself: those of the sweep file's `command`, or those after `--` if
  // run by hand. In a rank that a launcher forked, they are available only here, because main() has
  // already run.
  const std::vector<std::string>& args() const;

  // Ranks and local ranks count from 0.
  int rank() const;
  int world_size() const;
  int local_rank() const;  // rank among the ranks on this host
  int local_world_size() const;
  c10::Device device() const;  // the CPU, or the first GPU of this rank

  // Every device of this rank, device() first. There are several if the sweep's `gpus_per_worker`
  // is above 1. PrepareModel() and PrepareDataLoader() use the first; the program may use the
  // others.
  const std::vector<c10::Device>& devices() const;

  // The trial's seed, the same on every rank and in every attempt. LibTorch's CPU and GPU
  // generators are seeded with it before training code runs, equally on all ranks, so that all
  // ranks build the same model. They are seeded again for each step; see SeedStep().
  std::uint64_t seed() const;

  // Seeds LibTorch's generators for this rank's next step. The random numbers of a step then differ
  // between ranks and steps, but do not depend on whether the trial was resumed before the step.
  //
  // The SDK calls it after Setup() and Load() of a Trainable, after PrepareModel() in a training
  // function, at the end of each Report(), and before each epoch of a TorchTrainer. Only a training
  // function that never calls PrepareModel() must call it, before its loop.
  void SeedStep();

  // Number of finished steps: 0 on a fresh start, the checkpoint's step after a resume, and one
  // more after each Report().
  std::int64_t step() const;

  // The trial's time after the last Report(): the metric of the sweep's `time_attr`, rounded down,
  // or step() without one. After a resume it is the checkpoint's time, so a program that counts
  // samples can continue from this number.
  std::int64_t time() const;

  // The time at which this attempt is expected to end, or 0 if unknown. A hint for learning-rate
  // schedules.
  std::int64_t max_step() const;

  // The checkpoint to resume from, or null on a fresh start. A Trainable gets it as the argument of
  // Load().
  const CheckpointReader* checkpoint() const;
  bool resumed() const { return checkpoint() != nullptr; }

  // Ends a step; every rank must call it. Rank 0's metrics are reported; those of other ranks are
  // ignored (see ReduceMean). `save` is called on rank 0 only, and only if a checkpoint is due at
  // this step, so it must not contain a collective. Training continues while the written files are
  // made durable; the report is sent afterwards.
  //
  // Returns true if training continues, and false if every rank must leave now. All ranks get the
  // same answer at the same step, through one small broadcast. It waits for the server only at a
  // milestone, at the last step, and on the server's request, for example when the sweep is paused
  // or its budget is used up.
  [[nodiscard]] bool Report(const Metrics& metrics, const SaveFunction& save = {});

  // Also saves state that only one rank holds: `save_shard` is called on every rank after `save` on
  // rank 0. It may contain collectives. Either all ranks pass one, or none does.
  [[nodiscard]] bool Report(const Metrics& metrics, const SaveFunction& save,
                            const SaveShardFunction& save_shard);

  // Reports with a checkpoint of files that the program has written. It is kept even if no
  // checkpoint is due. Only rank 0's checkpoint is used.
  [[nodiscard]] bool Report(const Metrics& metrics, const Checkpoint& checkpoint);
  [[nodiscard]] bool Report(const Metrics& metrics, CheckpointDirectory checkpoint);

  // Logs values between reports, such as the loss of every hundredth batch. They are points of the
  // trial's curves, at `step` in the trial's steps: 2.25 is a quarter of the way from the report of
  // step 2 to that of step 3. Decisions never use them. The call does not wait, except for buffer
  // space if the server cannot store the points fast enough. Only the points of rank 0 are kept.
  // After a resume, new points replace those that an earlier attempt logged from there on. Counts
  // as a heartbeat.
  //
  // Throws attune::Error if the step is negative or not finite, or if Report() would refuse one of
  // the names.
  void Log(const Metrics& metrics, double step);

  // A folder for the checkpoint of the next report.
  CheckpointDirectory PrepareCheckpointDirectory() const;

  // Makes the next Report() the trial's last, whatever its step. That report saves a checkpoint,
  // waits for no verdict, and returns false on every rank; the trial is then completed. It is for
  // training that knows itself when it is done. Only the call on rank 0 counts. If a metric
  // measures time, and the last report falls into the same unit as the one before it, the last
  // report is dropped and saves nothing.
  void Stop();

  // Sends a heartbeat, at most once a second. A rank that is silent for the sweep file's
  // `stall_timeout` counts as stuck. Report() and each forward of a prepared model send one too;
  // call this during long work without either.
  void Heartbeat();

  // Sends a heartbeat at once, and announces that this rank may then be silent for `silence`. It is
  // for one long call that cannot be interrupted. The other ranks may be silent as long, because
  // they may wait for this rank. Without this call, training may be silent for kSetupSilence until
  // its first heartbeat, and for kSaveSilence while rank 0 saves.
  void Heartbeat(std::chrono::milliseconds silence);

  // Silences that need no announcement.
  static constexpr std::chrono::minutes kSetupSilence{30};
  static constexpr std::chrono::minutes kSaveSilence{30};

  // Mean and sum of each metric over all ranks, computed in double; collective, on the CPU. Throws
  // attune::Error on every rank if the ranks pass different names.
  Metrics ReduceMean(const Metrics& metrics);
  Metrics ReduceSum(const Metrics& metrics);

  // Moves the module to device(), copies rank 0's weights and buffers to every rank, and
  // synchronises gradients during each later backward; collective. Build optimizers after this
  // call. In a training function it also seeds the generators for the next step, differently on
  // each rank. Defined in attune/distributed_model.h.
  template <typename M>
  DistributedModel<M> PrepareModel(std::shared_ptr<M> module);
  template <typename M>
  DistributedModel<M> PrepareModel(std::shared_ptr<M> module, DistributedModelOptions options);
  template <typename M>
  DistributedModel<M> PrepareModel(const torch::nn::ModuleHolder<M>& module);
  template <typename M>
  DistributedModel<M> PrepareModel(const torch::nn::ModuleHolder<M>& module,
                                   DistributedModelOptions options);

  // Returns this rank's batches of a torch::data dataset, on device(): shuffled, divided among the
  // ranks, and read ahead. Every rank calls it with the same options and gets the same number of
  // batches. Defined in attune/data_loader.h.
  template <typename Dataset>
  DataLoader<Dataset> PrepareDataLoader(Dataset dataset, DataLoaderOptions options);

  // Returns a sampler of this rank's share of `size` samples, for programs that read data
  // themselves. It fills in rank, world size and seed. Defined in attune/distributed_sampler.h.
  DistributedSampler PrepareSampler(std::int64_t size) const;
  DistributedSampler PrepareSampler(std::int64_t size, DistributedSamplerOptions options) const;

  // LibTorch's process group: Gloo for CPU tensors, NCCL for CUDA tensors. The collectives in
  // attune/collectives.h also say which ranks are missing.
  c10d::ProcessGroup& process_group();

  // For the SDK only.
  trainable::ProcessGroups& groups();

  // For the SDK only. Tells the executor that this rank has passed its first optimizer step.
  // Prepared models call it at their second forward, and Report() calls it at the first report. The
  // first call counts; further calls do nothing.
  void NoteFirstOptimizerStep();

  // For the SDK only. PrepareModel() has created a model, which ends the setup of a training
  // function unless SeedAfterSetup() was called.
  void NotePreparedModel();

  // For the SDK only. The caller knows when its setup ends, and calls SeedStep() then.
  // PrepareModel() no longer seeds the generators.
  void SeedAfterSetup();

  // Sends "done" after all ranks have called it; collective. Main() calls it.
  void Finish();

 private:
  struct State;
  // Writes the checkpoint of a step; the argument says whether one is due. Returns null if it wrote
  // none.
  using WriteFunction = std::function<std::unique_ptr<CheckpointWriter>(bool due)>;

  bool EndStep(const Metrics& metrics, const WriteFunction& write);

  std::unique_ptr<State> state_;
};

}  // namespace attune::inline sdk
