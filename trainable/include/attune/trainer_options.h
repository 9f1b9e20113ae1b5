#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "attune/config.h"
#include "attune/distributed_model.h"
#include "attune/main.h"

namespace attune::inline sdk {

// When the learning-rate schedulers of a TorchTrainer step.
enum class SchedulerStep {
  kEpoch,   // after each epoch
  kBatch,   // after each batch
  kManual,  // by UpdateScheduler() alone; those of ReduceLROnPlateauScheduler need it
};

// What becomes of batch and learning rate when a trainer goes on with another number of workers.
enum class ResizeRule {
  kKeepBatch,        // both stay; a worker's share changes
  kScaleWithWorkers  // a worker's share stays; both are scaled with the number of workers
};

// Of TorchTrainer.
struct TorchTrainerOptions {
  int num_workers = 1;  // processes, each with a copy of the model
  int min_workers = 0;  // fewer never train; 0: num_workers

  // How many there is room for now: asked before each epoch, and after a loss. Without it, as many
  // as num_workers, or as there are GPUs.
  std::function<int()> available_workers;
  ResizeRule resize_rule = ResizeRule::kKeepBatch;  // when that number changes

  int cpus_per_worker = 1;  // threads of LibTorch
  bool use_gpu = false;     // one each
  std::string backend;      // "gloo" on CPUs, "nccl" on GPUs; empty for the one that fits
  bool use_fp16 = false;    // with a GradScaler; see attune/amp.h
  bool use_bf16 = false;    // without

  // Samples of a batch over all workers together. An integer `batch_size` of the configuration
  // wins.
  std::int64_t batch_size = 32;
  int data_threads = 1;  // of each worker's loaders, see DataLoaderOptions

  SchedulerStep scheduler_step_freq = SchedulerStep::kEpoch;  // of all schedulers
  DistributedModelOptions model;                              // of each model

  // What creators are given.
  Config config;
  std::uint64_t seed = 0;                                  // below 2^53
  void (*initialization_hook)(const RankInfo&) = nullptr;  // as MainOptions'

  // Keep a copy of the state in memory after everything that changes it, from which to go on when a
  // worker is lost. Without, a loss is the end.
  bool checkpoint = true;
  int max_retries = 3;  // of one call, after losses
  // Of a worker that says nothing, at least 3 s; 0: for ever. A prepared model speaks at each
  // forward, and so do batches(); see Context::Heartbeat().
  std::chrono::milliseconds stall_timeout = std::chrono::minutes(10);
  // How long to wait for room for min_workers.
  std::chrono::milliseconds room_timeout = std::chrono::minutes(30);
};

// Of one TorchTrainer::Train() or Validate().
struct TrainOptions {
  std::int64_t num_steps = 0;  // batches at most; 0: a whole epoch
  int max_retries = -1;        // -1: as TorchTrainerOptions'
  bool profile = false;        // measure exactly, also where that means to wait for a GPU
  bool reduce_results = true;  // false: also what each worker has by itself
};

}  // namespace attune::inline sdk
