#include "trainable/trainer/worker.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "attune/error.h"
#include "trainable/channel/channel.h"
#include "trainable/channel/messages.h"
#include "trainable/distributed/process_groups.h"

#ifdef ATTUNE_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace attune::trainable {
namespace {

using std::chrono_literals::operator""ms;

// How long an error may take to get into the socket of an executor that does not read.
constexpr auto kErrorFlush = 1000ms;

// A rank that lost its peer lets the peer's own failure be seen first: it holds back its error for
// as long as this, unless the executor ends the gang before.
constexpr auto kLostPeerHold = 300ms;

[[noreturn]] void LeaveAtOnce(int status) {
  std::cout.flush();
  std::fflush(nullptr);
  _exit(status);  // destructors of process groups could wait for ranks that are gone
}

// LibTorch takes itself apart in its static destructors, operator by operator: 100 ms and more of a
// CPU, for a process whose memory goes away anyway. What main() does after Main() is still done.
void SkipStaticDestructorsAtExit() {
  on_exit([](int status, void*) { LeaveAtOnce(status); }, nullptr);
}

[[noreturn]] void Fail(Channel& channel, int rank, std::string message) {
  // In one piece: ranks may share a terminal or a log.
  std::cerr << "attune: rank " + std::to_string(rank) + " failed: " + message + "\n";
  if (IsLostPeer(message)) {
    message = "lost contact with another rank: " + message;
    channel.WaitForExecutorToClose(kLostPeerHold);
  }
  channel.Leave();
  channel.Send(ToLine(ErrorLine{message}));
  channel.Flush(kErrorFlush);
  LeaveAtOnce(1);
}

void Prepare(const Start& start, const Program& program) {
  if (!program.distributed && start.world_size > 1) {
    throw Error(
        "this program trains in one process (it derives from attune::Trainable), but was "
        "started with " +
        std::to_string(start.world_size) +
        " workers; set `resources.workers: 1`, or derive from "
        "attune::DistributedTrainable");
  }
  at::set_num_threads(std::max(1, start.cpus));
  at::set_num_interop_threads(1);
  if (start.device == "cpu") return;
#ifdef ATTUNE_CUDA
  c10::cuda::set_device(c10::Device(start.device).index());
#else
  throw Error("device " + start.device + ": this program was built without CUDA (ATTUNE_CUDA)");
#endif
}

}  // namespace

int RunWorker(UniqueFd socket, std::vector<std::string> args, const Program& program) {
  std::signal(SIGPIPE, SIG_IGN);
  int rank = -1;  // until the executor says which
  Channel channel(std::move(socket), [&rank] {
    std::cerr << "attune: rank " + std::to_string(rank) + ": the executor is gone; leaving\n";
    LeaveAtOnce(1);
  });
  try {
    const auto start = channel.Await<Start>("start");
    rank = start.rank;
    Prepare(start, program);
    Context context(start, channel, std::move(args));
    program.train(context);
    context.Finish();
    channel.Flush(kErrorFlush);
    SkipStaticDestructorsAtExit();
  } catch (const std::exception& error) {
    Fail(channel, rank, error.what());
  } catch (...) {
    Fail(channel, rank, "an exception that does not derive from std::exception");
  }
  return 0;
}

void TrainByStep(Context& context, Trainable& trainable) {
  trainable.Attach(context);
  trainable.Setup(context.config());
  if (const CheckpointReader* checkpoint = context.checkpoint()) trainable.Load(*checkpoint);
  context.SeedStep();
  const auto save = [&trainable](CheckpointWriter& checkpoint) { trainable.Save(checkpoint); };
  while (context.Report(trainable.Step(), save)) {
  }
}

}  // namespace attune::trainable
