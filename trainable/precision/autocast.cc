#include <ATen/autocast_mode.h>

#include <string>

#include "attune/amp.h"
#include "attune/error.h"

namespace attune::inline sdk {
namespace {

c10::DeviceType CheckedDeviceType(c10::Device device, c10::ScalarType dtype) {
  if (device.type() != c10::kCPU && device.type() != c10::kCUDA) {
    throw Error("Autocast: device " + device.str() + " has no autocast; use the CPU or a GPU");
  }
  if (dtype != c10::kBFloat16 && dtype != c10::kHalf) {
    throw Error(std::string("Autocast: dtype ") + c10::toString(dtype) +
                " is neither BFloat16 nor Half");
  }
  return device.type();
}

}  // namespace

Autocast::Autocast(c10::Device device, c10::ScalarType dtype, bool enabled)
    : device_(CheckedDeviceType(device, dtype)),
      enabled_before_(at::autocast::is_autocast_enabled(device_)),
      dtype_before_(at::autocast::get_autocast_dtype(device_)) {
  at::autocast::set_autocast_enabled(device_, enabled);
  at::autocast::set_autocast_dtype(device_, dtype);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  // Casts of weights are cached until the last guard ends; an optimizer changes the weights
  // afterwards.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, enabled_before_);
  at::autocast::set_autocast_dtype(device_, dtype_before_);
}

}  // namespace attune::inline sdk
