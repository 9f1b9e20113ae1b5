#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/log/event.h"
#include "server/store/sqlite.h"
#include "server/store/thinned/curve_file.h"
#include "server/store/thinned/thinned_curve.h"

namespace attune::server {

// The table of thinned curves, which follows the log. Reads the database on its own read-only
// connection, in short queries, so it never delays the writer. Only one thread may use it at a
// time.
//
// After an error the object must be destroyed; another one continues from what the file has. After
// kCorrupt, delete the file first (RemoveCurveFile), unless the database is damaged.
class CurveTable {
 public:
  // Opens the file of the database, or makes an empty one if it is missing, damaged, of another
  // format, of another log or ahead of the log. `identity` is the identity of the log, and `last`
  // its last event. REQUIRES: the database exists.
  static Result<std::unique_ptr<CurveTable>> Open(const std::string& database, LogIdentity identity,
                                                  EventSeq last);

  // Reads at most `limit` further events up to `last`, into memory. Returns whether more are left.
  Result<bool> Read(EventSeq last, uint64_t limit);

  // Writes the changes in one transaction. `built`: the last Read has reached the end of the log.
  Status Write(bool built);

  // The last event that was read.
  EventSeq seq() const { return followed_.seq; }
  // The newest known identity of the log.
  LogIdentity identity() const { return followed_.identity; }
  // Whether the file has ever contained the whole log.
  bool built() const { return followed_.built; }

  // The memory of the curves, roughly.
  size_t bytes() const { return bytes_; }
  // Removes the curves from memory that have not changed for longest, until `most` bytes are left.
  // REQUIRES: nothing was read since the last Write.
  void Forget(size_t most);

  // Whether the path still leads to the file that is open.
  bool IsInPlace() const;

 private:
  struct MetricCurves {
    ThinnedCurve reported;
    ThinnedCurve logged;
    bool reported_changed = false;
    bool logged_changed = false;
  };
  struct Trial {
    EventSeq changed;
    uint32_t attempt = 0;  // the newest attempt that resumed; 0: none
    int64_t resumed_from = 0;
    bool attempt_changed = false;
    std::map<std::string, MetricCurves, std::less<>> metrics;
  };

  CurveTable(std::string path, std::unique_ptr<sqlite::Connection> log,
             std::unique_ptr<sqlite::Connection> file, const FollowedLog& followed,
             EventSeq opened_at);

  Status ReadRow(const sqlite::Rows& rows);
  Status ReadMeasured(const sqlite::Rows& rows, bool is_report);
  void Add(Trial& trial, std::string_view metric, bool is_report, uint32_t attempt, double step,
           double value);
  Result<Trial*> ChangedTrial(const TrialId& id, EventSeq seq);
  Status Load(const TrialId& id, Trial& trial);
  void Delete(SweepId sweep);
  static size_t BytesOf(const Trial& trial);
  static void WriteTrial(sqlite::Transaction& transaction, const TrialId& id, Trial& trial);

  const std::string path_;
  const std::unique_ptr<sqlite::Connection> log_;
  const std::unique_ptr<sqlite::Connection> file_;
  const uint64_t inode_;
  const EventSeq opened_at_;  // the last event of the log when the table was opened
  FollowedLog followed_;
  std::map<TrialId, Trial> trials_;
  std::set<TrialId> changed_;  // trials with changes that are not written yet
  std::set<SweepId> deleted_;  // sweeps whose rows must be deleted
  size_t bytes_ = 0;
  std::vector<std::pair<std::string_view, double>> measured_;  // of one event; reused
};

}  // namespace attune::server
