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

// The number of places of the log that a row of the table `erased` stands for.
inline constexpr uint64_t kErasedRange = 4096;

// The first place of the range that a place lies in.
inline uint64_t RangeOf(EventSeq seq) { return (seq.value - 1) / kErasedRange * kErasedRange + 1; }

// The places of one range whose events were erased, as the column `bits` has them.
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

// The events that were erased from the log with their sweeps: the only ones that it may lack.
// Describes the snapshot of the database that the connection reads.
class ErasedEvents {
 public:
  // The connection outlives the object. REQUIRES: it is in a transaction, or a query is under way.
  static Result<ErasedEvents> Of(sqlite::Connection& connection);

  // Whether an event counts as erased although its row is still there.
  bool Includes(std::optional<SweepId> sweep, EventSeq seq) const;

  // kCorrupt unless every event between the two was erased. REQUIRES: before < next.
  Status CheckGap(EventSeq before, EventSeq next);

 private:
  struct Erasure {
    SweepId sweep;
    EventSeq last;  // of its events
  };

  explicit ErasedEvents(sqlite::Connection& connection) : connection_(&connection) {}
  Status Load(uint64_t range);

  sqlite::Connection* connection_;
  std::vector<Erasure> begun_;
  uint64_t range_ = 0;  // the one that was loaded last; 0: none
  ErasedBits bits_;     // of that range
};

}  // namespace attune::server
