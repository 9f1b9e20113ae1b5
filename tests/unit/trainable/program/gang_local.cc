// A program that runs gangs of itself, one after the extra_thread, from a process with threads.

#include <sys/socket.h>

#include <algorithm>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "attune/context.h"
#include "attune/main.h"
#include "system/unique_fd.h"
#include "tests/unit/trainable/program/gang_modes.h"
#include "trainable/gang/gang.h"
#include "trainable/worker/worker.h"

namespace gang {
namespace {

using attune::trainable::ForkedWorker;
using attune::trainable::Gang;
using attune::trainable::Launcher;

// Sums a metric over the ranks. In a gang of three, the last rank fails.
void Train(attune::Context& context) {
  if (context.rank() == 2) throw std::runtime_error("a crowd");
  static_cast<void>(context.Report(context.ReduceSum({{"ranks", 1.0}})));
}

void RunOne(Launcher& launcher, int world_size, std::vector<std::string> args = {}) {
  std::vector<attune::channel::Start> ranks(world_size);
  for (int rank = 0; rank < world_size; ++rank) {
    ranks[rank].rank = ranks[rank].local_rank = rank;
    ranks[rank].world_size = ranks[rank].local_world_size = world_size;
  }
  double counted = 0;
  Gang local(launcher, std::move(ranks), std::move(args),
             {.on_report = [&](const auto& report) { counted = report.metrics[0].second; },
              .on_checkpoint = {}});
  const Gang::End end = local.Run(/*stop_fd=*/-1);
  if (end.outcome == Gang::End::Outcome::kFinished) {
    std::cout << "finished: " << counted << std::endl;
  } else {
    std::cout << "rank " << end.worker << " of " << world_size << " failed: " << end.message
              << std::endl;
  }
}

}  // namespace

int RunGangsInSequence() {
  sigset_t none;
  sigemptyset(&none);
  auto forked = Launcher::Fork(none);
  if (auto* worker = std::get_if<ForkedWorker>(&forked)) {
    return attune::trainable::RunWorker(std::move(worker->channel), {}, {.train = Train});
  }
  auto& launcher = std::get<Launcher>(forked);
  std::mutex busy;
  busy.lock();
  std::thread extra_thread(
      [&busy] { busy.lock(); });  // a process that forks workers must have only one thread
  for (const int world_size : {1, 3, 2}) RunOne(launcher, world_size);
  // Makes the socket buffer too small for the next request.
  const int smallest_buffer = 1;
  setsockopt(launcher.socket(), SOL_SOCKET, SO_SNDBUF, &smallest_buffer, sizeof smallest_buffer);
  RunOne(launcher, 1, {std::string(16 << 10, 'x')});
  busy.unlock();
  extra_thread.join();
  return 0;
}

}  // namespace gang
