#pragma once

#include <string>
#include <vector>

#include "trainable/driver/zygote.h"

namespace attune::trainable {

// What attune::Init() has made of this process.
struct Driver {
  Zygote zygote;
  std::vector<std::string> args;  // the program's, its name not among them
};

// Throws Error unless Init() was called.
Driver& TheDriver();

}  // namespace attune::trainable
