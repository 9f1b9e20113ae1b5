#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "attune/worker_group.h"
#include "trainable/driver/message.h"

// What a WorkerGroup and its workers say to each other. The first message has a worker construct
// its object, and each further one calls a function with it. Each has an answer.
namespace attune::inline sdk::trainable {

// The function's address goes behind the arguments. FunctionAt() finds it.
Message ToMessage(std::uintptr_t function, Packer args);
std::uintptr_t TakeFunction(Message& call);

// A result, or the text of what was thrown instead. TakeError() says whether it is the latter; the
// bytes then are the text.
Message ResultMessage(Packer result);
Message ErrorMessage(std::string text);
bool TakeError(Message& answer);

// Serves a WorkerGroup, as Task::serve.
void ServeGroup(Context& context, MessageSocket& driver, const Task& task);

}  // namespace attune::sdk::trainable
