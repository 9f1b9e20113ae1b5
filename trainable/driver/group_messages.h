#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attune/worker_group.h"
#include "trainable/driver/link.h"

// What a WorkerGroup and its workers say to each other. The first message says which worker this
// is, the second has it construct its object, and each further one calls a function with it; each
// but the first has an answer.
namespace attune::inline sdk::trainable {

struct Place {
  int index = 0;
  int size = 1;
};
Message ToMessage(const Place& place);
Place ReadPlace(const Message& message);

// The function's address goes behind the arguments. Functions are found as in a Task.
Message ToMessage(std::uintptr_t function, Packer args);
std::uintptr_t TakeFunction(Message& call);

// A result, or the text of what was thrown instead. TakeError() is whether it is the latter, whose
// bytes then are the text.
Message ResultMessage(Packer result);
Message ErrorMessage(std::string text);
bool TakeError(Message& answer);

// Serves a WorkerGroup: a Task's function.
void ServeGroup(Context& context, Link& driver, const std::string& settings);

}  // namespace attune::inline sdk::trainable
