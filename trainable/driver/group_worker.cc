#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "attune/worker_group.h"
#include "trainable/driver/group_messages.h"

namespace attune::inline sdk::trainable {
namespace {

Message AnswerOf(const std::function<void(Packer& result)>& call) {
  try {
    Packer result;
    call(result);
    return ResultMessage(std::move(result));
  } catch (const std::exception& error) {
    return ErrorMessage(error.what());
  } catch (...) {
    return ErrorMessage("an exception that does not derive from std::exception");
  }
}

// Receives the next call and its arguments. Returns false if the driver is gone.
bool Receive(MessageSocket& driver, std::uintptr_t& function,
             std::shared_ptr<const Message>& args) {
  args.reset();
  std::optional<Message> message = driver.Receive();
  if (!message) return false;
  function = TakeFunction(*message);
  args = std::make_shared<Message>(std::move(*message));
  return true;
}

}  // namespace

void ServeGroup(Context& context, MessageSocket& driver, const Task& task) {
  const Worker worker{.index = task.worker, .size = task.workers, .context = context};

  std::shared_ptr<void> object;
  std::uintptr_t function = 0;
  std::shared_ptr<const Message> args;
  while (Receive(driver, function, args)) {
    if (object) context.Heartbeat(std::chrono::milliseconds(0));
    const Message answer = AnswerOf([&](Packer& result) {
      Unpacker unpacker(std::move(args));
      if (object) {
        FunctionAt<void(void*, Unpacker&, Packer&)>(function)(object.get(), unpacker, result);
      } else {
        object =
            FunctionAt<std::shared_ptr<void>(const Worker&, Unpacker&)>(function)(worker, unpacker);
      }
    });
    context.Heartbeat(std::chrono::milliseconds(0));
    if (!driver.Send(answer)) return;
  }
}

}  // namespace attune::inline sdk::trainable
