#include "examples/fashion_mnist/idx.h"

#include <zlib.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

namespace fashion_mnist {
namespace {

constexpr int kUnsignedBytes = 8;  // code of the element type in IDX files
constexpr int kMaxDimensions = 4;
constexpr std::int64_t kMaxElements = 1 << 30;  // far more than any dataset of the MNIST family

class GzipFile {
 public:
  explicit GzipFile(const std::filesystem::path& path)
      : path_(path), file_(gzopen(path.c_str(), "rb"), &gzclose) {
    if (file_ == nullptr) {
      throw std::runtime_error(
          path.string() +
          ": not found; install Debian's dataset-fashion-mnist, or set ATTUNE_DATA_DIR to a folder "
          "with the four .gz files of Fashion-MNIST");
    }
  }

  void Read(void* data, std::size_t bytes) {
    if (gzfread(data, 1, bytes, file_.get()) != bytes) {
      throw std::runtime_error(path_.string() +
                               ": ends too early or is damaged; download it again");
    }
  }

  std::int64_t ReadBigEndian32() {
    std::uint8_t b[4];
    Read(b, sizeof(b));
    return std::int64_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3];
  }

 private:
  const std::filesystem::path& path_;
  std::unique_ptr<gzFile_s, decltype(&gzclose)> file_;
};

}  // namespace

Idx ReadIdx(const std::filesystem::path& path) {
  GzipFile file(path);
  const std::int64_t magic = file.ReadBigEndian32();  // 0, 0, element type, dimensions
  const std::int64_t dimensions = magic & 0xff;
  if (magic >> 8 != kUnsignedBytes || dimensions < 1 || dimensions > kMaxDimensions) {
    throw std::runtime_error(path.string() + ": not an IDX file of unsigned bytes");
  }
  Idx idx;
  std::int64_t elements = 1;
  for (std::int64_t i = 0; i < dimensions; ++i) {
    idx.shape.push_back(file.ReadBigEndian32());
    elements *= idx.shape.back();
    if (elements > kMaxElements)
      throw std::runtime_error(path.string() + ": has an implausible size; download it again");
  }
  idx.bytes.resize(elements);
  file.Read(idx.bytes.data(), idx.bytes.size());
  return idx;
}

std::filesystem::path DataFolder() {
  const char* folder = std::getenv("ATTUNE_DATA_DIR");
  return folder != nullptr ? folder : "/usr/share/datasets/fashion-mnist";
}

}  // namespace fashion_mnist
