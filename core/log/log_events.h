#pragma once

#include <cstdint>
#include <string>

#include "core/base/ids.h"
#include "core/log/event_row.h"

// Events of the log itself.
namespace attune {

// The log has this identity from now on. The first identity also covers the events before it. Each
// later one begins after a backup was restored. Executors and clients may know events that the
// backup lacks; those are not part of this log.
struct LogIdentified {
  LogIdentity identity;
  // Later attempts have larger epochs. The lost part of the log had no epoch that large, so an
  // epoch identifies one attempt, before and after the restore.
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

// The offset between the clock and the time of the log has changed. The time of the log only grows,
// at the pace of a steady clock, so that no deadline moves. From this event on, people see that
// time plus the new offset.
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
