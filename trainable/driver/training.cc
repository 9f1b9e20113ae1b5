#include "attune/training_operator.h"

#ifdef ATTUNE_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif

#include <utility>

#include "attune/error.h"
#include "trainable/base/random.h"
#include "trainable/checkpoints/optimizer_state.h"
#include "trainable/checkpoints/scheduler_state.h"
#include "trainable/checkpoints/state_dict.h"
#include "trainable/driver/trainer_state.h"

namespace attune::inline sdk::trainable {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

constexpr const char* kModel = "model";
constexpr const char* kOptimizer = "optimizer";
constexpr const char* kScheduler = "scheduler";
constexpr const char* kScaler = "scaler";
constexpr const char* kTrainer = "trainer";
constexpr const char* kSavedEpoch = "epoch";
constexpr const char* kBatchFactor = "batch_factor";
constexpr const char* kBaseRates = "base_rates";

// Distinguishes the seeds of commands from those of epochs.
constexpr std::uint64_t kCommandSeeds = std::uint64_t{1} << 63;

void Add(TensorMap& all, const std::string& part, const TensorMap& state) {
  for (const auto& [name, tensor] : state) all.emplace(part + "/" + name, tensor);
}

[[noreturn]] void ThrowNoMetric() {
  throw Error(
      "TorchTrainer: a ReduceLROnPlateauScheduler needs a metric: set scheduler_step_freq to "
      "kManual, and call UpdateScheduler(metric)");
}

}  // namespace

Metrics PassResult::Means() const {
  Metrics means;
  for (const auto& [name, sum] : sums) means[name] = sum / weights.at(name);
  return means;
}

Training::Training(Context& context, const TorchTrainerOptions& options)
    : context_(context), options_(options), scaler_({.enabled = options.use_fp16}) {
  context_.SeedAfterSetup();  // RunEpoch() seeds
}

Training::~Training() = default;

void Training::Record(const std::string& metric, double value, std::int64_t samples) {
  pass_.sums[metric] += value * static_cast<double>(samples);
  pass_.weights[metric] += static_cast<double>(samples);
}

void Training::Record(const std::string& metric, const at::Tensor& value, std::int64_t samples) {
  if (value.is_cpu()) return Record(metric, value.item<double>(), samples);
  const at::NoGradGuard no_grad;
  const at::Tensor weighted = value.detach().to(at::kFloat) * static_cast<double>(samples);
  at::Tensor& sum = tensor_sums_[metric];
  // Sums in double, because half precision or float would lose accuracy in long sums. One double
  // per batch costs nothing.
  sum = sum.defined() ? sum + weighted.to(at::kDouble) : weighted.to(at::kDouble);
  pass_.weights[metric] += static_cast<double>(samples);
}

void Training::NoteBatch(std::int64_t samples, bool training) {
  pass_.samples += samples;
  ++pass_.batches;
  context_.Heartbeat();
  if (!training) return;
  context_.NoteFirstOptimizerStep();
  if (options_.scheduler_step_freq == SchedulerStep::kBatch) StepSchedulers(nullptr);
}

PassResult Training::Run(const TrainOptions& options, void (Training::*pass)()) {
  pass_ = {};
  pass_options_ = options;
  tensor_sums_.clear();
  const auto began = Clock::now();
  (this->*pass)();
  for (const auto& [metric, sum] : tensor_sums_) pass_.sums[metric] += sum.item<double>();
  pass_.times.total = SecondsSince(began);
  return std::move(pass_);
}

PassResult Training::RunEpoch(const TrainOptions& options) {
  // The random numbers of an epoch do not depend on earlier epochs or on interruptions.
  at::manual_seed(Key(context_.seed(), static_cast<std::uint64_t>(epoch_) + 1, context_.rank()));
  PassResult result = Run(options, &Training::Train);
  ++epoch_;
  if (options_.scheduler_step_freq == SchedulerStep::kEpoch) StepSchedulers(nullptr);
  result.times.communication = StepCommunicationSeconds() * static_cast<double>(result.batches);
  return result;
}

PassResult Training::RunValidation(const TrainOptions& options) {
  return Run(options, &Training::Validate);
}

void Training::StepSchedulers(const double* metric) {
  for (const AnyScheduler& scheduler : schedulers()) {
    if (auto* const* plain = std::get_if<torch::optim::LRScheduler*>(&scheduler)) {
      (*plain)->step();
    } else if (metric != nullptr) {
      std::get<torch::optim::ReduceLROnPlateauScheduler*>(scheduler)->step(
          static_cast<float>(*metric));
    } else {
      ThrowNoMetric();
    }
  }
}

std::vector<double> Training::LearningRates() {
  std::vector<double> rates;
  for (torch::optim::Optimizer* optimizer : optimizers()) {
    for (auto& group : optimizer->param_groups()) rates.push_back(group.options().get_lr());
  }
  return rates;
}

void Training::SetLearningRates(const std::vector<double>& rates) {
  auto rate = rates.begin();
  for (torch::optim::Optimizer* optimizer : optimizers()) {
    for (auto& group : optimizer->param_groups()) group.options().set_lr(*rate++);
  }
}

void Training::Begin(double batch_factor) {
  batch_factor_ = batch_factor;
  base_rates_ = LearningRates();
  std::vector<double> rates = base_rates_;
  for (double& rate : rates) rate *= batch_factor;
  SetLearningRates(rates);
  for (const AnyScheduler& scheduler : schedulers()) {
    if (std::holds_alternative<torch::optim::ReduceLROnPlateauScheduler*>(scheduler) &&
        options_.scheduler_step_freq != SchedulerStep::kManual) {
      ThrowNoMetric();
    }
  }
}

void Training::SeedCommand(std::uint64_t number, bool same_on_all_workers) {
  at::manual_seed(
      Key(context_.seed(), kCommandSeeds + number, same_on_all_workers ? 0 : context_.rank() + 1));
}

TensorMap Training::State() {
  TensorMap all;
  std::size_t index = 0;
  for (const auto* module : modules()) Add(all, NumberedPart(kModel, index++), StateOf(*module));
  index = 0;
  for (const auto* optimizer : optimizers()) {
    Add(all, NumberedPart(kOptimizer, index++), StateOf(*optimizer, /*hyperparameters=*/true));
  }
  index = 0;
  for (const AnyScheduler& scheduler : schedulers()) {
    Add(all, NumberedPart(kScheduler, index++),
        std::visit([](const auto* each) { return StateOf(*each); }, scheduler));
  }
  Add(all, kScaler, scaler_.state_dict());
  Add(all, kTrainer,
      {{kSavedEpoch, at::full({1}, epoch_, at::kLong)},
       {kBaseRates, at::tensor(base_rates_, at::kDouble)},
       {kBatchFactor, at::full({1}, batch_factor_, at::kDouble)}});
  return all;
}

void Training::LoadState(const TensorMap& all, bool hyperparameters) {
  const std::string where = "state_dict";
  const TensorMap trainer = PartOf(all, kTrainer);
  if (!trainer.contains(kSavedEpoch) || !trainer.contains(kBatchFactor) ||
      !trainer.contains(kBaseRates)) {
    throw Error("state_dict: does not come from a TorchTrainer, because it has no " +
                std::string(kTrainer) + "/" + kSavedEpoch);
  }
  std::size_t index = 0;
  for (auto* module : modules()) {
    const std::string part = NumberedPart(kModel, index++);
    trainable::LoadState(*module, PartOf(all, part), where + ": " + part);
  }
  index = 0;
  std::vector<double> rates;  // the saved learning rates
  for (auto* optimizer : optimizers()) {
    const std::string part = NumberedPart(kOptimizer, index++);
    TensorMap saved = PartOf(all, part);
    for (std::size_t i = 0; i < optimizer->param_groups().size(); ++i) {
      const auto rate = saved.find(std::string(kGroupPrefix) + std::to_string(i) + ".lr");
      if (rate != saved.end()) rates.push_back(rate->second.item<double>());
    }
    if (!hyperparameters) {
      std::erase_if(saved, [](const auto& item) { return item.first.starts_with(kGroupPrefix); });
    }
    trainable::LoadState(*optimizer, saved, where + ": " + part);
  }
  index = 0;
  for (const AnyScheduler& scheduler : schedulers()) {
    const std::string part = NumberedPart(kScheduler, index++);
    std::visit(
        [&](auto* each) { trainable::LoadState(*each, PartOf(all, part), where + ": " + part); },
        scheduler);
  }
  scaler_.load_state_dict(PartOf(all, kScaler));
  epoch_ = trainer.at(kSavedEpoch).item<std::int64_t>();
  const at::Tensor saved_base = trainer.at(kBaseRates).to(at::kDouble).contiguous();
  if (saved_base.numel() != std::ssize(rates) || base_rates_.size() != rates.size()) {
    throw Error("state_dict: it has learning rates of " + std::to_string(saved_base.numel()) +
                " parameter groups, but there are " + std::to_string(rates.size()));
  }
  // Only the number of workers scales the rates: another configured batch size comes with its own
  // learning rates.
  const double batch_factor = batch_factor_ / trainer.at(kBatchFactor).item<double>();
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const double base = saved_base.const_data_ptr<double>()[i];
    rates[i] *= batch_factor;
    if (hyperparameters) {
      base_rates_[i] = base;
    } else if (base != 0) {
      rates[i] *= base_rates_[i] / base;
    }
  }
  SetLearningRates(rates);
}

Phase::Phase(double& seconds, c10::Device device, bool exact)
    : seconds_(seconds), device_(device), exact_(exact), began_(Clock::now()) {}

Phase::~Phase() {
#ifdef ATTUNE_CUDA
  if (exact_ && device_.is_cuda()) c10::cuda::device_synchronize();
#else
  static_cast<void>(device_);
  static_cast<void>(exact_);
#endif
  seconds_ += SecondsSince(began_);
}

void ThrowEmptyModel() { throw Error("TorchTrainer: the model creator returned an empty model"); }

void ThrowCannotValidate() {
  throw Error(
      "TorchTrainer: there is nothing to validate with; return attune::TrainerData{train, "
      "validation} from the data creator, or set a validation_function");
}

void CheckLoss(const at::Tensor& loss) {
  if (!loss.defined()) throw Error("TorchTrainer: the loss is an undefined tensor");
  if (loss.numel() != 1) {
    throw Error("TorchTrainer: the loss must be one number, but is " + Shape(loss) +
                "; a loss without a reduction needs .mean()");
  }
}

at::Tensor CountCorrect(const at::Tensor& output, const at::Tensor& target) {
  if (output.dim() != 2 || target.dim() != 1 || !at::isIntegralType(target.scalar_type(), false) ||
      output.size(0) != target.size(0)) {
    return {};
  }
  return output.argmax(1).eq(target).sum();
}

}  // namespace attune::inline sdk::trainable
