#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/result.h"
#include "system/numbers_file.h"

namespace attune::server {

// `DATA-DIR/log-mark` records the newest event of this data folder's log. It stays when the
// database is replaced by an older one. The mark may be some events behind the log but is never
// ahead: the database is synced first, and the mark is written at most ten times a second.
class LogMarkFile {
 public:
  struct Mark {
    uint64_t identity = 0;  // the log's identity; 0: the database was replaced on purpose
    uint64_t seq = 0;       // its newest event
  };

  explicit LogMarkFile(const std::filesystem::path& data_dir)
      : file_(data_dir / "log-mark", 2, 1) {}

  std::optional<Mark> Read() const {
    const auto numbers = file_.Read();
    return numbers ? std::optional(Mark{numbers->at(0), numbers->at(1)}) : std::nullopt;
  }
  void Write(const Mark& mark) { file_.Write({mark.identity, mark.seq}); }

  // Makes the next server treat the log as a restored one, whatever it contains. Durable when it
  // returns.
  Status WriteReplaced() const { return file_.WriteDurably({0, 0}); }

 private:
  NumbersFile file_;
};

}  // namespace attune::server
