#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attune/context.h"
#include "attune/main.h"
#include "trainable/driver/link.h"

namespace attune::inline sdk::trainable {

// What a worker is to run: functions of this very program, which lie where they lie in every fork.
struct Task {
  // Serves the driver until it is gone. An exception out of it fails the gang.
  void (*serve)(Context& context, Link& driver, const std::string& settings) = nullptr;
  std::string settings;
  void (*initialization_hook)(const RankInfo&) = nullptr;  // as MainOptions'; may be null
};

// As the first message to a worker, and from it. Reading throws attune::Error where this process
// has no code at an address: a function of a library that was loaded after attune::Init().
std::string ToBytes(const Task& task);
Task ReadTask(std::string_view bytes);

// Whether this process has code at the address.
bool IsCode(std::uintptr_t address);

template <typename Function>
Function* FunctionAt(std::uintptr_t address) {
  if (!IsCode(address)) {
    throw Error(
        "a worker has no such function: it is of a library that was loaded after "
        "attune::Init()");
  }
  return reinterpret_cast<Function*>(address);
}

template <typename Function>
std::uintptr_t AddressOf(Function* function) {
  return reinterpret_cast<std::uintptr_t>(function);
}

}  // namespace attune::inline sdk::trainable
