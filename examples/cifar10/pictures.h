#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cifar10 {

// Labelled pictures in memory, and by how much their channels are shifted and scaled.
struct Pictures {
  std::int64_t channels = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::uint8_t> pixels;  // [picture][channel][row][column]
  std::vector<std::uint8_t> labels;  // below 10
  std::vector<float> mean;           // of a channel's pixels, scaled to [0, 1]
  std::vector<float> deviation;
};

// The training images of CIFAR-10 (Krizhevsky, Learning Multiple Layers of Features from Tiny
// Images, 2009) from a folder with data_batch_1.bin … data_batch_5.bin: records of a label's byte
// and 3 × 32 × 32 of pixels. Throws std::runtime_error naming the file and what is wrong with it.
Pictures ReadCifar10(const std::filesystem::path& folder);

// CIFAR-10 from DataFolder() of the fashion_mnist example, where it is; else Fashion-MNIST, which
// it says in a line. What was read once stays for the life of the process, and of those that are
// forked from it. Touches no tensor. Throws std::runtime_error where there is neither.
const Pictures& TrainingPictures();

// Makes sure that `folder` has CIFAR-10's binary files in cifar-10-batches-bin, by downloading and
// unpacking them (162 MiB) with `tar`. Of all processes of a host one does it, and the others wait.
// The files are there complete, or not at all. Throws std::runtime_error or attune::Error.
void Fetch(
    const std::filesystem::path& folder,
    const std::string& url = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    const std::string& sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd");

}  // namespace cifar10
