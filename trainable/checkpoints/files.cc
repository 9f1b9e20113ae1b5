#include "trainable/checkpoints/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <utility>

#include "attune/error.h"

namespace attune::inline sdk::trainable {

NewFile::NewFile(const std::filesystem::path& file)
    : name_(file.string()), fd_(open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) {
  if (fd_.valid()) return;
  if (errno == EEXIST) throw Error(name_ + ": this file of the checkpoint was already written");
  ThrowErrno(name_);
}

void NewFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) ThrowErrno(name_);
    bytes.remove_prefix(written);
  }
}

void WriteFile(const std::filesystem::path& file, std::string_view contents) {
  NewFile(file).Append(contents);
}

std::string ReadFile(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream contents;
  contents << in.rdbuf();
  if (!in) throw Error(file.string() + ": cannot be read");
  return std::move(contents).str();
}

void SyncPath(const std::filesystem::path& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() || fsync(fd.get()) != 0) ThrowErrno(path.string());
}

}  // namespace attune::inline sdk::trainable
