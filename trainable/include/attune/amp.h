#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>

#include "attune/checkpoint.h"

namespace attune::inline sdk {

// Mixed precision (Micikevicius et al., Mixed Precision Training, ICLR 2018): what torch.amp is in
// Python. Parameters, gradients and what ranks exchange stay float.
//
//   at::Tensor loss;
//   {
//     const attune::Autocast autocast(context.device());
//     loss = torch::cross_entropy_loss(model(images), labels);
//   }
//   loss.backward();

// While it lives, LibTorch's operations on the device run in `dtype` where that is safe, on this
// thread: forward and loss belong under it, backward does not. Guards may be nested; each brings
// back what was before.
//
// bfloat16 works on CPUs and GPUs and has the range of a float. Half (GPUs, and newer CPUs) needs a
// GradScaler. Throws attune::Error for any other type, and for a device that has no autocast.
class Autocast {
 public:
  // With `enabled` false autocast is off while it lives.
  explicit Autocast(c10::Device device, c10::ScalarType dtype = c10::ScalarType::BFloat16,
                    bool enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const c10::DeviceType device_;
  const bool enabled_before_;
  const c10::ScalarType dtype_before_;
};

// Of GradScaler; without others, those of torch.amp.
struct GradScalerOptions {
  double init_scale = 65536;            // the first factor
  double growth_factor = 2;             // after growth_interval steps without an overflow
  double backoff_factor = 0.5;          // after one with
  std::int64_t growth_interval = 2000;  // in calls of update()
  bool enabled = true;                  // false: losses and gradients are left as they are
};

// Multiplies losses so that small gradients survive in half precision, and leaves out the steps in
// which they became infinite; the factor finds its size by itself.
//
//   scaler.scale(loss).backward();
//   scaler.unscale_(optimizer);        // only where gradients are looked at, as to clip them
//   model.clip_grad_norm_(1.0);
//   scaler.step(optimizer);
//   scaler.update();                   // once, after the steps of all optimizers
//
// Gradients of a prepared model are those of the gang: where one rank's overflow, all leave out the
// step. With them all ranks keep the same factor.
class GradScaler {
 public:
  // Throws attune::Error when a factor or an interval makes no sense.
  explicit GradScaler(GradScalerOptions options = {});
  ~GradScaler();
  GradScaler(GradScaler&&) noexcept;
  GradScaler& operator=(GradScaler&&) noexcept;

  // The loss times the factor.
  at::Tensor scale(const at::Tensor& loss);

  // Divides the gradients of the optimizer's parameters by the factor. Throws attune::Error when
  // that was done since the last update(), and for gradients that are themselves half precision.
  void unscale_(torch::optim::Optimizer& optimizer);

  // Unscales unless that was done, and steps unless a gradient is infinite or not a number; returns
  // whether it did. Throws attune::Error when it was called since the last update(), and when no
  // parameter has a gradient.
  bool step(torch::optim::Optimizer& optimizer);

  // Adapts the factor. Throws attune::Error when nothing was unscaled since the last call.
  void update();

  // The factor; 1 where the scaler is not enabled.
  double get_scale() const;

  // For CheckpointWriter::Write.
  TensorMap state_dict() const;
  void load_state_dict(const TensorMap& state);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attune::inline sdk
