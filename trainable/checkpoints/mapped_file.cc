#include "trainable/checkpoints/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "trainable/base/sockets.h"

namespace attune::trainable {

MappedFile::MappedFile(const std::filesystem::path& file) {
  const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd.valid() || fstat(fd.get(), &status) != 0) ThrowErrno(file.string());
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;  // there is no mapping of nothing
  data_ = mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data_ == MAP_FAILED) ThrowErrno(file.string());
  madvise(data_, size_, MADV_SEQUENTIAL);
}

MappedFile::~MappedFile() {
  if (size_ > 0) munmap(data_, size_);
}

}  // namespace attune::trainable
