#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/boxed.h"
#include "core/base/ids.h"
#include "core/log/event_row.h"
#include "core/log/event_values.h"

// Events of executors and of slots reserved on them.
namespace attune {

// Other sweeps may not use these executors until the sweep's next gang fits there.
struct SlotsReserved {
  SweepId sweep;
  std::string executor;
  std::string reason;
  std::vector<GangPart> parts;  // if the gang needs several executors; `executor` is one of them

  static constexpr auto kRow =
      EventRow({"slots_reserved", Needs::kSweep, kNoExecutor, Handled(kTables),
                Ignored(kStream | kSummary | kCurves | kAudit)},
               &SlotsReserved::sweep, Field("executor", &SlotsReserved::executor),
               Field("reason", &SlotsReserved::reason), Sparse("parts", &SlotsReserved::parts));
};

// The reservation ended.
struct ReservationReleased {
  SweepId sweep;
  std::string reason;

  static constexpr auto kRow =
      EventRow({"reservation_released", Needs::kNothing, kNoExecutor, Handled(kTables),
                Ignored(kStream | kSummary | kCurves | kAudit)},
               &ReservationReleased::sweep, Field("reason", &ReservationReleased::reason));
};

// An executor recorded with what the trials of a sweep run there: versions of packages, the git
// commit of the program, the GPU driver. It holds until the next record of the executor. That of a
// short sweep may come after the sweep's end.
struct EnvironmentRecorded {
  SweepId sweep;
  std::string executor;
  std::string record;  // JSON

  static constexpr auto kRow =
      EventRow({"environment_recorded", Needs::kCreatedSweep, kNoExecutor, Handled(kTables),
                Ignored(kStream | kSummary | kCurves | kAudit)},
               &EnvironmentRecorded::sweep, Field("executor", &EnvironmentRecorded::executor),
               Field("record", &EnvironmentRecorded::record));
};

// An executor connected, perhaps again.
struct ExecutorJoined {
  std::string name;
  std::string instance;
  Incarnation incarnation;
  std::string address;
  Resources resources;
  bool spans = false;  // gangs can have ranks here and elsewhere
  // The identity of its data folder. Executors with the same one read and write the same files.
  // Empty: it is unknown, and every checkpoint counts as readable everywhere.
  std::string folder;
  Labels labels;
  Seconds time_left{0};               // from this event until it has to end; 0: it has no end
  std::vector<SweepId> deleted = {};  // deleted sweeps that have files in its data folder

  static constexpr auto kRow = EventRow(
      {"executor_joined", Needs::kNothing, kNoExecutor, Handled(kStream | kTables),
       Ignored(kSummary | kCurves | kAudit)},
      &ExecutorJoined::name, Field("instance", &ExecutorJoined::instance),
      Field("incarnation", &ExecutorJoined::incarnation),
      Field("address", &ExecutorJoined::address), Inline(&ExecutorJoined::resources),
      Sparse("spans", &ExecutorJoined::spans), Sparse("folder", &ExecutorJoined::folder),
      Sparse("labels", &ExecutorJoined::labels), Sparse("time_left", &ExecutorJoined::time_left),
      Sparse("deleted", &ExecutorJoined::deleted));
};

// An executor stopped answering.
struct ExecutorLost {
  std::string name;
  Incarnation incarnation;
  std::string reason;

  static constexpr auto kRow =
      EventRow({"executor_lost", Needs::kExecutor, kNoExecutor, Handled(kStream | kTables),
                Ignored(kSummary | kCurves | kAudit)},
               &ExecutorLost::name, Field("incarnation", &ExecutorLost::incarnation),
               Field("reason", &ExecutorLost::reason));
};

// Nothing more starts on the executor until a user resumes it.
struct ExecutorDrained {
  std::string name;
  std::string reason;  // given by the user; may be empty
  bool now = false;    // running trials move to other executors

  static constexpr auto kRow =
      EventRow({"executor_drained", Needs::kExecutor, kNoExecutor, Handled(kStream | kTables),
                Ignored(kSummary | kCurves | kAudit)},
               &ExecutorDrained::name, Sparse("reason", &ExecutorDrained::reason),
               Sparse("now", &ExecutorDrained::now));
};

// A user resumed an executor that was drained, quarantined or excluded by a sweep.
struct ExecutorResumed {
  std::string name;

  static constexpr auto kRow =
      EventRow({"executor_resumed", Needs::kExecutor, kNoExecutor, Handled(kStream | kTables),
                Ignored(kSummary | kCurves | kAudit)},
               &ExecutorResumed::name);
};

// An executor reported a problem, so that nothing more starts there, or that it is well again.
struct ExecutorHealth {
  std::string name;
  std::string problem;  // such as "its disk has 0.2 GiB left"; empty: healthy

  static constexpr auto kRow =
      EventRow({"executor_health", Needs::kExecutor, kNoExecutor, Handled(kStream | kTables),
                Ignored(kSummary | kCurves | kAudit)},
               &ExecutorHealth::name, Field("problem", &ExecutorHealth::problem));
};

// Gangs kept failing on the executor, so nothing more starts there for a while.
struct ExecutorQuarantined {
  std::string name;
  std::string reason;
  Time until;

  static constexpr auto kRow =
      EventRow({"executor_quarantined", Needs::kExecutor, kNoExecutor, Handled(kStream | kTables),
                Ignored(kSummary | kCurves | kAudit)},
               &ExecutorQuarantined::name, Field("reason", &ExecutorQuarantined::reason),
               Field("until_us", &ExecutorQuarantined::until));
};

// A quarantine ended: the executor may run gangs again.
struct ExecutorQuarantineEnded {
  std::string name;
  std::string reason;

  static constexpr auto kRow =
      EventRow({"executor_quarantine_ended", Needs::kExecutor, kNoExecutor,
                Handled(kStream | kTables), Ignored(kSummary | kCurves | kAudit)},
               &ExecutorQuarantineEnded::name, Field("reason", &ExecutorQuarantineEnded::reason));
};

// The sweep's failure.on_log excludes the executor until it restarts.
struct ExecutorExcluded {
  SweepId sweep;
  std::string name;
  std::string reason;

  static constexpr auto kRow =
      EventRow({"executor_excluded", Needs::kSweep, kNoExecutor, Handled(kStream | kAudit),
                Ignored(kTables | kSummary | kCurves)},
               &ExecutorExcluded::sweep, Field("name", &ExecutorExcluded::name),
               Field("reason", &ExecutorExcluded::reason));
};

// A lost executor is removed, together with the deletions it still owed.
struct ExecutorForgotten {
  std::string name;
  std::string reason;

  static constexpr auto kRow =
      EventRow({"executor_forgotten", Needs::kExecutor, kNoExecutor, Handled(kAudit),
                Ignored(kStream | kTables | kSummary | kCurves)},
               &ExecutorForgotten::name, Field("reason", &ExecutorForgotten::reason));
};

}  // namespace attune
