#pragma once

#include "attune/checkpoint.h"
#include "attune/config.h"
#include "attune/context.h"
#include "attune/error.h"
#include "attune/metrics.h"

namespace attune::inline sdk {

// A training program in four methods, run in one process:
//
//   Setup → [Load] → Step → Step → … with Save between two steps when a checkpoint is due.
//
// An exception out of any of them fails the trial's attempt, and its text says why.
class Trainable {
 public:
  virtual ~Trainable() = default;

  // Builds model, data and optimizer. Called once, before anything else.
  virtual void Setup(const Config& config) = 0;

  // Trains one unit (an epoch, a thousand batches: whatever one step means in the sweep file) and
  // returns its results. One that is the last of its own accord calls context().Stop().
  virtual Metrics Step() = 0;

  // Puts into the checkpoint what Load() needs to continue exactly from here.
  virtual void Save(CheckpointWriter& checkpoint) = 0;

  // Called after Setup() when the trial continues from a checkpoint; context().step() is its step.
  virtual void Load(const CheckpointReader& checkpoint) = 0;

  // REQUIRES: called in one of the methods above, not in a constructor.
  Context& context() const { return *context_; }

  // Main() calls this before Setup().
  void Attach(Context& context) { context_ = &context; }

 private:
  Context* context_ = nullptr;
};

// A Trainable that runs on every rank of a gang at once. Setup, Load and Step are called on each;
// Save on rank 0 alone, so it must not contain a collective. The model goes through
// context().PrepareModel(), data through context().PrepareDataLoader().
class DistributedTrainable : public Trainable {
 public:
  // Puts into the checkpoint what this rank alone holds, for a model that is split over the gang;
  // Load() finds it as checkpoint.Shard(rank). Where it is overridden, it is called on every rank
  // after Save() on rank 0, and may contain collectives.
  virtual void SaveShard(ShardWriter& shard) { static_cast<void>(shard); }
};

}  // namespace attune::inline sdk
