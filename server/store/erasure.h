#pragma once

#include <functional>

#include "base/result.h"
#include "core/base/ids.h"
#include "server/store/sqlite.h"

// Erases deleted sweeps: their rows in the tables for people and their events.
//
// 1. The transaction that appends SweepDeleted adds an erasure. The events still count.
// 2. The transaction that saves the next snapshot begins the erasure. It removes older snapshots,
// because they need the events. From then on the events count as erased (erased_events.h).
// 3. Slices delete the rows, each in a separate transaction.
//
// The process may die between any two steps. Errors stay in the transaction.
namespace attune::server {

struct Erasures {
  bool waiting = false;  // some erasures wait for a snapshot
  bool begun = false;
};
Result<Erasures> ReadErasures(sqlite::Connection& connection);

// Adds the erasure of a sweep. `deleted` is its SweepDeleted event.
void AddErasure(sqlite::Transaction& transaction, SweepId sweep, EventSeq deleted);

// Begins the erasures of sweeps whose SweepDeleted event is at most `seq`, and removes older
// snapshots.
void BeginErasures(sqlite::Transaction& transaction, EventSeq seq);

// Erases rows in small steps, at least one, until `is_over` returns true or nothing is left.
// Returns whether something may be left.
bool EraseSome(sqlite::Transaction& transaction, const std::function<bool()>& is_over);

}  // namespace attune::server
