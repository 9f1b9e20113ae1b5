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
  kManual,  // only by UpdateScheduler(); ReduceLROnPlateauScheduler needs this
};

// How batch and learning rate change when the number of workers changes.
enum class ResizeRule {
  kKeepBatch,        // both stay the same; the share of a worker changes
  kScaleWithWorkers  // the share of a worker stays the same; both scale with the workers
};

// Options of TorchTrainer.
struct TorchTrainerOptions {
  int num_workers = 1;  // processes, each with a copy of the model
  int min_workers = 0;  // training never runs with fewer; 0: num_workers

  // Returns how many workers can run now. It is called before each epoch, and after a worker is
  // lost. Default: num_workers, or the number of GPUs.
  std::function<int()> available_workers;
  ResizeRule resize_rule = ResizeRule::kKeepBatch;  // applied when the number of workers changes

  int cpus_per_worker = 1;  // threads of LibTorch
  bool use_gpu = false;     // one GPU for each worker
  std::string backend;      // "gloo" on CPUs, "nccl" on GPUs; empty: chosen by device
  bool use_fp16 = false;    // half precision with a GradScaler; see attune/amp.h
  bool use_bf16 = false;    // bfloat16, which needs no GradScaler

  // Samples of a global batch, over all workers together. An integer `batch_size` in the
  // configuration has precedence.
  std::int64_t batch_size = 32;
  int data_threads = 1;  // per worker; see DataLoaderOptions::threads

  SchedulerStep scheduler_step_freq = SchedulerStep::kEpoch;  // when all schedulers step
  DistributedModelOptions model;                              // applied to each model

  // The argument of the creators.
  Config config;
  std::uint64_t seed = 0;                                  // below 2^53
  void (*initialization_hook)(const RankInfo&) = nullptr;  // see MainOptions

  // Keeps a copy of the state in memory after every change, to continue from when a worker is lost.
  // If false, losing a worker ends the training.
  bool checkpoint = true;
  int max_retries = 3;  // per call, after lost workers
  // How long a worker may be silent before it counts as lost, at least 3 s; 0: no limit. Each
  // forward of a prepared model and each of batches() sends a heartbeat; see Context::Heartbeat().
  std::chrono::milliseconds stall_timeout = std::chrono::minutes(10);
  // How long to wait until min_workers workers can run.
  std::chrono::milliseconds room_timeout = std::chrono::minutes(30);
};

// Options of one TorchTrainer::Train() or Validate().
struct TrainOptions {
  std::int64_t num_steps = 0;  // maximum number of batches; 0: a whole epoch
  int max_retries = -1;        // -1: the value of TorchTrainerOptions
  bool profile = false;        // measure exactly, even if that means waiting for the GPU
  bool reduce_results = true;  // false: also return the means of each worker
};

}  // namespace attune::inline sdk
