#include "attune/init.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "attune/error.h"
#include "trainable/driver/message.h"
#include "trainable/driver/workers.h"
#include "trainable/gang/launcher.h"
#include "trainable/worker/worker.h"

namespace attune::inline sdk {
namespace trainable {
namespace {

// The launcher that Init() forked, or null before Init(). It is never destroyed, because objects
// that are destroyed after main() may have workers.
Launcher* program_launcher = nullptr;
std::mutex program_launcher_mutex;  // held during a request to it

[[noreturn]] void RunAsWorker(ForkedWorker worker, std::vector<std::string> args) {
  int status = 1;
  try {
    MessageSocket driver(std::move(worker.driver));
    // Without a task message, the driver has already ended.
    if (const auto message = driver.Receive()) {
      const Task task = ReadTask(message->bytes);
      Program program;
      program.train = [&](Context& context) { task.serve(context, driver, task); };
      if (task.initialization_hook) program.options.initialization_hook = task.initialization_hook;
      status = RunWorker(std::move(worker.channel), std::move(args), program);
    }
  } catch (const std::exception& error) {
    std::cerr << "attune: " << error.what() << std::endl;
  }
  std::exit(status);
}

}  // namespace

Launcher ForkLauncher() {
  if (program_launcher == nullptr) {
    throw Error(
        "attune::Init(argc, argv) must be called first in main(), before anything that starts "
        "workers");
  }
  const std::lock_guard lock(program_launcher_mutex);
  return program_launcher->ForkLauncher();
}

}  // namespace trainable

void Init(int argc, char** argv) {
  using trainable::ForkedWorker;
  using trainable::Launcher;
  if (trainable::program_launcher != nullptr) throw Error("attune::Init: it was already called");
  for (const char* variable : {"ATTUNE_CHANNEL_FD", "ATTUNE_LAUNCHER_FD"}) {
    if (std::getenv(variable) == nullptr) continue;
    throw Error(
        "attune::Init: an executor started this program as a worker, but it starts workers itself; "
        "give the sweep a program whose main() is attune::Main(argc, argv, …), for a "
        "TorchTrainer with attune::AsTrainable(…)");
  }
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  trainable::CheckSingleThreaded("attune::Init()");
  auto forked = Launcher::Fork(mask);
  if (auto* worker = std::get_if<ForkedWorker>(&forked)) {
    trainable::RunAsWorker(std::move(*worker), std::move(args));
  }
  trainable::program_launcher = new Launcher(std::move(std::get<Launcher>(forked)));
}

}  // namespace attune::inline sdk
