#pragma once

#include <functional>

#include "base/result.h"
#include "core/base/ids.h"
#include "server/store/sqlite.h"

// Erases deleted sweeps: their rows in the tables for people and their events.
//
// 1. The transaction that appends SweepDeleted adds an erasure. The events still count.
// 2. The transaction that saves the next snapshot begins it and removes older snapshots, which need
//    the events. From then on they count as erased (erased_events.h).
// 3. Slices delete the rows, each in a transaction of its own.
//
// A process may die between any two of these. Errors stay in the transaction.
namespace attune::server {

struct Erasures {
  bool waiting = false;  // for a snapshot
  bool begun = false;
};
Result<Erasures> ReadErasures(sqlite::Connection& connection);

// The sweep was deleted by the event of this seq.
void AddErasure(sqlite::Transaction& transaction, SweepId sweep, EventSeq deleted);

// Begins the erasures of sweeps that were deleted up to `seq`, and removes the snapshots from
// before.
void BeginErasures(sqlite::Transaction& transaction, EventSeq seq);

// Erases rows in small steps, at least one, until `is_over` or everything is erased. Returns
// whether something may be left.
bool EraseSome(sqlite::Transaction& transaction, const std::function<bool()>& is_over);

}  // namespace attune::server
