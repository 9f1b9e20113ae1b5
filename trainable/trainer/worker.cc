#include "trainable/trainer/worker.h"

#include <ATen/Parallel.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <utility>

#include "attune/error.h"
#include "trainable/channel/channel.h"
#include "trainable/channel/messages.h"
#include "trainable/distributed/process_groups.h"

#ifdef ATTUNE_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace attune::inline sdk::trainable {
namespace {

using std::chrono_literals::operator""ms;

// How long the last words may take to get into the socket of an executor that does not read.
constexpr auto kLastWords = 1000ms;

// A rank that lost its peer lets the peer's own failure be seen first: it holds back its error for
// as long as this, unless the executor ends the gang before.
constexpr auto kLostPeerHold = 300ms;

constexpr std::size_t kStackBytesOfUnlimited = 256 << 20;

// A step frees what the next one asks for again. glibc gives large blocks back to the kernel at
// first, which then has to clear the same pages for every step, and learns from each what to keep:
// these are the values at which it stops learning. Variables of a user's own win.
void KeepFreedMemory() {
#ifdef __GLIBC__
  for (const char* variable :
       {"GLIBC_TUNABLES", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_"}) {
    if (std::getenv(variable) != nullptr) return;
  }
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_TOP_PAD, 16 << 20);
#endif
}

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

// The rank that this process is, also for handlers: of what nobody catches, and at exit.
struct Rank;
Rank* this_rank = nullptr;

struct Rank {
  Rank(UniqueFd socket, std::vector<std::string> the_args, const Program& the_program)
      : program(the_program), args(std::move(the_args)), channel(std::move(socket), [this] {
          std::cerr << "attune: rank " + std::to_string(number) +
                           ": the executor is gone; leaving\n";
          LeaveAtOnce(1);
        }) {}
  ~Rank() { this_rank = nullptr; }

  const pid_t process = getpid();
  const Program& program;
  std::vector<std::string> args;
  std::atomic<int> number = -1;  // until the executor says which
  std::atomic<int> world_size = 1;
  Channel channel;
};
std::terminate_handler terminate_before = nullptr;

std::string TextOf(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception that does not derive from std::exception";
  }
}

// What nobody catches ends up here before anything has been unwound: the executor learns the cause
// whatever the destructors of the training code would have done, and none of them is run.
[[noreturn]] void SpeakAndLeave() {
  const std::exception_ptr error = std::current_exception();
  if (!error) {
    terminate_before();
    std::abort();
  }
  static std::atomic_flag speaking;
  while (speaking.test_and_set()) pause();  // another thread's exception was first
  Channel& channel = this_rank->channel;
  std::string message = TextOf(error);
  // In one piece: ranks may share a terminal or a log.
  std::cerr << "attune: rank " + std::to_string(this_rank->number) + " failed: " + message + "\n";
  const bool lost_peer = this_rank->world_size > 1 && IsLostPeer(error);
  if (lost_peer) {
    message = "lost contact with another rank: " + message;
    channel.WaitForExecutorToClose(kLostPeerHold);
  }
  channel.Leave();
  channel.Send(ToLine(channel::ErrorText{message, lost_peer}));
  channel.Flush(kLastWords);
  LeaveAtOnce(1);
}

void Prepare(const Start& start, const Program& program, const std::vector<std::string>& args) {
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
  if (const auto& hook = program.options.initialization_hook) {
    hook({start.rank, start.world_size, start.local_rank, start.local_world_size,
          c10::Device(start.device), start.seed, start.config, args});
  }
  if (start.device == "cpu") return;
#ifdef ATTUNE_CUDA
  c10::cuda::set_device(c10::Device(start.device).index());
#else
  throw Error("device " + start.device + ": this program was built without CUDA (ATTUNE_CUDA)");
#endif
}

// The whole life of a rank. An exception out of it is for SpeakAndLeave().
void Train() {
  Rank& rank = *this_rank;
  const Start start = rank.channel.Await<channel::Start>("start");
  rank.number = start.rank;
  rank.world_size = start.world_size;
  rank.channel.Send(ToLine(channel::Heartbeat{Context::kSetupSilence}));
  Prepare(start, rank.program, rank.args);
  Context context(start, rank.channel, std::move(rank.args));
  rank.program.train(context);
  context.Finish();
  rank.channel.Flush();  // what the trial has brought is not to be lost for a slow reader
}

// On the main thread a handler of the user's main(), or of ours, could catch an exception, which
// then unwinds the stack first. Here there is none.
void RunOnThreadOfItsOwn(void (*run)()) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  // As large as the main thread's, whose stack may well be unlimited; a thread's may not.
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY) {
    pthread_attr_setstacksize(&attributes, kStackBytesOfUnlimited);
  }
  pthread_t thread;
  const int failed = pthread_create(
      &thread, &attributes,
      [](void* argument) -> void* {
        reinterpret_cast<void (*)()>(argument)();
        return nullptr;
      },
      reinterpret_cast<void*>(run));
  pthread_attr_destroy(&attributes);
  if (failed != 0) throw Error(std::string("cannot start a thread: ") + std::strerror(failed));
  pthread_join(thread, nullptr);
}

}  // namespace

int RunWorker(UniqueFd socket, std::vector<std::string> args, const Program& program) {
  std::signal(SIGPIPE, SIG_IGN);
  KeepFreedMemory();
  Rank rank(std::move(socket), std::move(args), program);
  this_rank = &rank;
  // Training code that calls exit() has said what it has said. What it forks says nothing.
  std::atexit([] {
    if (this_rank != nullptr && getpid() == this_rank->process)
      this_rank->channel.Flush(kLastWords);
  });
  terminate_before = std::set_terminate(SpeakAndLeave);
  RunOnThreadOfItsOwn(Train);
  std::set_terminate(terminate_before);
  SkipStaticDestructorsAtExit();
  return 0;
}

void TrainByStep(Context& context, Trainable& trainable,
                 const Context::SaveShardFunction& save_shard) {
  trainable.Attach(context);
  trainable.Setup(context.config());
  if (const CheckpointReader* checkpoint = context.checkpoint()) trainable.Load(*checkpoint);
  context.Heartbeat();
  context.SeedStep();
  const auto save = [&trainable](CheckpointWriter& checkpoint) { trainable.Save(checkpoint); };
  while (context.Report(trainable.Step(), save, save_shard)) {
  }
}

}  // namespace attune::inline sdk::trainable
