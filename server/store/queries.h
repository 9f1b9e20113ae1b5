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
Result<int64_t> LastSeqOf(sqlite::Connection& connection);
Status CheckSweep(sqlite::Connection& connection, SweepId id);  // kNotFound

// Reads sweeps from `first` to `last`, newest first, with the counts of their trials.
Result<std::vector<SweepRow>> ReadSweeps(sqlite::Connection& connection, SweepId first,
                                         SweepId last, int limit);

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
Result<std::vector<TrialResult>> ReadResults(sqlite::Connection& connection, SweepId sweep);

}  // namespace attune::server
