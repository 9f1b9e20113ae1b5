#pragma once

#include <mutex>

#include "trainable/driver/zygote.h"

namespace attune::inline sdk::trainable {

// What attune::Init() has made of this process.
struct Driver {
  Zygote zygote;
  std::mutex asking;  // the zygote
};

// Of the driver's zygote. Throws Error unless Init() was called.
LocalLauncher ForkLauncher();

}  // namespace attune::inline sdk::trainable
