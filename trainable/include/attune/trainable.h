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
// An exception from any of them fails the trial's attempt, and its text becomes the reason.
class Trainable {
 public:
  virtual ~Trainable() = default;

  // Builds model, data and optimizer. Called once, before anything else.
  virtual void Setup(const Config& config) = 0;

  // Trains one unit and returns its results. A unit is whatever one step means in the sweep file:
  // an epoch, a thousand batches. If training decides itself that this step is the last, the step
  // calls context().Stop().
  virtual Metrics Step() = 0;

  // Writes everything that Load() needs to continue exactly from here.
  virtual void Save(CheckpointWriter& checkpoint) = 0;

  // Called after Setup() if the trial resumes from a checkpoint; context().step() is the step of
  // that checkpoint.
  virtual void Load(const CheckpointReader& checkpoint) = 0;

  // REQUIRES: called in one of the methods above, not in a constructor.
  Context& context() const { return *context_; }

  // Main() calls this before Setup().
  void Attach(Context& context) { context_ = &context; }

 private:
  Context* context_ = nullptr;
};

// A Trainable that runs on every rank of a gang at once. Setup, Load and Step are called on each
// rank. Save is called on rank 0 only, so it must not contain a collective. Pass the model through
// context().PrepareModel() and data through context().PrepareDataLoader().
class DistributedTrainable : public Trainable {
 public:
  // Writes the state that only this rank holds, for a model that is split over the gang. Load()
  // finds it as checkpoint.Shard(rank). If overridden, it is called on every rank after Save() on
  // rank 0, and may contain collectives.
  virtual void SaveShard(ShardWriter& shard) { static_cast<void>(shard); }
};

}  // namespace attune::inline sdk
