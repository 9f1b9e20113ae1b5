#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cifar10 {

// Labelled pictures in memory, with the mean and deviation for normalization.
struct Pictures {
  std::int64_t channels = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::uint8_t> pixels;  // [picture][channel][row][column]
  std::vector<std::uint8_t> labels;  // below 10
  std::vector<float> mean;           // mean of each channel's pixels, scaled to [0, 1]
  std::vector<float> deviation;
};

// The training images of CIFAR-10 (Krizhevsky, Learning Multiple Layers of Features from Tiny
// Images, 2009) from a folder with data_batch_1.bin … data_batch_5.bin. A record has one byte for
// the label and 3 × 32 × 32 bytes for the pixels. Throws std::runtime_error with the file's name
// and the problem.
Pictures ReadCifar10(const std::filesystem::path& folder);

// CIFAR-10 from DataFolder() of the fashion_mnist example. If it is not there, prints a line and
// returns Fashion-MNIST. The pictures stay in memory until the process ends, and forked processes
// share them. Creates no tensors. Throws std::runtime_error if there is no dataset.
const Pictures& TrainingPictures();

// Downloads CIFAR-10's binary files (162 MiB) and unpacks them with `tar` to cifar-10-batches-bin
// in `folder`, unless they are there. One process of a host does this, and the others wait. The
// folder appears when it is complete. Throws std::runtime_error or attune::Error.
void DownloadCifar10(
    const std::filesystem::path& folder,
    const std::string& url = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    const std::string& sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd");

}  // namespace cifar10
