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
                "has to be at least 0");
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
  // The calls of one worker, made by a thread one after the other.
  struct Lane {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Call> calls;  // guarded by mutex, as is the next one
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
        lanes(options.num_workers) {
    for (int worker = 0; worker < workers->size(); ++worker) {
      lanes[worker].thread = std::thread(&Impl::Run, this, worker);
    }
  }
  ~Impl() { Shutdown(/*force=*/false); }

  void Add(int worker, Call call) {
    if (!workers) throw Error("WorkerGroup: is shut down");
    if (worker < 0 || worker >= workers->size()) {
      throw Error("WorkerGroup: there is no worker " + std::to_string(worker) + " of " +
                  std::to_string(workers->size()));
    }
    Lane& lane = lanes[worker];
    const std::lock_guard lock(lane.mutex);
    lane.calls.push_back(std::move(call));
    lane.changed.notify_one();
  }

  std::future<SharedMessage> Add(int worker, SharedMessage message) {
    const auto promise = std::make_shared<std::promise<SharedMessage>>();
    Add(worker, {std::move(message), [promise](SharedMessage answer, std::exception_ptr error) {
                   if (error) return promise->set_exception(std::move(error));
                   promise->set_value(std::move(answer));
                 }});
    return promise->get_future();
  }
  std::vector<SharedMessage> OfAll(const SharedMessage& message) {
    std::vector<std::future<SharedMessage>> answers;
    for (int worker = 0; worker < std::ssize(lanes); ++worker) {
      answers.push_back(Add(worker, message));
    }
    return GetAll(std::move(answers));
  }

  // Empty once the lane is closed and all its calls are done.
  std::optional<Call> Next(Lane& lane) {
    std::unique_lock lock(lane.mutex);
    lane.changed.wait(lock, [&] { return lane.closed || !lane.calls.empty(); });
    if (lane.calls.empty()) return std::nullopt;
    std::optional<Call> call(std::move(lane.calls.front()));
    lane.calls.pop_front();
    return call;
  }

  void Run(int worker) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);  // the program's handlers run on its own threads
    while (auto call = Next(lanes[worker])) {
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
    for (Lane& lane : lanes) {
      const std::lock_guard lock(lane.mutex);
      lane.closed = true;
      lane.changed.notify_one();
    }
    for (Lane& lane : lanes) lane.thread.join();
    workers.reset();
  }

  std::optional<Workers> workers;  // none once it is shut down
  std::deque<Lane> lanes;
};

GroupDriver::GroupDriver(WorkerGroupOptions options, ObjectFactory factory, Packer args) {
  Check(options);
  impl_ = std::make_unique<Impl>(options);
  try {
    const auto construct =
        std::make_shared<Message>(ToMessage(AddressOf(factory), std::move(args)));
    impl_->OfAll(construct);
  } catch (...) {
    impl_->Shutdown(/*force=*/true);
    throw;
  }
}

GroupDriver::~GroupDriver() = default;
GroupDriver::GroupDriver(GroupDriver&&) noexcept = default;

int GroupDriver::size() const { return static_cast<int>(impl_->lanes.size()); }

void GroupDriver::Call(int worker, SharedMessage call, Done done) {
  impl_->Add(worker, {std::move(call), std::move(done)});
}

void GroupDriver::Shutdown(bool force) { impl_->Shutdown(force); }

TensorMap GroupDriver::GetWeights(ObjectFunction get, int worker) {
  Unpacker weights(impl_->Add(worker, ToCall(get, Packer())).get());
  return Unpack<TensorMap>(weights);
}

void GroupDriver::SetWeights(ObjectFunction set, const TensorMap& weights, const int* worker) {
  const SharedMessage call = ToCall(set, PackAll(weights));
  if (worker != nullptr) {
    impl_->Add(*worker, call).get();
  } else {
    impl_->OfAll(call);
  }
}

TensorMap GroupDriver::AverageWeights(ObjectFunction get, ObjectFunction set) {
  std::vector<Unpacker> answers;
  std::vector<TensorMap> weights;  // views of the answers
  for (SharedMessage& answer : impl_->OfAll(ToCall(get, Packer()))) {
    answers.emplace_back(std::move(answer), Unpacker::Tensors::kViews);
    weights.push_back(Unpack<TensorMap>(answers.back()));
  }
  TensorMap mean = MeanOf(weights);
  SetWeights(set, mean, nullptr);
  return mean;
}

}  // namespace attune::inline sdk::trainable
