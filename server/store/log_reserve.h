#pragma once

#include <cstdint>
#include <string>

namespace attune::server {

// Space at the end of SQLite's log file (DATABASE-wal) that is allocated but not used yet, so that
// kills and ends can be stored when the disk is full.
//
// SQLite also keeps an index of the log file (DATABASE-shm). It only grows while SQLite writes, so
// the index must cover the reserve before the disk is full.
class LogReserve {
 public:
  // `bytes`: the size of the reserve; 0: there is none.
  LogReserve(const std::string& database, int64_t bytes)
      : log_(database + "-wal"), index_(database + "-shm"), bytes_(bytes) {}

  int64_t bytes() const { return bytes_; }

  // Notes how many pages of the log file SQLite uses, after a commit.
  void SetPages(int64_t pages) { pages_ = pages; }

  // Whether the log file has the reserve and the index covers it. Both files keep their size when
  // SQLite uses their pages again, so this is seldom false.
  bool IsThere() const;

  // Allocates the reserve and as much again for the next batches. Returns 0 or an errno.
  int Allocate() const;

  // Reads the size of the index. Returns whether it covers the reserve.
  bool ReadIndex();

 private:
  int64_t UsedBytes() const;
  bool IsIndexed() const;

  std::string log_;
  std::string index_;
  int64_t bytes_;
  int64_t pages_ = 0;
  int64_t indexed_pages_ = 0;  // that the index covered at the last ReadIndex
};

}  // namespace attune::server
