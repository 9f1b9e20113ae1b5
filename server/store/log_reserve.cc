#include "server/store/log_reserve.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "system/system_error.h"
#include "system/unique_fd.h"

namespace attune::server {
namespace {

// Sizes of the log file (https://sqlite.org/fileformat2.html#walformat) and of its index
// (https://sqlite.org/walformat.html#the_wal_index_file_format).
constexpr int64_t kHeaderBytes = 32;
constexpr int64_t kFrameBytes = 4096 + 24;
constexpr int64_t kIndexBlockBytes = 32768;
constexpr int64_t kPagesPerBlock = 4096;
constexpr int64_t kIndexHeaderPages = 34;  // the header takes the space of 34 pages

// The size of a file; 0 if it does not exist.
int64_t SizeOf(const std::string& path) {
  struct stat file {};
  return stat(path.c_str(), &file) == 0 ? file.st_size : 0;
}

}  // namespace

int64_t LogReserve::UsedBytes() const { return kHeaderBytes + pages_ * kFrameBytes; }

bool LogReserve::IsIndexed() const {
  return pages_ + (bytes_ + kFrameBytes - 1) / kFrameBytes <= indexed_pages_;
}

bool LogReserve::IsThere() const {
  return bytes_ == 0 || (IsIndexed() && SizeOf(log_) - UsedBytes() >= bytes_);
}

int LogReserve::Allocate() const {
  const UniqueFd log(::open(log_.c_str(), O_WRONLY | O_CLOEXEC));
  if (!log) return errno;
  const int failed = ::posix_fallocate(log.get(), 0, UsedBytes() + 2 * bytes_);
  return IsStorageFull(failed) ? ::posix_fallocate(log.get(), 0, UsedBytes() + bytes_) : failed;
}

// Uses only the size of the index: closing the file in this process would release SQLite's locks on
// it.
bool LogReserve::ReadIndex() {
  indexed_pages_ = SizeOf(index_) / kIndexBlockBytes * kPagesPerBlock - kIndexHeaderPages;
  return IsIndexed();
}

}  // namespace attune::server
