// Trains a ResNet-18 on CIFAR-10 with a TorchTrainer that has custom loops and a custom hook.
//
//   attune run sweep.yaml                                              a search
//   ./cifar10 --config lr=0.05,width=16 --workers 2 --max-step 3       one training by hand
//   ./cifar10 --alone --images 6000                                    driven by this main()

#include <attune/torch_trainer.h>
#include <torch/data/datasets/base.h>
#include <torch/nn/modules/loss.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/cifar10/crops.h"
#include "examples/cifar10/pictures.h"
#include "examples/fashion_mnist/idx.h"
#include "examples/fashion_mnist/models.h"

namespace cifar10 {
namespace {

using attune::Config;

struct Batch {
  at::Tensor data;                    // (n, channels, rows, columns), bytes
  at::Tensor target;                  // (n), integers below 10
  std::vector<std::int64_t> samples;  // indices in the dataset
};
void VisitTensors(Batch& batch, const attune::TensorVisitor& visit) {
  visit(batch.data);
  visit(batch.target);
}

// Pictures begin … end - 1 of the training set. Copies share memory.
class Images : public torch::data::datasets::BatchDataset<Images, Batch> {
 public:
  Images(std::int64_t begin, std::int64_t end) {
    const Pictures& all = TrainingPictures();
    const auto count = static_cast<std::int64_t>(all.labels.size());
    const auto tensor = [&](const std::vector<std::uint8_t>& bytes, at::IntArrayRef shape) {
      const auto data = const_cast<std::uint8_t*>(bytes.data());  // never written
      return torch::from_blob(data, shape, torch::kByte).slice(0, begin, end);
    };
    pixels_ = tensor(all.pixels, {count, all.channels, all.rows, all.columns});
    labels_ = tensor(all.labels, {count});
  }

  Batch get_batch(c10::ArrayRef<std::size_t> indices) override {
    std::vector<std::int64_t> samples(indices.begin(), indices.end());
    const at::Tensor rows = torch::tensor(samples);
    return {pixels_.index_select(0, rows), labels_.index_select(0, rows).to(torch::kLong),
            std::move(samples)};
  }
  std::optional<std::size_t> size() const override { return labels_.size(0); }

 private:
  at::Tensor pixels_, labels_;
};

// At most the last tenth of the training images is for validation; fewer if few are for training.
attune::TrainerData<Images> CreateData(const Config& config) {
  const auto count = static_cast<std::int64_t>(TrainingPictures().labels.size());
  const std::int64_t tenth = std::max<std::int64_t>(1, count / 10);
  const std::int64_t samples = std::min(config.IntOr("samples", count), count - tenth);
  const std::int64_t validation = std::clamp<std::int64_t>(samples / 5, 1, tenth);
  return {Images(0, samples), Images(count - validation, count)};
}

at::Tensor Normalise(const at::Tensor& bytes) {
  const Pictures& all = TrainingPictures();
  const auto channels = [&](const std::vector<float>& values) {
    return torch::tensor(values).view({1, -1, 1, 1}).to(bytes.device());
  };
  return (bytes.to(torch::kFloat) / 255 - channels(all.mean)) / channels(all.deviation);
}

// Settings that are necessary before a worker joins its gang.
void BeforeJoining(const attune::RankInfo&) {
  setenv("NCCL_SOCKET_IFNAME", "^docker0,lo", /*overwrite=*/0);
}

constexpr attune::Creators kCreators{
    .model =
        [](const Config& config) {
          return fashion_mnist::ResNet18(config.Int("width"), TrainingPictures().channels);
        },
    .data = CreateData,
    .optimizer =
        [](torch::nn::Sequential& net, const Config& config) {
          return torch::optim::SGD(net->parameters(),
                                   torch::optim::SGDOptions(config.Real("lr"))
                                       .momentum(config.RealOr("momentum", 0.9))
                                       .weight_decay(config.RealOr("weight_decay", 5e-4)));
        },
    .loss = [](const Config&) { return torch::nn::CrossEntropyLoss(); },
    .scheduler =
        [](torch::optim::SGD& sgd, const Config& config) {
          return torch::optim::StepLR(sgd, config.IntOr("epochs_per_rate", 10), /*gamma=*/0.2);
        },
    .train_function =
        [](auto& training) {
          training.model().train();
          for (Batch& batch : training.batches()) {
            batch.data = Normalise(CropAndFlip(batch.data, batch.samples, training.context().seed(),
                                               training.epoch()));
            training.TrainBatch(batch);
          }
        },
    .validation_function =
        [](auto& training) {
          const torch::NoGradGuard no_grad;
          training.model().eval();
          for (Batch& batch : training.validation_batches()) {
            const at::Tensor output = training.model()->forward(Normalise(batch.data));
            const at::Tensor truth = batch.target.unsqueeze(1);
            const at::Tensor best = std::get<1>(output.topk(/*k=*/5, /*dim=*/1));
            const auto n = batch.target.size(0);
            training.Record("val_loss", training.loss()(output, batch.target), n);
            training.Record("val_accuracy", best.slice(1, 0, 1).eq(truth).sum() / n, n);
            training.Record("val_top5_accuracy", best.eq(truth).sum() / n, n);
          }
        }};

int TrainAlone(int argc, char** argv, std::int64_t samples) {
  attune::Init(argc, argv);
  attune::TorchTrainer trainer(kCreators,
                               {.num_workers = 2,
                                .batch_size = 128,
                                .config = {{"lr", 0.05}, {"width", 16}, {"samples", samples}},
                                .initialization_hook = BeforeJoining});
  for (int epoch = 1; epoch <= 3; ++epoch) {
    attune::Metrics metrics = trainer.Train().metrics;
    metrics.merge(trainer.Validate().metrics);
    std::cout << "epoch " << epoch << "  " << attune::ToText(metrics) << std::endl;
  }
  std::cout << "saved " << trainer.Save("cifar10-checkpoints").path.string() << std::endl;
  return 0;
}

// The arguments that this main() reads; attune::Main() reads the others.
struct Arguments {
  bool alone = false;
  bool download = false;
  std::int64_t images = 6'000;
  std::string unknown;

  Arguments(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--alone") {
        alone = true;
      } else if (word == "--download") {
        download = true;
      } else if (word == "--images" && i + 1 < argc) {
        images = std::atoll(argv[++i]);
      } else if (unknown.empty()) {
        unknown = word;
      }
    }
    if (images < 2) throw std::runtime_error("--images: must be a number above 1");
    if (alone && !unknown.empty()) {
      throw std::runtime_error(unknown + ": not an option of --alone, or its value is missing");
    }
  }
};

// Runs once per host if ranks are forked; see attune::Main().
void PrepareData(bool download) {
  if (download) {
    if (std::getenv("ATTUNE_DATA_DIR") == nullptr) {
      throw std::runtime_error("--download: set ATTUNE_DATA_DIR to the folder for the download");
    }
    DownloadCifar10(fashion_mnist::DataFolder());
  }
  TrainingPictures();
}

}  // namespace
}  // namespace cifar10

int main(int argc, char** argv) {
  try {
    const cifar10::Arguments arguments(argc, argv);
    cifar10::PrepareData(arguments.download);
    if (arguments.alone) return cifar10::TrainAlone(argc, argv, arguments.images);
  } catch (const std::exception& error) {
    std::cerr << "cifar10: " << error.what() << std::endl;
    return 1;
  }
  return attune::Main(argc, argv, attune::AsTrainable(cifar10::kCreators, {.batch_size = 128}),
                      {.initialization_hook = cifar10::BeforeJoining});
}
