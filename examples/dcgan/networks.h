#pragma once

#include <torch/nn/modules/container/sequential.h>
#include <torch/types.h>

#include <cstdint>
#include <string>

// The two networks of a DCGAN (Radford, Metz and Chintala, Unsupervised Representation Learning
// with Deep Convolutional Generative Adversarial Networks, ICLR 2016), sized for 28 × 28 grey
// images, with weights drawn as in its §4; and what judges them.
namespace dcgan {

inline constexpr std::int64_t kNoise = 100;  // numbers that an image is made of

// Noise [n, kNoise, 1, 1], normally distributed → images [n, 1, 28, 28] of pixels in [-1, 1].
torch::nn::Sequential Generator(std::int64_t width);

// Images as above → [n], above 0 where they are held for real.
torch::nn::Sequential Discriminator(std::int64_t width);

// The same numbers every time: noise [n, kNoise, 1, 1].
at::Tensor FixedNoise(std::int64_t n);

// Sees what is on an image: a classifier of Fashion-MNIST.
class Judge {
 public:
  // From a checkpoint of the fashion_mnist example. Without (empty), a small one, trained here and
  // now on so many images and kept in the user's cache: of all processes of a host one trains it,
  // and the others wait and read it.
  Judge(const std::string& checkpoint, std::int64_t samples);

  // Images as above → probabilities [n, 10], on the CPU.
  at::Tensor operator()(const at::Tensor& images);

 private:
  torch::nn::Sequential net_;
};

// Writes images of the generator as a grid, in the PGM format (portable grey map). Throws
// std::runtime_error when the file cannot be written.
void WriteSamples(torch::nn::SequentialImpl& generator, const std::string& file);

}  // namespace dcgan
