#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "attune/error.h"
#include "attune/worker_group.h"
#include "trainable/base/random.h"
#include "trainable/channel/messages.h"
#include "trainable/driver/group_messages.h"
#include "trainable/driver/weights.h"
#include "trainable/driver/worker_options.h"
#include "trainable/driver/workers.h"

namespace attune::inline sdk::trainable {
namespace {

using SharedMessage = std::shared_ptr<const Message>;

void Check(const WorkerGroupOptions& options) {
  const OptionCheck check("WorkerGroup");
  check.RequireWorkers(options.num_workers, options.cpus_per_worker, options.seed);
  check.Require(options.stall_timeout.count() >= 0,
                "stall_timeout: " + std::to_string(options.stall_timeout.count()) + " ms",
                "must be at least 0");
  if (options.use_gpu) check.RequireGpus(options.num_workers, options.num_workers);
}

// Each worker trains alone: rank 0, with a world size of 1.
std::vector<channel::Start> StartsOf(const WorkerGroupOptions& options) {
  std::vector<channel::Start> starts(options.num_workers);
  for (int worker = 0; worker < options.num_workers; ++worker) {
    channel::Start& start = starts[worker];
    start.sweep = "group";
    start.cpus = options.cpus_per_worker;
    start.seed = Key(options.seed, worker) >> (64 - kSeedBits);
    start.parameters = ToParameters(options.config);
    if (options.use_gpu) start.device = "cuda:" + std::to_string(worker);
  }
  return starts;
}

}  // namespace

SharedMessage ToCall(ObjectFunction function, Packer args) {
  return std::make_shared<Message>(ToMessage(AddressOf(function), std::move(args)));
}

struct GroupDriver::Impl {
  struct Call {
    SharedMessage message;
    Done done;
  };
  // The calls of one worker. A thread executes them in order.
  struct CallQueue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Call> calls;  // guarded by mutex, like `closed`
    bool closed = false;
    std::thread thread;
  };

  explicit Impl(const WorkerGroupOptions& options)
      : workers(std::in_place,
                Workers::Options{.starts = StartsOf(options),
                                 .task = {.serve = ServeGroup,
                                          .settings = {},
                                          .initialization_hook = options.initialization_hook},
                                 .stall_timeout = options.stall_timeout}),
        queues(options.num_workers) {
    for (int worker = 0; worker < workers->size(); ++worker) {
      queues[worker].thread = std::thread(&Impl::Run, this, worker);
    }
  }
  ~Impl() { Shutdown(/*force=*/false); }

  void Enqueue(int worker, Call call) {
    if (!workers) throw Error("WorkerGroup: it was shut down");
    if (worker < 0 || worker >= workers->size()) {
      throw Error("WorkerGroup: there is no worker " + std::to_string(worker) + " of " +
                  std::to_string(workers->size()));
    }
    CallQueue& queue = queues[worker];
    const std::lock_guard lock(queue.mutex);
    queue.calls.push_back(std::move(call));
    queue.changed.notify_one();
  }

  std::future<SharedMessage> Enqueue(int worker, SharedMessage message) {
    const auto promise = std::make_shared<std::promise<SharedMessage>>();
    Enqueue(worker, {std::move(message), [promise](SharedMessage answer, std::exception_ptr error) {
                       if (error) return promise->set_exception(std::move(error));
                       promise->set_value(std::move(answer));
                     }});
    return promise->get_future();
  }
  std::vector<SharedMessage> CallAll(const SharedMessage& message) {
    std::vector<std::future<SharedMessage>> answers;
    for (int worker = 0; worker < std::ssize(queues); ++worker) {
      answers.push_back(Enqueue(worker, message));
    }
    return GetAll(std::move(answers));
  }

  // Returns nullopt after the queue is closed and all its calls are done.
  std::optional<Call> Next(CallQueue& queue) {
    std::unique_lock lock(queue.mutex);
    queue.changed.wait(lock, [&] { return queue.closed || !queue.calls.empty(); });
    if (queue.calls.empty()) return std::nullopt;
    std::optional<Call> call(std::move(queue.calls.front()));
    queue.calls.pop_front();
    return call;
  }

  void Run(int worker) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);  // the program's handlers run on its own threads
    while (auto call = Next(queues[worker])) {
      try {
        workers->Send(worker, *call->message);
        call->message.reset();
        Message answer = workers->Receive(worker);
        if (TakeError(answer)) {
          throw WorkerError(worker, /*lost=*/false,
                            "worker " + std::to_string(worker) + ": " + answer.bytes);
        }
        call->done(std::make_shared<Message>(std::move(answer)), nullptr);
      } catch (...) {
        call->done(nullptr, std::current_exception());
      }
    }
  }

  void Shutdown(bool force) {
    if (!workers) return;
    if (force) workers->Kill();
    for (CallQueue& queue : queues) {
      const std::lock_guard lock(queue.mutex);
      queue.closed = true;
      queue.changed.notify_one();
    }
    for (CallQueue& queue : queues) queue.thread.join();
    workers.reset();
  }

  std::optional<Workers> workers;  // empty after Shutdown()
  std::deque<CallQueue> queues;
};

GroupDriver::GroupDriver(WorkerGroupOptions options, ObjectFactory factory, Packer args) {
  Check(options);
  impl_ = std::make_unique<Impl>(options);
  try {
    const auto construct =
        std::make_shared<Message>(ToMessage(AddressOf(factory), std::move(args)));
    impl_->CallAll(construct);
  } catch (...) {
    impl_->Shutdown(/*force=*/true);
    throw;
  }
}

GroupDriver::~GroupDriver() = default;
GroupDriver::GroupDriver(GroupDriver&&) noexcept = default;

int GroupDriver::size() const { return static_cast<int>(impl_->queues.size()); }

void GroupDriver::Call(int worker, SharedMessage call, Done done) {
  impl_->Enqueue(worker, {std::move(call), std::move(done)});
}

void GroupDriver::Shutdown(bool force) { impl_->Shutdown(force); }

TensorMap GroupDriver::GetWeights(ObjectFunction get, int worker) {
  Unpacker weights(impl_->Enqueue(worker, ToCall(get, Packer())).get());
  return Unpack<TensorMap>(weights);
}

void GroupDriver::SetWeights(ObjectFunction set, const TensorMap& weights, const int* worker) {
  const SharedMessage call = ToCall(set, PackAll(weights));
  if (worker != nullptr) {
    impl_->Enqueue(*worker, call).get();
  } else {
    impl_->CallAll(call);
  }
}

TensorMap GroupDriver::AverageWeights(ObjectFunction get, ObjectFunction set) {
  std::vector<Unpacker> answers;
  std::vector<TensorMap> weights;  // views of the answers
  for (SharedMessage& answer : impl_->CallAll(ToCall(get, Packer()))) {
    answers.emplace_back(std::move(answer), Unpacker::Tensors::kViews);
    weights.push_back(Unpack<TensorMap>(answers.back()));
  }
  TensorMap mean = MeanOf(weights);
  SetWeights(set, mean, nullptr);
  return mean;
}

}  // namespace attune::inline sdk::trainable
