#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>

#include "attune/checkpoint.h"

namespace attune::inline sdk {

// Mixed precision (Micikevicius et al., Mixed Precision Training, ICLR 2018), like torch.amp in
// Python. Parameters, gradients and communication between ranks stay in float.
//
//   at::Tensor loss;
//   {
//     const attune::Autocast autocast(context.device());
//     loss = torch::cross_entropy_loss(model(images), labels);
//   }
//   loss.backward();

// While this guard exists, LibTorch's operations on the device run in `dtype` on this thread if
// that is safe. Run forward and loss under it, but not backward. Guards may be nested; each
// restores the previous setting.
//
// bfloat16 works on CPUs and GPUs and has the range of a float. Half (GPUs, and newer CPUs) needs a
// GradScaler. Throws attune::Error for any other type, and for a device without autocast.
class Autocast {
 public:
  // With `enabled` false, autocast is off while the guard exists.
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

// Options of GradScaler. Defaults are the same as in torch.amp.
struct GradScalerOptions {
  double init_scale = 65536;            // initial factor
  double growth_factor = 2;             // applied after growth_interval steps without an overflow
  double backoff_factor = 0.5;          // applied after a step with an overflow
  std::int64_t growth_interval = 2000;  // in calls of update()
  bool enabled = true;                  // false: losses and gradients are unchanged
};

// Scales losses so that small gradients survive in half precision, and skips steps whose gradients
// became infinite. The factor adapts automatically.
//
//   scaler.scale(loss).backward();
//   scaler.unscale_(optimizer);        // only needed to read gradients, for example to clip them
//   model.clip_grad_norm_(1.0);
//   scaler.step(optimizer);
//   scaler.update();                   // once, after the steps of all optimizers
//
// Gradients of a prepared model are averaged over the gang. If they overflow on one rank, all ranks
// skip the step, and all keep the same factor.
class GradScaler {
 public:
  // Throws attune::Error if a factor or the interval is invalid.
  explicit GradScaler(GradScalerOptions options = {});
  ~GradScaler();
  GradScaler(GradScaler&&) noexcept;
  GradScaler& operator=(GradScaler&&) noexcept;

  // Returns the loss times the factor.
  at::Tensor scale(const at::Tensor& loss);

  // Divides the gradients of the optimizer's parameters by the factor. Throws attune::Error if they
  // are already unscaled since the last update(), and for half-precision gradients.
  void unscale_(torch::optim::Optimizer& optimizer);

  // Unscales the gradients if necessary, and steps unless one is infinite or NaN. Returns whether
  // it stepped. Throws attune::Error if it was already called since the last update(), or if no
  // parameter has a gradient.
  bool step(torch::optim::Optimizer& optimizer);

  // Adapts the factor. Throws attune::Error if nothing was unscaled since the last call.
  void update();

  // The current factor; 1 if the scaler is disabled.
  double get_scale() const;

  // The state, for CheckpointWriter::Write.
  TensorMap state_dict() const;
  void load_state_dict(const TensorMap& state);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attune::inline sdk
