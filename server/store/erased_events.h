#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/base/ids.h"
#include "server/store/sqlite.h"

namespace attune::server {

// The number of consecutive events that one row of the table `erased` describes.
inline constexpr uint64_t kErasedRange = 4096;

// The first seq of the range that contains `seq`.
inline uint64_t RangeOf(EventSeq seq) { return (seq.value - 1) / kErasedRange * kErasedRange + 1; }

// A bit for each event of one range, as in the column `bits`: 1 means erased.
class ErasedBits {
 public:
  ErasedBits() : bytes_(kErasedRange / 8, '\0') {}
  explicit ErasedBits(std::string_view bytes) : bytes_(bytes) { bytes_.resize(kErasedRange / 8); }

  void Set(EventSeq seq);
  bool Has(EventSeq seq) const;
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// The events that were erased with their sweeps. Only these may be missing in the log. Describes
// the snapshot of the database that the connection reads.
class ErasedEvents {
 public:
  // The connection must outlive the object. REQUIRES: the connection is in a transaction or has an
  // active query.
  static Result<ErasedEvents> Read(sqlite::Connection& connection);

  // Whether an event counts as erased even if its row still exists.
  bool Includes(std::optional<SweepId> sweep, EventSeq seq) const;

  // Returns kCorrupt unless every event between the two was erased. REQUIRES: before < next.
  Status CheckGap(EventSeq before, EventSeq next);

 private:
  struct Erasure {
    SweepId sweep;
    EventSeq last;  // the last event to erase
  };

  explicit ErasedEvents(sqlite::Connection& connection) : connection_(&connection) {}
  Status Load(uint64_t range);

  sqlite::Connection* connection_;
  std::vector<Erasure> begun_;
  uint64_t range_ = 0;  // the range that was loaded last; 0: none
  ErasedBits bits_;     // of that range
};

}  // namespace attune::server
