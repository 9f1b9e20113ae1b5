#include "attune/init.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "attune/error.h"
#include "trainable/driver/driver.h"
#include "trainable/driver/task.h"
#include "trainable/trainer/worker.h"

namespace attune::inline sdk {
namespace trainable {
namespace {

std::optional<Driver>& Slot() {
  static std::optional<Driver> driver;
  return driver;
}

// Does not return.
[[noreturn]] void RunAsWorker(Role role, std::vector<std::string> args) {
  int status = 1;
  try {
    Link driver(std::move(role.driver));
    // Without a task the driver is gone already.
    if (const auto message = driver.Receive()) {
      const Task task = ReadTask(message->bytes);
      Program program;
      program.train = [&](Context& context) { task.serve(context, driver, task.settings); };
      if (task.initialization_hook) program.options.initialization_hook = task.initialization_hook;
      status = RunWorker(std::move(*role.channel), std::move(args), program);
    }
  } catch (const std::exception& error) {
    std::cerr << "attune: " << error.what() << std::endl;
  }
  std::exit(status);
}

}  // namespace

LocalLauncher ForkLauncher() {
  if (!Slot()) {
    throw Error(
        "attune::Init(argc, argv) has to be called first in main(), before anything that starts "
        "workers");
  }
  const std::lock_guard lock(Slot()->asking);
  return Slot()->zygote.ForkLauncher();
}

}  // namespace trainable

void Init(int argc, char** argv) {
  using trainable::Driver;
  using trainable::Role;
  using trainable::Zygote;
  if (trainable::Slot()) throw Error("attune::Init: has been called before");
  for (const char* variable : {"ATTUNE_CHANNEL_FD", "ATTUNE_LAUNCHER_FD"}) {
    if (std::getenv(variable) == nullptr) continue;
    throw Error(
        "attune::Init: this program drives workers of its own, and an executor has started it as a "
        "worker; give the sweep a program whose main() is attune::Main(argc, argv, …), for a "
        "TorchTrainer with attune::AsTrainable(…)");
  }
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  auto forked = Zygote::Fork(mask);
  if (auto* role = std::get_if<Role>(&forked))
    trainable::RunAsWorker(std::move(*role), std::move(args));
  trainable::Slot().emplace(std::move(std::get<Zygote>(forked)));
}

}  // namespace attune::inline sdk
