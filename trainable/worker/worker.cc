#include "trainable/worker/worker.h"

#include <ATen/Parallel.h>
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
#include "system/files.h"
#include "trainable/base/memory.h"
#include "trainable/channel/channel.h"
#include "trainable/channel/messages.h"
#include "trainable/distributed/process_groups.h"

#ifdef ATTUNE_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace attune::inline sdk::trainable {
namespace {

using std::chrono_literals::operator""ms;

// The longest wait for an executor that does not read the final messages.
constexpr auto kFinalFlushTimeout = 1000ms;

// A rank that lost a peer delays its error by this time, unless the executor ends the gang earlier.
// The executor then sees the peer's failure first.
constexpr auto kLostPeerDelay = 300ms;

constexpr std::size_t kStackBytesOfUnlimited = 256 << 20;

[[noreturn]] void ExitNow(int status) {
  std::cout.flush();
  std::fflush(nullptr);
  _exit(status);  // destructors of process groups could wait for ranks that have ended
}

// LibTorch's static destructors take 100 ms or more of CPU time in a process that ends anyway. Code
// in main() after Main() still runs.
void SkipStaticDestructorsAtExit() {
  on_exit([](int status, void*) { ExitNow(status); }, nullptr);
}

// The rank of this process, for the handlers of uncaught exceptions and of exit().
struct Rank;
Rank* this_rank = nullptr;

struct Rank {
  Rank(UniqueFd socket, std::vector<std::string> rank_args, const Program& rank_program)
      : program(rank_program), args(std::move(rank_args)), channel(std::move(socket), [this] {
          std::cerr << "attune: rank " + std::to_string(number) +
                           ": the executor is gone; exiting\n";
          ExitNow(1);
        }) {}
  ~Rank() { this_rank = nullptr; }

  const pid_t process = getpid();
  const Program& program;
  std::vector<std::string> args;
  std::atomic<int> number = -1;  // -1 until the executor sends it
  std::atomic<int> world_size = 1;
  std::string checkpoint_dir;  // set before the training code runs
  Channel channel;
};
std::terminate_handler previous_terminate_handler = nullptr;

std::string TextOf(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception that does not derive from std::exception";
  }
}

// Whether a disk of this host is full, according to the exception or to a test. Libraries often do
// not report why a write failed, and their incomplete file still fills the disk.
bool IsDiskFull(const std::exception_ptr& error, const std::string& checkpoint_dir) {
  try {
    std::rethrow_exception(error);
  } catch (const DiskFull&) {
    return true;
  } catch (...) {
    return !checkpoint_dir.empty() && !HasFreeSpace(checkpoint_dir);
  }
}

// The handler of uncaught exceptions. It runs before the stack is unwound, so the executor learns
// the cause and no destructor of the training code runs.
[[noreturn]] void ReportErrorAndExit() {
  const std::exception_ptr error = std::current_exception();
  if (!error) {
    previous_terminate_handler();
    std::abort();
  }
  static std::atomic_flag is_reporting;
  while (is_reporting.test_and_set()) pause();  // another thread already reports its exception
  Channel& channel = this_rank->channel;
  std::string message = TextOf(error);
  // Uses one write, because ranks may share a terminal or a log.
  std::cerr << "attune: rank " + std::to_string(this_rank->number) + " failed: " + message + "\n";
  const bool lost_peer = this_rank->world_size > 1 && IsLostPeer(error);
  if (lost_peer) {
    message = "lost contact with another rank: " + message;
    channel.WaitForExecutorToClose(kLostPeerDelay);
  }
  channel.Leave();
  const bool disk_full = !lost_peer && IsDiskFull(error, this_rank->checkpoint_dir);
  channel.Send(ToLine(channel::ErrorText{message, lost_peer, disk_full}));
  channel.Flush(kFinalFlushTimeout);
  ExitNow(1);
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
  const int gpus = c10::cuda::device_count();
  for (const std::string& device : start.devices) {
    if (gpus == 0 || c10::Device(device).index() < gpus) continue;
    throw Error("device " + device + ": there is no such GPU; this process can use " +
                std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs"));
  }
  c10::cuda::set_device(c10::Device(start.device).index());
#else
  throw Error("device " + start.device + ": this program was built without CUDA (ATTUNE_CUDA)");
#endif
}

// The whole life of a rank. ReportErrorAndExit() handles its exceptions.
void Train() {
  Rank& rank = *this_rank;
  const Start start = rank.channel.Await<channel::Start>("start");
  rank.number = start.rank;
  rank.world_size = start.world_size;
  rank.checkpoint_dir = start.checkpoint_dir;
  rank.channel.Send(ToLine(channel::Heartbeat{Context::kSetupSilence}));
  Prepare(start, rank.program, rank.args);
  Context context(start, rank.channel, std::move(rank.args));
  rank.program.train(context);
  context.Finish();
  rank.channel.Flush();  // a slow reader must not lose the trial's results
}

// Runs on a thread without exception handlers. On the main thread, a handler in main() could catch
// an exception, and the stack would be unwound first.
void RunOnSeparateThread(void (*run)()) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  // The default is the size of the main thread's stack, but a thread's stack cannot be unlimited.
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
  // Sends queued messages if the training code calls exit(). Forked children must not send them.
  std::atexit([] {
    if (this_rank != nullptr && getpid() == this_rank->process)
      this_rank->channel.Flush(kFinalFlushTimeout);
  });
  previous_terminate_handler = std::set_terminate(ReportErrorAndExit);
  RunOnSeparateThread(Train);
  std::set_terminate(previous_terminate_handler);
  SkipStaticDestructorsAtExit();
  return 0;
}

void TrainByStep(Context& context, Trainable& trainable,
                 const Context::SaveShardFunction& save_shard) {
  trainable.Attach(context);
  context.SeedAfterSetup();
  trainable.Setup(context.config());
  if (const CheckpointReader* checkpoint = context.checkpoint()) trainable.Load(*checkpoint);
  context.Heartbeat();
  context.SeedStep();
  const auto save = [&trainable](CheckpointWriter& checkpoint) { trainable.Save(checkpoint); };
  while (context.Report(trainable.Step(), save, save_shard)) {
  }
}

}  // namespace attune::inline sdk::trainable
