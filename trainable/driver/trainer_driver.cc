#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>
#include <thread>
#include <utility>

#include "attune/error.h"
#include "attune/torch_trainer.h"
#include "system/unique_fd.h"
#include "trainable/channel/messages.h"
#include "trainable/driver/trainer_messages.h"
#include "trainable/driver/trainer_state.h"
#include "trainable/driver/trainer_worker.h"
#include "trainable/driver/worker_options.h"
#include "trainable/driver/workers.h"

namespace attune::inline sdk::trainable {
namespace {

using std::chrono::milliseconds;

// The first and the longest wait before the driver asks again for available workers.
constexpr milliseconds kBackoffMin{100};
constexpr milliseconds kBackoffMax{10'000};

constexpr milliseconds kStallTimeoutMin{3'000};

// Checks the options and fills in defaults.
TorchTrainerOptions CheckedOptions(TorchTrainerOptions options) {
  const OptionCheck check("TorchTrainer");
  check.RequireWorkers(options.num_workers, options.cpus_per_worker, options.seed);
  if (options.min_workers == 0) options.min_workers = options.num_workers;
  check.Require(options.min_workers >= 1 && options.min_workers <= options.num_workers,
                "min_workers: " + std::to_string(options.min_workers),
                "must be from 1 to num_workers, " + std::to_string(options.num_workers));
  check.Require(!options.use_fp16 || !options.use_bf16,
                "use_fp16 and use_bf16:", "only one may be true");
  check.Require(options.stall_timeout.count() == 0 || options.stall_timeout >= kStallTimeoutMin,
                "stall_timeout: " + std::to_string(options.stall_timeout.count()) + " ms",
                "must be 0 (no limit) or at least " + std::to_string(kStallTimeoutMin.count()) +
                    " ms, because workers send a heartbeat once a second");
  check.Require(options.max_retries >= 0, "max_retries: " + std::to_string(options.max_retries),
                "must be at least 0");
  const std::string expected_backend = options.use_gpu ? "nccl" : "gloo";
  if (options.backend.empty()) options.backend = expected_backend;
  check.Require(options.backend == expected_backend, "backend: \"" + options.backend + "\"",
                "does not work with use_gpu = " + std::string(options.use_gpu ? "true" : "false") +
                    ", which needs \"" + expected_backend + "\"");
  if (options.use_gpu) check.RequireGpus(options.num_workers, options.min_workers);
  options.batch_size = options.config.IntOr("batch_size", options.batch_size);
  check.Require(options.batch_size >= options.num_workers,
                "batch_size: " + std::to_string(options.batch_size),
                "is shared by all workers, so it must be at least num_workers, " +
                    std::to_string(options.num_workers));
  if (options.batch_size % options.num_workers != 0) {
    std::cerr << "attune: TorchTrainer: a batch of " << options.batch_size << " does not divide by "
              << options.num_workers << " workers; their shares differ by one sample\n";
  }
  return options;
}

}  // namespace

struct TrainerDriver::Impl {
  const TrainingFactory factory;
  const std::string creators;
  const TorchTrainerOptions options;
  std::unique_ptr<Workers> workers;
  UniqueFd state;  // state after the last command that changed it; empty: as created, or not kept
  bool unsaved = false;  // the state has changed and is not kept in `state`
  bool lost = false;     // an unsaved state was lost with its gang
  std::uint64_t calls = 0;
  bool shut_down = false;

  int AvailableWorkers() const {
    const int available = options.available_workers ? options.available_workers()
                          : options.use_gpu         ? CountGpus()
                                                    : options.num_workers;
    return std::clamp(available, 0, options.num_workers);
  }

  int AwaitWorkers() const {
    const auto deadline = std::chrono::steady_clock::now() + options.room_timeout;
    for (milliseconds wait = kBackoffMin;; wait = std::min(2 * wait, kBackoffMax)) {
      const int available = AvailableWorkers();
      if (available >= options.min_workers) return available;
      if (std::chrono::steady_clock::now() + wait > deadline) {
        throw Error("TorchTrainer: only " + std::to_string(available) +
                    " workers are available, but min_workers is " +
                    std::to_string(options.min_workers));
      }
      std::this_thread::sleep_for(wait);
    }
  }

  void Start(int count) {
    TrainerSettings settings{.factory = factory, .creators = creators, .options = options};
    settings.batch_factor = ResizeBatch(settings.options, count);
    channel::Start start{.sweep = "trainer",
                         .world_size = count,
                         .local_world_size = count,
                         .cpus = options.cpus_per_worker,
                         .seed = options.seed,
                         .parameters = ToParameters(options.config)};
    std::vector<channel::Start> starts(count, start);
    for (int worker = 0; worker < count; ++worker) {
      starts[worker].rank = starts[worker].local_rank = worker;
      if (options.use_gpu) starts[worker].device = "cuda:" + std::to_string(worker);
    }
    workers = std::make_unique<Workers>(
        Workers::Options{.starts = std::move(starts),
                         .task = {.serve = ServeTrainer,
                                  .settings = ToBytes(settings),
                                  .initialization_hook = options.initialization_hook},
                         .stall_timeout = options.stall_timeout});
    if (state) {
      workers->Call({.bytes = ToBytes(Command{.what = DoLoad{}}), .file = DuplicateOf(state)});
    } else {
      workers->Call({.bytes = ToBytes(Command{.what = DoNothing{}}), .file = {}});
    }
  }

  // The gang may change its size only between two epochs.
  void Prepare(bool may_resize) {
    if (shut_down) throw Error("TorchTrainer: it was shut down");
    if (lost) {
      throw Error(
          "TorchTrainer: the training state was lost with a worker, because options.checkpoint is "
          "false; continue from another state with load_state_dict() or Load()");
    }
    if (workers && may_resize && !unsaved && options.available_workers) {
      const int available = AvailableWorkers();
      if (available >= options.min_workers && available != workers->size()) workers.reset();
    }
    if (!workers) Start(AwaitWorkers());
  }

  std::vector<Answer> Execute(Command command) {
    command.number = calls;
    std::vector<Answer> answers;
    for (Message& message : workers->Call({.bytes = ToBytes(command), .file = {}})) {
      answers.push_back(ReadAnswer(message.bytes));
      answers.back().applied.file = std::move(message.file);
    }
    return answers;
  }

  void KeepState() {
    UniqueFd now = std::move(Execute({.what = DoSendState{}})[0].applied.file);
    if (!now) throw Error("TorchTrainer: worker 0 sent no copy of the state");
    state = std::move(now);
  }

  void DiscardGang() {
    workers.reset();
    lost |= std::exchange(unsaved, false);
  }

  // Runs `work`, and repeats it after a lost worker. `retries` counts the repetitions.
  template <typename Work>
  auto RunWithRetries(int max_retries, int& retries, bool may_resize, Work work) {
    ++calls;
    for (retries = 0;; ++retries) {
      try {
        Prepare(may_resize);
        return work();
      } catch (const WorkerError& error) {
        DiscardGang();
        if (!error.lost() || retries >= max_retries) throw;
        if (lost) {
          throw WorkerError(
              error.worker(), /*lost=*/true,
              std::string(error.what()) +
                  "; the training state is lost, because options.checkpoint is false");
        }
        std::cerr << "attune: TorchTrainer: " << error.what() << "; continuing from "
                  << (state ? "the last copy of the state" : "the beginning") << " (retry "
                  << retries + 1 << " of " << max_retries << ")" << std::endl;
      } catch (...) {
        DiscardGang();  // its late answers must not be used for another command
        throw;
      }
    }
  }

  // Executes a command that changes the state.
  std::vector<Answer> ExecuteChange(Command command, int max_retries, int& retries,
                                    bool may_resize) {
    return RunWithRetries(max_retries, retries, may_resize, [&] {
      auto answers = Execute(command);
      if (options.checkpoint) KeepState();
      unsaved = !options.checkpoint;
      return answers;
    });
  }
  std::vector<Answer> ExecuteChange(Command command) {
    int retries = 0;
    return ExecuteChange(std::move(command), options.max_retries, retries, /*may_resize=*/false);
  }

  int RetriesOf(const TrainOptions& pass) const {
    return pass.max_retries < 0 ? options.max_retries : pass.max_retries;
  }
};

namespace {

TrainerStats StatsOf(const std::vector<Answer>& answers, bool reduce, int retries) {
  TrainerStats stats;
  PassResult all;
  for (const Answer& answer : answers) {
    const PassResult& pass = answer.pass;
    for (const auto& [name, sum] : pass.sums) all.sums[name] += sum;
    for (const auto& [name, weight] : pass.weights) all.weights[name] += weight;
    stats.samples += pass.samples;
    stats.batches = std::max(stats.batches, pass.batches);
    stats.seconds = std::max(stats.seconds, pass.times.total);
    const auto share = 1.0 / static_cast<double>(answers.size());
    stats.data_seconds += share * pass.times.data;
    stats.forward_seconds += share * pass.times.forward;
    stats.backward_seconds += share * pass.times.backward;
    stats.communication_seconds += share * pass.times.communication;
    if (!reduce) stats.workers.push_back(pass.Means());
  }
  stats.metrics = all.Means();
  stats.epoch = answers[0].epoch;
  stats.num_workers = static_cast<int>(answers.size());
  stats.retries = retries;
  return stats;
}

}  // namespace

TrainerDriver::TrainerDriver(TrainingFactory factory, std::string creators,
                             TorchTrainerOptions options)
    : impl_(new Impl{.factory = factory,
                     .creators = std::move(creators),
                     .options = CheckedOptions(std::move(options))}) {
  int retries = 0;
  impl_->RunWithRetries(impl_->options.max_retries, retries, /*may_resize=*/false, [] {});
}

TrainerDriver::~TrainerDriver() = default;

TrainerStats TrainerDriver::Train(const TrainOptions& options) {
  int retries = 0;
  const auto answers =
      impl_->ExecuteChange({.what = DoTrain{options}}, impl_->RetriesOf(options), retries,
                           /*may_resize=*/true);
  return StatsOf(answers, options.reduce_results, retries);
}

TrainerStats TrainerDriver::Validate(const TrainOptions& options) {
  int retries = 0;
  const auto answers =
      impl_->RunWithRetries(impl_->RetriesOf(options), retries, /*may_resize=*/false,
                            [&] { return impl_->Execute({.what = DoValidate{options}}); });
  return StatsOf(answers, options.reduce_results, retries);
}

void TrainerDriver::UpdateScheduler(const double* metric) {
  impl_->ExecuteChange(
      {.what = DoStepSchedulers{metric ? std::optional<double>(*metric) : std::nullopt}});
}

TensorMap TrainerDriver::State() {
  if (impl_->shut_down) throw Error("TorchTrainer: it was shut down");
  if (impl_->state && !impl_->unsaved) return FromMemory(impl_->state);
  int retries = 0;
  return impl_->RunWithRetries(impl_->options.max_retries, retries, /*may_resize=*/false, [&] {
    impl_->KeepState();
    TensorMap state = FromMemory(impl_->state);
    if (!impl_->options.checkpoint) impl_->state.reset();
    return state;
  });
}

void TrainerDriver::LoadState(const TensorMap& state) {
  if (impl_->shut_down) throw Error("TorchTrainer: it was shut down");
  UniqueFd before = std::exchange(impl_->state, ToMemory(state));
  const bool was_lost = std::exchange(impl_->lost, false);
  try {
    int retries = 0;
    impl_->RunWithRetries(impl_->options.max_retries, retries, /*may_resize=*/false, [&] {
      impl_->workers->Call(
          {.bytes = ToBytes(Command{.what = DoLoad{}}), .file = DuplicateOf(impl_->state)});
    });
  } catch (...) {
    impl_->state = std::move(before);
    impl_->lost |= was_lost;
    throw;
  }
  impl_->unsaved = !impl_->options.checkpoint;
  if (!impl_->options.checkpoint) impl_->state.reset();
}

std::vector<Unpacker> TrainerDriver::ApplyAll(ApplyFunction apply, const std::string& function) {
  std::vector<Unpacker> results;
  for (Answer& answer : impl_->ExecuteChange({.what = DoApply{apply, function}})) {
    results.emplace_back(std::make_shared<Message>(std::move(answer.applied)));
  }
  return results;
}

void TrainerDriver::Shutdown(bool force) {
  if (force && impl_->workers) impl_->workers->Kill();
  impl_->workers.reset();
  impl_->shut_down = true;
}

int TrainerDriver::num_workers() const { return impl_->workers ? impl_->workers->size() : 0; }
const TorchTrainerOptions& TrainerDriver::options() const { return impl_->options; }

}  // namespace attune::inline sdk::trainable
