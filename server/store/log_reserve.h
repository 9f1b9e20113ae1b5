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
  // `bytes`: the size of the reserve; 0: no reserve.
  LogReserve(const std::string& database, int64_t bytes)
      : log_(database + "-wal"), index_(database + "-shm"), bytes_(bytes) {}

  int64_t bytes() const { return bytes_; }

  // Sets the number of pages of the log file that SQLite uses. Call it after each commit.
  void SetPages(int64_t pages) { pages_ = pages; }

  // Whether the log file contains the reserve and the index covers it. Both files keep their size
  // when SQLite reuses their pages, so this is seldom false.
  bool IsThere() const;

  // Allocates the reserve and, if possible, the same amount again for the next batches. Returns 0
  // or an errno.
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
  int64_t indexed_pages_ = 0;  // pages that the index covered at the last ReadIndex
};

}  // namespace attune::server
