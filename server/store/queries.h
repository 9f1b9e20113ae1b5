#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/store/reader.h"

// The single queries of Reader, on a connection that sees one snapshot. They throw Json::exception
// if a column of JSON is damaged.
namespace attune::server {

Error NoSweep(SweepId id);
Error Cancelled();  // the client has gone
Result<int64_t> LastSeqOf(sqlite::Connection& connection);
Status CheckSweep(sqlite::Connection& connection, SweepId id);  // kNotFound

// Reads sweeps from `first` to `last`, newest first, with the counts of their trials.
Result<std::vector<SweepRow>> ReadSweeps(sqlite::Connection& connection, SweepId first,
                                         SweepId last, int limit);

// Trials by number, from `first` on.
Result<std::vector<TrialRow>> ReadTrials(sqlite::Connection& connection, SweepId sweep,
                                         TrialNumber first, int limit);
Result<TrialRow> ReadTrial(sqlite::Connection& connection, const TrialId& id);  // kNotFound
Status ReadHistory(sqlite::Connection& connection, const TrialId& id,
                   std::vector<ReportRow>& history);
// Reads attempts from number `first` on, in order. A limit of -1 means no limit.
Status ReadAttempts(sqlite::Connection& connection, const TrialId& id, uint32_t first,
                    int64_t limit, std::vector<AttemptRow>& attempts);
Status ReadDecisions(sqlite::Connection& connection, const TrialId& id,
                     std::vector<DecisionRow>& decisions);
Status ReadCheckpoints(sqlite::Connection& connection, const TrialId& id,
                       std::vector<CheckpointRow>& checkpoints);
Result<KeptRow> ReadCheckpoint(sqlite::Connection& connection, const CheckpointId& id);
Result<std::optional<CheckpointId>> ReadPinned(sqlite::Connection& connection, SweepId sweep);
Result<KeptPage> ReadKept(sqlite::Connection& connection, SweepId sweep, TrialNumber first,
                          int trials);
Result<std::optional<Explanation>> ReadExplanation(sqlite::Connection& connection,
                                                   const TrialId& id, std::optional<Step> step);
Result<std::vector<Branch>> ReadBranches(sqlite::Connection& connection, SweepId sweep,
                                         EventSeq after, int limit);

// See Reader::Activity.
Result<std::vector<UserAction>> ReadActivity(sqlite::Connection& connection, SweepId sweep,
                                             std::optional<EventSeq> before, int limit);
Result<std::vector<TrialResult>> ReadResults(sqlite::Connection& connection, SweepId sweep);

// A trial whose result at a common step is wanted; it has no metrics yet.
struct TrialToCompare {
  TrialResult result;
  bool is_over = false;          // it does not train any more, or is paused
  bool counts_as_worst = false;  // if it has not reached the common step
};

// The trials that have reported or ended, by number.
Result<std::vector<TrialToCompare>> ReadTrialsToCompare(sqlite::Connection& connection,
                                                        SweepId sweep);

}  // namespace attune::server
