#include "examples/cifar10/pictures.h"

#include <attune/download.h>
#include <attune/file_lock.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <stdexcept>

#include "examples/fashion_mnist/idx.h"

namespace cifar10 {
namespace {

namespace fs = std::filesystem;

constexpr int kFiles = 5;
constexpr int kClasses = 10;
constexpr std::int64_t kChannels = 3;
constexpr std::int64_t kSide = 32;
constexpr std::int64_t kPixels = kChannels * kSide * kSide;
constexpr std::int64_t kRecord = 1 + kPixels;
constexpr const char* kFolder = "cifar-10-batches-bin";  // its name in the archive

void AppendFile(const fs::path& path, Pictures& pictures) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + ": cannot be read");
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (size == 0 || size % kRecord != 0) {
    throw std::runtime_error(path.string() + ": has " + std::to_string(size) +
                             " bytes, which is not a multiple of the record size " +
                             std::to_string(kRecord) + "; download it again");
  }
  for (auto record = bytes.begin(); record != bytes.end(); record += kRecord) {
    const auto label = static_cast<std::uint8_t>(*record);
    if (label >= kClasses) {
      throw std::runtime_error(path.string() + ": has a label of " + std::to_string(label) +
                               ", but labels must be below 10; download it again");
    }
    pictures.labels.push_back(label);
    pictures.pixels.insert(pictures.pixels.end(), record + 1, record + kRecord);
  }
}

Pictures ReadFashionMnist() {
  const fs::path folder = fashion_mnist::DataFolder();
  fashion_mnist::Idx images = fashion_mnist::ReadIdx(folder / "train-images-idx3-ubyte.gz");
  fashion_mnist::Idx labels = fashion_mnist::ReadIdx(folder / "train-labels-idx1-ubyte.gz");
  if (images.shape.size() != 3 || labels.shape != std::vector{images.shape[0]}) {
    throw std::runtime_error((folder / "train").string() + "-*: images and labels do not match");
  }
  return {.channels = 1,
          .rows = images.shape[1],
          .columns = images.shape[2],
          .pixels = std::move(images.bytes),
          .labels = std::move(labels.bytes),
          .mean = {0.2860},
          .deviation = {0.3530}};
}

Pictures ReadAvailable() {
  const fs::path folder = fashion_mnist::DataFolder() / kFolder;
  if (fs::exists(folder)) return ReadCifar10(folder);
  std::cout << "cifar10: found no " << folder.string()
            << "; trains on Fashion-MNIST instead (--download downloads CIFAR-10)" << std::endl;
  return ReadFashionMnist();
}

void Unpack(const fs::path& archive, const fs::path& into) {
  const std::string from = archive.string();
  const std::string folder = into.string();
  const char* const argv[] = {"tar", "-xzf", from.c_str(), "-C", folder.c_str(), nullptr};
  pid_t pid = 0;
  int status = 0;
  if (posix_spawnp(&pid, "tar", nullptr, nullptr, const_cast<char* const*>(argv), environ) != 0) {
    throw std::runtime_error("tar: cannot be run; install it");
  }
  if (waitpid(pid, &status, 0) != pid || status != 0) {
    throw std::runtime_error(from + ": tar cannot unpack it into " + folder);
  }
}

}  // namespace

Pictures ReadCifar10(const fs::path& folder) {
  Pictures pictures{.channels = kChannels,
                    .rows = kSide,
                    .columns = kSide,
                    .pixels = {},
                    .labels = {},
                    .mean = {0.4914, 0.4822, 0.4465},
                    .deviation = {0.2470, 0.2435, 0.2616}};
  for (int i = 1; i <= kFiles; ++i) {
    AppendFile(folder / ("data_batch_" + std::to_string(i) + ".bin"), pictures);
  }
  return pictures;
}

const Pictures& TrainingPictures() {
  static const Pictures pictures = ReadAvailable();
  return pictures;
}

void DownloadCifar10(const fs::path& folder, const std::string& url, const std::string& sha256) {
  fs::create_directories(folder);
  const attune::FileLock lock(folder / "cifar-10.lock");
  if (fs::exists(folder / kFolder)) return;
  const fs::path archive = folder / "cifar-10-binary.tar.gz";
  attune::Download(url, sha256, archive);
  const fs::path unpacked = folder / "cifar-10.partial";
  fs::remove_all(unpacked);  // a killed process may have left it
  fs::create_directory(unpacked);
  Unpack(archive, unpacked);
  fs::rename(unpacked / kFolder, folder / kFolder);
  fs::remove_all(unpacked);
  fs::remove(archive);
}

}  // namespace cifar10
