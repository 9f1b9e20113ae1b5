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

// A model that PrepareModel() made; see attune/distributed_model.h.
template <typename M>
using DistributedModel = trainable::ModelOf<typename trainable::ModuleIn<M>::Type>;

// What a rank knows about its trial, and how it reports. One per process, made by Main(); it lives
// as long as the training code runs. All calls are for the thread that runs the training code.
class Context {
 public:
  // Writes what resuming needs; see Report().
  using SaveFunction = std::function<void(CheckpointWriter&)>;
  using SaveShardFunction = std::function<void(ShardWriter&)>;

  // Joins the gang: blocks until every rank has.
  Context(const trainable::Start& start, trainable::Channel& channel,
          std::vector<std::string> args);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // The trial's, equal on all ranks.
  const Config& config() const;

  // Arguments meant for the program itself: those of the sweep file's `command`, or, run by hand,
  // those after `--`. A rank forked by a launcher has them here only; its main() has run before.
  const std::vector<std::string>& args() const;

  // Ranks count from 0, and so do those of a host.
  int rank() const;
  int world_size() const;
  int local_rank() const;  // among the ranks on this host
  int local_world_size() const;
  c10::Device device() const;  // the CPU, or the first GPU that is this rank's

  // Every device of this rank, device() first: several where the sweep's `gpus_per_worker` is above
  // 1. PrepareModel() and PrepareDataLoader() use the first; the others are for the program's code.
  const std::vector<c10::Device>& devices() const;

  // The trial's seed: the same on every rank and attempt. LibTorch's generators, of the CPU and of
  // GPUs, are seeded from it before training code runs, equally on all ranks, so that all build the
  // same model. They are seeded anew for each step, see SeedStep().
  std::uint64_t seed() const;

  // Seeds LibTorch's generators for the coming step of this rank. A step then draws numbers that
  // differ from those of other ranks and steps, and are the same whether the trial was resumed
  // before it or not. Called for you: after Setup() and Load() of a Trainable, after PrepareModel()
  // in a training function, at the end of each Report(), and before each epoch of a TorchTrainer.
  // Only a training function that never calls PrepareModel() calls it, before its loop.
  void SeedStep();

  // Steps finished so far: 0 on a fresh start, the checkpoint's step after a resume, and one more
  // after each Report().
  std::int64_t step() const;

  // What the sweep measures time in, as of the last Report(): the metric of its `time_attr`,
  // rounded down, or else step(). Of the checkpoint after a resume, so that a program that counts
  // samples goes on counting from here.
  std::int64_t time() const;

  // The time at which this attempt is known to end, or 0: a hint for learning rate schedules.
  std::int64_t max_step() const;

  // The checkpoint to continue from, or null on a fresh start. A Trainable gets it as Load().
  const CheckpointReader* checkpoint() const;
  bool resumed() const { return checkpoint() != nullptr; }

  // Ends a step; call on every rank. Rank 0's metrics are reported; those of other ranks are
  // ignored (see ReduceMean). `save` is called on rank 0 alone, and only when a checkpoint is due
  // at this step, so it must not contain a collective. Training goes on while what it has written
  // is made durable; the report is sent after that.
  //
  // Returns true when training goes on and false when every rank has to leave now; all ranks get
  // the same answer at the same step, in one small broadcast. Waits for the server only at a
  // milestone, at the last step, and where it was asked to: when a sweep is paused or a budget used
  // up.
  [[nodiscard]] bool Report(const Metrics& metrics, const SaveFunction& save = {});

  // The same with what each rank alone holds: `save_shard` is called on every rank after `save` on
  // rank 0. It may contain collectives. All ranks give one, or none does.
  [[nodiscard]] bool Report(const Metrics& metrics, const SaveFunction& save,
                            const SaveShardFunction& save_shard);

  // The same with a checkpoint of files that the program has written. It is kept also where none is
  // due. Only that of rank 0 counts.
  [[nodiscard]] bool Report(const Metrics& metrics, const Checkpoint& checkpoint);
  [[nodiscard]] bool Report(const Metrics& metrics, CheckpointDirectory checkpoint);

  // Logs values between reports, such as the loss of every hundredth batch: points of the trial's
  // curves, at `step` in the trial's own steps, where 2.25 is a quarter of the way from the report
  // of step 2 to that of step 3. Nothing is decided by them, and nobody is waited for, but for room
  // where the server cannot store what comes. Those of ranks other than 0 are ignored. After a
  // resume the points that an earlier attempt logged from there on are replaced. A sign of life, as
  // Heartbeat().
  //
  // Throws attune::Error where the step is negative or not finite, or a name is one that Report()
  // would refuse.
  void Log(const Metrics& metrics, double step);

  // A folder for the checkpoint of the coming report.
  CheckpointDirectory PrepareCheckpointDirectory() const;

  // The coming Report() is the trial's last, whatever its step: it saves a checkpoint, waits for no
  // verdict, and returns false on every rank; the trial is then completed. For training that knows
  // by itself when it is done. Rank 0's word counts; that of other ranks is ignored. Where a metric
  // measures time, a last report within the unit of the one before it is none of its own, and saves
  // nothing.
  void Stop();

  // Says that this rank is alive, at most once a second. A rank that says nothing for the sweep
  // file's `stall_timeout` counts as stuck. Report() says something, and so does each forward of
  // PrepareModel's models; long work without either calls this now and then.
  void Heartbeat();

  // The same at once, and that this rank may say nothing more for `silence`: for one long call that
  // cannot be interrupted. While a rank may be silent so may the others, which perhaps wait for it.
  // Without any call, training may be silent for kSetupSilence until it first says something, and
  // for kSaveSilence while rank 0 saves.
  void Heartbeat(std::chrono::milliseconds silence);

  // Silences that nobody has to announce.
  static constexpr std::chrono::minutes kSetupSilence{30};
  static constexpr std::chrono::minutes kSaveSilence{30};

  // Mean and sum of each metric over all ranks, exact in double; collective, on the CPU. Throws
  // attune::Error on every rank when the ranks bring different names.
  Metrics ReduceMean(const Metrics& metrics);
  Metrics ReduceSum(const Metrics& metrics);

  // Moves the module to device(), gives every rank rank 0's weights and buffers, and synchronises
  // gradients during each backward from here on; collective. Build optimizers after this call. In
  // a training function it also seeds the generators for the coming step, each rank's differently.
  // Defined in attune/distributed_model.h.
  template <typename M>
  DistributedModel<M> PrepareModel(std::shared_ptr<M> module);
  template <typename M>
  DistributedModel<M> PrepareModel(std::shared_ptr<M> module, DistributedModelOptions options);
  template <typename M>
  DistributedModel<M> PrepareModel(const torch::nn::ModuleHolder<M>& module);
  template <typename M>
  DistributedModel<M> PrepareModel(const torch::nn::ModuleHolder<M>& module,
                                   DistributedModelOptions options);

  // This rank's batches of a torch::data dataset, on device(): shuffled, shared out and read ahead.
  // Every rank calls it with the same options, and takes equally many batches. Defined in
  // attune/data_loader.h.
  template <typename Dataset>
  DataLoader<Dataset> PrepareDataLoader(Dataset dataset, DataLoaderOptions options);

  // A sampler of this rank's share of `size` samples, for programs that read data by themselves;
  // rank, world size and seed are filled in. Defined in attune/distributed_sampler.h.
  DistributedSampler PrepareSampler(std::int64_t size) const;
  DistributedSampler PrepareSampler(std::int64_t size, DistributedSamplerOptions options) const;

  // LibTorch's group: Gloo for CPU tensors, NCCL for CUDA tensors. attune/collectives.h has
  // collectives that say who is missing.
  c10d::ProcessGroup& process_group();

  // For the SDK's own use.
  trainable::ProcessGroups& groups();

  // For the SDK's own use: tells the executor that this rank is past its first optimizer step.
  // PrepareModel's models call it at their second forward, and Report() at the first report,
  // whichever comes first; further calls do nothing.
  void NoteFirstOptimizerStep();

  // For the SDK's own use: PrepareModel() has made a model. Ends the set-up of a training function,
  // unless the caller said SeedAfterSetup().
  void NotePreparedModel();

  // For the SDK's own use: the caller knows when its set-up ends, and calls SeedStep() then.
  // PrepareModel() leaves the generators alone.
  void SeedAfterSetup();

  // Sends "done" once all ranks got here; collective. Main() calls it.
  void Finish();

 private:
  struct State;
  // Writes the checkpoint of a step, which is due or not; null when there is none.
  using WriteFunction = std::function<std::unique_ptr<CheckpointWriter>(bool due)>;

  bool EndStep(const Metrics& metrics, const WriteFunction& write);

  std::unique_ptr<State> state_;
};

}  // namespace attune::inline sdk
