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

// The first and the longest wait before it asks again whether there is room.
constexpr milliseconds kBackoffMin{100};
constexpr milliseconds kBackoffMax{10'000};

constexpr milliseconds kStallTimeoutMin{3'000};

// The options with defaults filled in.
TorchTrainerOptions Checked(TorchTrainerOptions options) {
  const OptionCheck check("TorchTrainer");
  check.RequireWorkers(options.num_workers, options.cpus_per_worker, options.seed);
  if (options.min_workers == 0) options.min_workers = options.num_workers;
  check.Require(options.min_workers >= 1 && options.min_workers <= options.num_workers,
                "min_workers: " + std::to_string(options.min_workers),
                "has to be from 1 to num_workers, " + std::to_string(options.num_workers));
  check.Require(!options.use_fp16 || !options.use_bf16,
                "use_fp16 and use_bf16:", "only one of them");
  check.Require(options.stall_timeout.count() == 0 || options.stall_timeout >= kStallTimeoutMin,
                "stall_timeout: " + std::to_string(options.stall_timeout.count()) + " ms",
                "has to be 0, for ever, or at least " + std::to_string(kStallTimeoutMin.count()) +
                    " ms: workers speak once a second");
  check.Require(options.max_retries >= 0, "max_retries: " + std::to_string(options.max_retries),
                "has to be at least 0");
  const std::string fitting = options.use_gpu ? "nccl" : "gloo";
  if (options.backend.empty()) options.backend = fitting;
  check.Require(options.backend == fitting, "backend: \"" + options.backend + "\"",
                "does not go with use_gpu = " + std::string(options.use_gpu ? "true" : "false") +
                    ", which takes \"" + fitting + "\"");
  if (options.use_gpu) check.RequireGpus(options.num_workers, options.min_workers);
  options.batch_size = options.config.IntOr("batch_size", options.batch_size);
  check.Require(options.batch_size >= options.num_workers,
                "batch_size: " + std::to_string(options.batch_size),
                "is that of all workers together, so at least num_workers, " +
                    std::to_string(options.num_workers));
  if (options.batch_size % options.num_workers != 0) {
    std::cerr << "attune: TorchTrainer: a batch of " << options.batch_size << " does not divide by "
              << options.num_workers << " workers: their shares differ by one sample\n";
  }
  return options;
}

}  // namespace

struct TrainerDriver::Impl {
  const TrainingFactory factory;
  const std::string creators;
  const TorchTrainerOptions options;
  std::unique_ptr<Workers> workers;
  UniqueFd state;        // after the last command that changed it; none: as created, or not kept
  bool unsaved = false;  // the state has changed and is not kept
  bool lost = false;     // an unsaved state was lost with its gang
  std::uint64_t calls = 0;
  bool shut_down = false;

  int Room() const {
    const int room = options.available_workers ? options.available_workers()
                     : options.use_gpu         ? CountGpus()
                                               : options.num_workers;
    return std::clamp(room, 0, options.num_workers);
  }

  int AwaitRoom() const {
    const auto until = std::chrono::steady_clock::now() + options.room_timeout;
    for (milliseconds wait = kBackoffMin;; wait = std::min(2 * wait, kBackoffMax)) {
      const int room = Room();
      if (room >= options.min_workers) return room;
      if (std::chrono::steady_clock::now() + wait > until) {
        throw Error("TorchTrainer: there is room for " + std::to_string(room) +
                    " workers, and min_workers is " + std::to_string(options.min_workers));
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

  // The gang may become smaller or larger only between two epochs.
  void Prepare(bool may_resize) {
    if (shut_down) throw Error("TorchTrainer: is shut down");
    if (lost) {
      throw Error(
          "TorchTrainer: what it had learnt went with a worker, since options.checkpoint is off; "
          "load_state_dict() or Load() goes on from another state");
    }
    if (workers && may_resize && !unsaved && options.available_workers) {
      const int room = Room();
      if (room >= options.min_workers && room != workers->size()) workers.reset();
    }
    if (!workers) Start(AwaitRoom());
  }

  std::vector<Answer> Do(Command command) {
    command.number = calls;
    std::vector<Answer> answers;
    for (Message& message : workers->Call({.bytes = ToBytes(command), .file = {}})) {
      answers.push_back(ReadAnswer(message.bytes));
      answers.back().applied.file = std::move(message.file);
    }
    return answers;
  }

  void KeepState() {
    UniqueFd now = std::move(Do({.what = DoSendState{}})[0].applied.file);
    if (!now) throw Error("TorchTrainer: worker 0 has sent no copy of the state");
    state = std::move(now);
  }

  void LoseGang() {
    workers.reset();
    lost |= std::exchange(unsaved, false);
  }

  // Does the work, and does it again after a loss; `retries` counts the repetitions.
  template <typename Work>
  auto Retrying(int max_retries, int& retries, bool may_resize, Work work) {
    ++calls;
    for (retries = 0;; ++retries) {
      try {
        Prepare(may_resize);
        return work();
      } catch (const WorkerError& error) {
        LoseGang();
        if (!error.lost() || retries >= max_retries) throw;
        if (lost) {
          throw WorkerError(error.worker(), /*lost=*/true,
                            std::string(error.what()) +
                                "; what it had learnt is lost, since options.checkpoint is off");
        }
        std::cerr << "attune: TorchTrainer: " << error.what() << "; going on from "
                  << (state ? "the last copy of the state" : "the beginning") << " (retry "
                  << retries + 1 << " of " << max_retries << ")" << std::endl;
      } catch (...) {
        LoseGang();  // its answers would be taken for those to another question
        throw;
      }
    }
  }

  // A command that changes the state.
  std::vector<Answer> Change(Command command, int max_retries, int& retries, bool may_resize) {
    return Retrying(max_retries, retries, may_resize, [&] {
      auto answers = Do(command);
      if (options.checkpoint) KeepState();
      unsaved = !options.checkpoint;
      return answers;
    });
  }
  std::vector<Answer> Change(Command command) {
    int retries = 0;
    return Change(std::move(command), options.max_retries, retries, /*may_resize=*/false);
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
                     .options = Checked(std::move(options))}) {
  int retries = 0;
  impl_->Retrying(impl_->options.max_retries, retries, /*may_resize=*/false, [] {});
}

TrainerDriver::~TrainerDriver() = default;

TrainerStats TrainerDriver::Train(const TrainOptions& options) {
  int retries = 0;
  const auto answers = impl_->Change({.what = DoTrain{options}}, impl_->RetriesOf(options), retries,
                                     /*may_resize=*/true);
  return StatsOf(answers, options.reduce_results, retries);
}

TrainerStats TrainerDriver::Validate(const TrainOptions& options) {
  int retries = 0;
  const auto answers = impl_->Retrying(impl_->RetriesOf(options), retries, /*may_resize=*/false,
                                       [&] { return impl_->Do({.what = DoValidate{options}}); });
  return StatsOf(answers, options.reduce_results, retries);
}

void TrainerDriver::UpdateScheduler(const double* metric) {
  impl_->Change({.what = DoStepSchedulers{metric ? std::optional<double>(*metric) : std::nullopt}});
}

TensorMap TrainerDriver::State() {
  if (impl_->shut_down) throw Error("TorchTrainer: is shut down");
  if (impl_->state && !impl_->unsaved) return FromMemory(impl_->state);
  int retries = 0;
  return impl_->Retrying(impl_->options.max_retries, retries, /*may_resize=*/false, [&] {
    impl_->KeepState();
    TensorMap state = FromMemory(impl_->state);
    if (!impl_->options.checkpoint) impl_->state.reset();
    return state;
  });
}

void TrainerDriver::LoadState(const TensorMap& state) {
  if (impl_->shut_down) throw Error("TorchTrainer: is shut down");
  UniqueFd before = std::exchange(impl_->state, ToMemory(state));
  const bool was_lost = std::exchange(impl_->lost, false);
  try {
    int retries = 0;
    impl_->Retrying(impl_->options.max_retries, retries, /*may_resize=*/false, [&] {
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
  for (Answer& answer : impl_->Change({.what = DoApply{apply, function}})) {
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
