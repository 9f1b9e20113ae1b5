#include "server/store/erased_events.h"

#include <algorithm>

#include "base/result.h"

namespace attune::server {

void ErasedBits::Set(EventSeq seq) {
  const uint64_t place = seq.value - RangeOf(seq);
  bytes_[place / 8] = static_cast<char>(bytes_[place / 8] | 1 << place % 8);
}

bool ErasedBits::Has(EventSeq seq) const {
  const uint64_t place = seq.value - RangeOf(seq);
  return (bytes_[place / 8] >> place % 8 & 1) != 0;
}

Result<ErasedEvents> ErasedEvents::Read(sqlite::Connection& connection) {
  ErasedEvents erased(connection);
  sqlite::Rows rows = connection.Query("SELECT sweep, last FROM erasures WHERE begun");
  while (rows.Next())
    erased.begun_.push_back({SweepId(static_cast<uint64_t>(rows.Integer(0))),
                             EventSeq(static_cast<uint64_t>(rows.Integer(1)))});
  if (!rows.status().ok()) return rows.status().error();
  return erased;
}

bool ErasedEvents::Includes(std::optional<SweepId> sweep, EventSeq seq) const {
  return std::ranges::any_of(begun_, [&](const Erasure& erasure) {
    return sweep == erasure.sweep && seq <= erasure.last;
  });
}

Status ErasedEvents::CheckGap(EventSeq before, EventSeq next) {
  for (EventSeq missing(before.value + 1); missing < next; ++missing.value) {
    if (Status loaded = Load(RangeOf(missing)); !loaded.ok()) return loaded;
    if (bits_.Has(missing)) continue;
    return Error{ErrorCode::kCorrupt,
                 "the log lacks event " + std::to_string(missing.value) +
                     ", which was not erased; restore the database from a backup"};
  }
  return {};
}

Status ErasedEvents::Load(uint64_t range) {
  if (range == range_) return {};
  sqlite::Rows rows = connection_->Query("SELECT bits FROM erased WHERE first = ?", range);
  bits_ = rows.Next() ? ErasedBits(rows.Bytes(0)) : ErasedBits();
  if (!rows.status().ok()) return rows.status();
  range_ = range;
  return {};
}

}  // namespace attune::server
