#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attune/worker_group.h"
#include "trainable/driver/message.h"

// Messages between a WorkerGroup and its workers. The first message makes a worker construct its
// object. Each later one calls a function with that object. Each gets an answer.
namespace attune::inline sdk::trainable {

// The function's address follows the arguments. FunctionAt() converts it.
Message ToMessage(std::uintptr_t function, Packer args);
std::uintptr_t TakeFunction(Message& call);

// A result, or the text of an exception. TakeError() returns whether it is an exception; the
// remaining bytes are then its text.
Message ResultMessage(Packer result);
Message ErrorMessage(std::string text);
bool TakeError(Message& answer);

// Serves a WorkerGroup. It is used as Task::serve.
void ServeGroup(Context& context, MessageSocket& driver, const Task& task);

}  // namespace attune::inline sdk::trainable
