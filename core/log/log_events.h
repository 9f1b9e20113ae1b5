#pragma once

#include <cstdint>
#include <string>

#include "core/base/ids.h"
#include "core/log/event_row.h"

// Events of the log itself.
namespace attune {

// From here on the log has this identity. The first one covers all that came before it. Each later
// one begins after a backup was restored: the events that the backup lacks may be known to
// executors and clients, but are no part of this log.
struct LogIdentified {
  LogIdentity identity;
  // Attempts from here on have larger epochs. No attempt of the lost part had one as large, so an
  // epoch names one attempt only, before and after the restore.
  Epoch last_epoch;
  SweepId last_sweep = {};  // the newest sweep of the part before; its event may be erased
  std::string reason = {};  // why the server believes that a backup was restored; empty: none was

  static constexpr auto kRow = EventRow(
      {"log_identified", Needs::kNothing, kEveryExecutor, Handled(kNoConsumer),
       Ignored(kStream | kTables | kSummary | kCurves | kAudit)},
      kNoSubject, Field("identity", &LogIdentified::identity),
      Field("last_epoch", &LogIdentified::last_epoch),
      Field("last_sweep", &LogIdentified::last_sweep), Sparse("reason", &LogIdentified::reason));
};

// The clock and the time of the log no longer differ by the offset before. The time of the log only
// grows, at the pace of a steady clock, so that no deadline moves. People see that time plus the
// offset, from this event on.
struct ClockAdjusted {
  int64_t offset_us = 0;  // 0 until the first of these events
  std::string reason;

  static constexpr auto kRow =
      EventRow({"clock_adjusted", Needs::kNothing, kNoExecutor, Handled(kTables),
                Ignored(kStream | kSummary | kCurves | kAudit)},
               kNoSubject, Field("offset_us", &ClockAdjusted::offset_us),
               Field("reason", &ClockAdjusted::reason));
};

}  // namespace attune
