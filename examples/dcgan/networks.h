#pragma once

#include <torch/nn/modules/container/sequential.h>
#include <torch/types.h>

#include <cstdint>
#include <string>

// The two networks of a DCGAN (Radford, Metz and Chintala, Unsupervised Representation Learning
// with Deep Convolutional Generative Adversarial Networks, ICLR 2016), sized for 28 × 28 grey
// images, with weights drawn as in its §4; and a classifier that judges images.
namespace dcgan {

inline constexpr std::int64_t kNoise = 100;  // numbers that the generator makes an image from

// Input: normally distributed noise [n, kNoise, 1, 1]. Output: images [n, 1, 28, 28] with pixels in
// [-1, 1].
torch::nn::Sequential Generator(std::int64_t width);

// Input: such images. Output: [n], above 0 for images that it takes for real.
torch::nn::Sequential Discriminator(std::int64_t width);

// Noise [n, kNoise, 1, 1] that is the same in each call.
at::Tensor FixedNoise(std::int64_t n);

// A classifier of Fashion-MNIST.
class Judge {
 public:
  // Reads a checkpoint of the fashion_mnist example. If `checkpoint` is empty, trains a small
  // classifier on `samples` images and keeps it in the user's cache. One process of a host trains
  // it, and the others wait and read it.
  Judge(const std::string& checkpoint, std::int64_t samples);

  // Input: images of the generator. Output: probabilities [n, 10], on the CPU.
  at::Tensor operator()(const at::Tensor& images);

 private:
  torch::nn::Sequential net_;
};

// Writes images of the generator as a grid in the PGM format (portable grey map). Throws
// std::runtime_error if the file cannot be written.
void WriteSamples(torch::nn::SequentialImpl& generator, const std::string& file);

}  // namespace dcgan
