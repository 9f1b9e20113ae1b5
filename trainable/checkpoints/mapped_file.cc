#include "trainable/checkpoints/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "system/sha256.h"
#include "system/unique_fd.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk::trainable {
namespace {

constexpr std::size_t kPieceBytes = 16 << 20;

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& file) {
  const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd.valid() || fstat(fd.get(), &status) != 0) ThrowErrno(file.string());
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;  // an empty file cannot be mapped
  data_ = mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data_ == MAP_FAILED) ThrowErrno(file.string());
  madvise(data_, size_, MADV_SEQUENTIAL);
}

void MappedFile::Release(std::string_view part) const {
  if (part.empty()) return;
  static const std::uintptr_t page = sysconf(_SC_PAGESIZE);
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t first = begin - begin % page;
  madvise(reinterpret_cast<void*>(first), begin + part.size() - first, MADV_DONTNEED);
}

std::string MappedFile::HexSha256() const {
  Sha256 sha;
  for (std::size_t i = 0; i < size_; i += kPieceBytes) {
    const std::string_view piece = bytes().substr(i, kPieceBytes);
    sha.Add(piece);
    Release(piece);
  }
  return sha.Hex();
}

MappedFile::~MappedFile() {
  if (size_ > 0) munmap(data_, size_);
}

}  // namespace attune::inline sdk::trainable
