#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "attune/checkpoint.h"
#include "attune/config.h"
#include "attune/init.h"
#include "attune/main.h"
#include "attune/packing.h"

namespace attune::inline sdk {

// The worker process that holds one object of a WorkerGroup. The object's constructor may take it
// as its first argument.
struct Worker {
  int index = 0;  // from 0
  int size = 1;   // number of workers in the group

  // Provides device, configuration, seed and heartbeats. Its rank is 0 and its world size 1,
  // because workers share nothing. It outlives the object.
  Context& context;
};

// Options of WorkerGroup.
struct WorkerGroupOptions {
  int num_workers = 1;      // number of objects, one in each process
  bool use_gpu = false;     // one GPU for each worker
  int cpus_per_worker = 1;  // threads of LibTorch's operations

  Config config;  // returned by Context::config()

  // Below 2^53. LibTorch's generators are seeded from it and the worker's index before its object
  // is constructed. Each worker draws different numbers, and the same ones in each run.
  std::uint64_t seed = 0;
  // See MainOptions. Each worker is rank 0 of 1, with its own device and seed.
  void (*initialization_hook)(const RankInfo&) = nullptr;

  // How long a worker may be silent during a call before it counts as lost. 0: no limit, because
  // only the program knows how long its calls take. Context::Heartbeat() ends a silence.
  std::chrono::milliseconds stall_timeout{0};
};

namespace trainable {

using ObjectFactory = std::shared_ptr<void> (*)(const Worker& worker, Unpacker& args);
using ObjectFunction = void (*)(void* object, Unpacker& args, Packer& result);

// The message of a call; it can be sent to several workers.
std::shared_ptr<const Message> ToCall(ObjectFunction function, Packer args);

// The part of WorkerGroup that does not depend on types.
class GroupDriver {
 public:
  // Called on a thread of the driver with the answer, or with the error if there is no answer. Must
  // not throw.
  using Done = std::function<void(std::shared_ptr<const Message> answer, std::exception_ptr error)>;

  GroupDriver(WorkerGroupOptions options, ObjectFactory factory, Packer args);
  ~GroupDriver();
  GroupDriver(GroupDriver&&) noexcept;

  int size() const;
  void Call(int worker, std::shared_ptr<const Message> call, Done done);
  void Shutdown(bool force);

  TensorMap GetWeights(ObjectFunction get, int worker);
  void SetWeights(ObjectFunction set, const TensorMap& weights, const int* worker);
  TensorMap AverageWeights(ObjectFunction get, ObjectFunction set);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A function as a stateless function object.
template <auto F>
struct FunctionObject {
  template <typename... A>
  decltype(auto) operator()(A&&... args) const requires std::invocable<decltype(F), A...> {
    return std::invoke(F, std::forward<A>(args)...);
  }
};

// The module itself, given a module, a pointer to one, or a holder.
template <typename M>
auto& ToModule(M& module) {
  if constexpr (std::derived_from<M, torch::nn::Module>) {
    return static_cast<torch::nn::Module&>(module);
  } else {
    return ToModule(*module);
  }
}
template <typename T>
concept GivesModule = requires(T& object) {
  object.module();
};
template <typename T>
concept IsModule = std::derived_from<T, torch::nn::Module> || requires(T& object) {
  requires std::derived_from<std::remove_reference_t<decltype(*object)>, torch::nn::Module>;
};
template <typename T>
concept HasModule = GivesModule<T> || IsModule<T>;

template <typename T>
torch::nn::Module& ModuleOf(T& object) {
  if constexpr (GivesModule<T>) {
    auto&& module = object.module();
    return ToModule(module);
  } else {
    return ToModule(object);
  }
}
void PackWeights(torch::nn::Module& module, Packer& packer);
void UnpackWeights(torch::nn::Module& module, Unpacker& unpacker);

#define ATTUNE_WHAT_TRAVELS                                                                 \
  "numbers, enumerations, std::string, at::Tensor and attune::Config can, and std::vector," \
  " std::map, std::optional, std::tuple, std::pair and std::variant of them"

template <typename... A>
constexpr void CheckArguments() {
  static_assert((Travels<Value<A>> && ...),
                "WorkerGroup: an argument cannot be sent to another process; " ATTUNE_WHAT_TRAVELS);
}

template <typename... A>
Packer PackAll(const A&... args) {
  Packer packer;
  (Pack<Value<const A&>>(packer, args), ...);
  return packer;
}

// The result type of a call; void if F cannot be called, for which a static_assert gives the
// reason.
template <typename F, typename... A>
struct CallResult {
  using Type = void;
};
template <typename F, typename... A>
requires std::invocable<F, A...>
struct CallResult<F, A...> {
  using Type = std::remove_cvref_t<std::invoke_result_t<F, A...>>;
};

template <typename F, typename T, typename... A>
void CallWithPacked(void* object, Unpacker& unpacker, Packer& result) {
  std::tuple<T&, Value<A>...> all{*static_cast<T*>(object), Unpack<Value<A>>(unpacker)...};
  const auto call = [](T& self, Value<A>&... args) -> decltype(auto) {
    return F{}(self, std::move(args)...);
  };
  using R = decltype(std::apply(call, all));
  if constexpr (std::is_void_v<R>) {
    std::apply(call, all);
  } else {
    Pack<std::remove_cvref_t<R>>(result, std::apply(call, all));
  }
}

// Whether T, or the module in the holder T, can be constructed from A. A holder's own constructor
// accepts any arguments.
template <typename T, typename... A>
concept MadeFrom = std::constructible_from<typename ModuleIn<T>::Type, A...>;

template <typename T, typename... A>
std::shared_ptr<void> MakeObject(const Worker& worker, Unpacker& unpacker) {
  std::tuple<Value<A>...> all{Unpack<Value<A>>(unpacker)...};
  return std::apply(
      [&](Value<A>&... args) {
        if constexpr (MadeFrom<T, const Worker&, Value<A>...>) {
          return std::make_shared<T>(worker, std::move(args)...);
        } else {
          return std::make_shared<T>(std::move(args)...);
        }
      },
      all);
}

template <typename T, typename... A>
ObjectFactory FactoryOf() {
  CheckArguments<A...>();
  static_assert(MadeFrom<T, const Worker&, Value<A>...> || MadeFrom<T, Value<A>...>,
                "WorkerGroup: its objects cannot be constructed from these arguments, neither with "
                "a const attune::Worker& before them nor without");
  return &MakeObject<T, A...>;
}

}  // namespace trainable

// Objects of type T, each in a separate process and optionally with its own GPU. They are for
// models that are trained in parallel, from the program's own main(), after attune::Init().
//
//   int main(int argc, char** argv) {
//     attune::Init(argc, argv);
//     attune::WorkerGroup<Model> models(3, /*width=*/64);        // Model(64), three times
//     auto losses = models.Call<&Model::Train>(10);              // on all, in parallel
//     for (auto& loss : losses) std::cout << loss.get() << '\n';
//     models.AverageWeights();
//     std::cout << models.CallOne<&Model::Accuracy>(0).get() << '\n';
//   }
//
// A call takes a member function, a function that takes a T& first, or a lambda `[](Model& model,
// int epochs) { … }` that captures nothing. Calls to the same worker run one after the other, in
// the order of the calls. Calls to different workers run in parallel.
//
// Arguments and results are copied between processes. They can be numbers, enumerations,
// std::string, at::Tensor, Config, and vectors, maps, optionals, tuples, pairs and variants of
// these, including Metrics and TensorMap. Tensors arrive on the CPU and require no gradient.
//
// If a call throws, its future gets a WorkerError with the exception's text and the worker's index;
// lost() is false, and the worker and its object stay usable. A worker that dies, or is silent for
// stall_timeout, ends the group: every outstanding and later call gets a WorkerError whose lost()
// is true and whose message names the worker and the reason. No worker outlives its group.
//
// Use a group from one thread at a time; the futures may be used from any thread. Several groups
// may exist at once.
template <typename T>
class WorkerGroup {
 public:
  // Starts the workers, and waits until each has constructed its T from copies of `args`, preceded
  // by a const Worker& if T takes one. Throws attune::WorkerError if a construction failed.
  template <typename... A>
  explicit WorkerGroup(WorkerGroupOptions options, const A&... args)
      : driver_(std::move(options), trainable::FactoryOf<T, const A&...>(),
                trainable::PackAll(args...)) {}
  template <typename... A>
  explicit WorkerGroup(int num_workers, const A&... args)
      : WorkerGroup(WorkerGroupOptions{.num_workers = num_workers}, args...) {}

  // Calls a function on every worker's T. Returns one future for each worker; their destructors do
  // not block. Throws attune::Error after Shutdown(), and for a tensor that cannot be sent.
  template <auto F, typename... A>
  auto Call(const A&... args) {
    return Call(trainable::FunctionObject<F>(), args...);
  }
  template <typename F, typename... A>
  auto Call(F, const A&... args) {
    const auto call = ToCall<F>(args...);
    std::vector<std::future<Result<F, A...>>> futures;
    for (int worker = 0; worker < size(); ++worker) {
      futures.push_back(Submit<Result<F, A...>>(worker, call));
    }
    return futures;
  }

  // Calls a function on one worker's T.
  template <auto F, typename... A>
  auto CallOne(int worker, const A&... args) {
    return CallOne(worker, trainable::FunctionObject<F>(), args...);
  }
  template <typename F, typename... A>
  auto CallOne(int worker, F, const A&... args) {
    return Submit<Result<F, A...>>(worker, ToCall<F>(args...));
  }

  // The following need a T that is a module, a holder or a pointer of one, or has a function
  // module() that returns one of these. Each waits until all previous calls are done.

  // Parameters and buffers of a worker's module, by name.
  TensorMap GetWeights(int worker = 0) requires trainable::HasModule<T> {
    return driver_.GetWeights(&PackWeights, worker);
  }

  // Sets the weights of the modules of all workers, or of one. Throws WorkerError unless names,
  // shapes and types are exactly those of the module.
  void SetWeights(const TensorMap& weights) requires trainable::HasModule<T> {
    driver_.SetWeights(&UnpackWeights, weights, nullptr);
  }
  void SetWeights(const TensorMap& weights, int worker) requires trainable::HasModule<T> {
    driver_.SetWeights(&UnpackWeights, weights, &worker);
  }

  // Sets the weights of all workers to their mean, and returns it. Floating-point tensors are
  // averaged in double precision; others, such as counters, are copied from worker 0.
  TensorMap AverageWeights() requires trainable::HasModule<T> {
    return driver_.AverageWeights(&PackWeights, &UnpackWeights);
  }

  // Waits until all calls are done and the workers have exited. With `force`, kills the workers at
  // once, and outstanding calls get a WorkerError. The destructor waits.
  void Shutdown(bool force = false) { driver_.Shutdown(force); }

  // The number of workers, even after Shutdown().
  int size() const { return driver_.size(); }

 private:
  template <typename F, typename... A>
  using Result = typename trainable::CallResult<F, T&, trainable::Value<const A&>...>::Type;

  template <typename F, typename... A>
  static std::shared_ptr<const trainable::Message> ToCall(const A&... args) {
    static_assert(std::is_empty_v<F> && std::default_initializable<F>,
                  "WorkerGroup: pass a function as Call<&Model::Train>(…), or a lambda that "
                  "captures nothing, "
                  "because workers are other processes; pass values as arguments");
    trainable::CheckArguments<const A&...>();
    static_assert(std::invocable<F, T&, trainable::Value<const A&>...>,
                  "WorkerGroup: the function cannot be called with a T& and these arguments");
    using R = Result<F, A...>;
    static_assert(
        std::is_void_v<R> || trainable::Travels<R>,
        "WorkerGroup: the result cannot be sent to another process; " ATTUNE_WHAT_TRAVELS);
    return trainable::ToCall(&trainable::CallWithPacked<F, T, const A&...>,
                             trainable::PackAll(args...));
  }

  template <typename R>
  std::future<R> Submit(int worker, std::shared_ptr<const trainable::Message> call) {
    const auto promise = std::make_shared<std::promise<R>>();
    driver_.Call(worker, std::move(call),
                 [promise](std::shared_ptr<const trainable::Message> answer,
                           const std::exception_ptr& error) {
                   try {
                     if (error) std::rethrow_exception(error);
                     if constexpr (std::is_void_v<R>) {
                       promise->set_value();
                     } else {
                       trainable::Unpacker unpacker(std::move(answer));
                       promise->set_value(trainable::Unpack<R>(unpacker));
                     }
                   } catch (...) {
                     promise->set_exception(std::current_exception());
                   }
                 });
    return promise->get_future();
  }

  static void PackWeights(void* object, trainable::Unpacker&, trainable::Packer& result) {
    trainable::PackWeights(trainable::ModuleOf(*static_cast<T*>(object)), result);
  }
  static void UnpackWeights(void* object, trainable::Unpacker& args, trainable::Packer&) {
    trainable::UnpackWeights(trainable::ModuleOf(*static_cast<T*>(object)), args);
  }

  trainable::GroupDriver driver_;
};

#undef ATTUNE_WHAT_TRAVELS

// The results of all futures of a call, by worker, after all are ready. Throws the exception of the
// first future that has one.
template <typename R>
auto GetAll(std::vector<std::future<R>> futures) {
  for (const auto& future : futures) future.wait();
  if constexpr (std::is_void_v<R>) {
    for (auto& future : futures) future.get();
  } else {
    std::vector<R> results;
    for (auto& future : futures) results.push_back(future.get());
    return results;
  }
}

}  // namespace attune::inline sdk
