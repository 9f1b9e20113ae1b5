// A DCGAN on Fashion-MNIST: a TorchTrainer trains two models against each other.
//
//   attune run sweep.yaml                                       a search
//   ./dcgan --config lr=0.0002,beta1=0.5 --workers 2            one training by hand
//   ./dcgan --alone --samples grid.pgm                          driven by this main()
//   ./dcgan --from CHECKPOINT --samples grid.pgm                images of a trained generator

#include <attune/collectives.h>
#include <attune/torch_trainer.h>
#include <torch/nn/modules/loss.h>
#include <torch/optim/adam.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>

#include "examples/dcgan/inception_score.h"
#include "examples/dcgan/networks.h"
#include "examples/fashion_mnist/images.h"

namespace dcgan {
namespace {

using attune::Config;
using fashion_mnist::Images;
using torch::nn::Sequential;

constexpr std::int64_t kWidth = 32;
constexpr std::int64_t kGenerated = 1'000;  // images that are judged
constexpr std::int64_t kClasses = 10;

// The discriminator has two forward passes before its backward pass. Between them, the statistics
// of its batch norms must not change.
constexpr attune::DistributedModelOptions kModelOptions{.broadcast_buffers = false};

// Converts images of the dataset to pixels in [-1, 1], as the generator produces them.
at::Tensor ToGeneratorPixels(const at::Tensor& normalised) {
  return (normalised * fashion_mnist::kPixelDeviation + fashion_mnist::kPixelMean) * 2 - 1;
}

torch::optim::Adam MakeAdam(Sequential& model, const Config& config) {
  return torch::optim::Adam(
      model->parameters(),
      torch::optim::AdamOptions(config.Real("lr")).betas({config.RealOr("beta1", 0.5), 0.999}));
}

// First the discriminator learns to distinguish real from generated images. Then the generator
// learns to make images that the discriminator takes for real. Method: Radford et al., 2016, with
// the non-saturating loss of Goodfellow et al., NIPS 2014, §3.
constexpr auto kTrain = [](auto& training) {
  auto& generator = training.model();
  auto& discriminator = training.template model<1>();
  generator.train();
  discriminator.train();
  for (auto& batch : training.batches()) {
    const std::int64_t n = batch.data.size(0);
    const at::Tensor real = torch::ones({n}, batch.data.device());
    const at::Tensor noise = torch::randn({n, kNoise, 1, 1}).to(batch.data.device());
    const at::Tensor fake = generator(noise);

    training.template optimizer<1>().zero_grad();
    const at::Tensor loss = training.loss()(discriminator(ToGeneratorPixels(batch.data)), real) +
                            training.loss()(discriminator(fake.detach()), torch::zeros_like(real));
    loss.backward();
    training.template optimizer<1>().step();

    // forward() instead of operator(): these gradients of the discriminator need no
    // synchronization, because they are not used.
    training.optimizer().zero_grad();
    const at::Tensor fooled = training.loss()(discriminator->forward(fake), real);
    fooled.backward();
    training.optimizer().step();

    training.Record("discriminator_loss", loss, n);
    training.Record("generator_loss", fooled, n);
  }
};

// Each worker judges a part of the images. All workers together judge the same images, whatever the
// number of workers.
constexpr auto kJudge = [](auto& training) {
  const torch::NoGradGuard no_grad;
  attune::Context& context = training.context();
  training.model().eval();
  const auto share = FixedNoise(kGenerated).tensor_split(context.world_size())[context.rank()];
  const at::Tensor judged =
      training.template loss<1>()(training.model()->forward(share.to(context.device())));

  InceptionScore score(kClasses);
  for (std::int64_t i = 0; i < judged.size(0); ++i) {
    score.Add(judged.template accessor<float, 2>()[i]);
  }
  at::Tensor sums = torch::from_blob(score.sums().data(), {kClasses + 2}, torch::kDouble);
  attune::AllReduce(context, sums);
  training.Record("inception_score", score.Value(), 1);
};

constexpr attune::Creators kCreators{
    .model =
        [](const Config& config) {
          const std::int64_t width = config.IntOr("width", kWidth);
          return std::tuple(Generator(width), Discriminator(width));
        },
    .data =
        [](const Config& config) { return Images("train", 0, config.IntOr("samples", 60'000)); },
    .optimizer =
        [](std::tuple<Sequential, Sequential>& models, const Config& config) {
          return std::tuple(MakeAdam(std::get<0>(models), config),
                            MakeAdam(std::get<1>(models), config));
        },
    .loss =
        [](const Config& config) {
          return std::tuple(
              torch::nn::BCEWithLogitsLoss(),
              Judge(config.TextOr("classifier", ""), config.IntOr("classifier_samples", 50'000)));
        },
    .train_function = kTrain,
    .validation_function = kJudge};

// The arguments that this main() reads; attune::Main() reads the others.
struct Arguments {
  bool alone = false;
  std::string classifier;
  std::string from;
  std::string samples;
  std::int64_t images = 12'000;
  std::string unknown;

  Arguments(int argc, char** argv) {
    const std::map<std::string, std::string*> texts{
        {"--classifier", &classifier}, {"--from", &from}, {"--samples", &samples}};
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--alone") {
        alone = true;
      } else if (word == "--images" && i + 1 < argc) {
        images = std::atoll(argv[++i]);
      } else if (texts.contains(word) && i + 1 < argc) {
        *texts.at(word) = argv[++i];
      } else if (unknown.empty()) {
        unknown = word;
      }
    }
    if (images < 2) throw std::runtime_error("--images: has to be a number above 1");
    if (!from.empty() && samples.empty()) throw std::runtime_error("--from: needs --samples FILE");
    if ((alone || !from.empty()) && !unknown.empty()) {
      throw std::runtime_error(unknown + ": is no option of this, or lacks its value");
    }
  }
};

void TrainAlone(const Arguments& arguments) {
  attune::TorchTrainer trainer(kCreators, {.num_workers = 2,
                                           .batch_size = 64,
                                           .model = kModelOptions,
                                           .config = {{"lr", 0.0002},
                                                      {"samples", arguments.images},
                                                      {"classifier", arguments.classifier}}});
  for (int epoch = 1; epoch <= 4; ++epoch) {
    attune::Metrics metrics = trainer.Train().metrics;
    metrics.merge(trainer.Validate().metrics);
    std::cout << "epoch " << epoch << "  " << attune::ToText(metrics) << std::endl;
  }
  std::cout << "saved " << trainer.Save("dcgan-checkpoints").path.string() << std::endl;
  if (!arguments.samples.empty()) {
    WriteSamples(*std::get<0>(trainer.GetModel()), arguments.samples);
  }
}

void Draw(const Arguments& arguments) {
  const attune::CheckpointReader checkpoint(arguments.from);
  Sequential generator = Generator(checkpoint.config().IntOr("width", kWidth));
  checkpoint.Read("model", *generator);
  WriteSamples(*generator, arguments.samples);
}

}  // namespace
}  // namespace dcgan

int main(int argc, char** argv) {
  try {
    const dcgan::Arguments arguments(argc, argv);
    if (!arguments.from.empty()) {
      dcgan::Draw(arguments);
      return 0;
    }
    fashion_mnist::PreloadTrainingFiles();
    if (arguments.alone) {
      attune::Init(argc, argv);
      dcgan::TrainAlone(arguments);
      return 0;
    }
  } catch (const std::exception& error) {
    std::cerr << "dcgan: " << error.what() << std::endl;
    return 1;
  }
  return attune::Main(
      argc, argv,
      attune::AsTrainable(dcgan::kCreators, {.batch_size = 64, .model = dcgan::kModelOptions}));
}
