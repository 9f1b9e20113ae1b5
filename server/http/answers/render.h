#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/analysis/cost.h"
#include "core/analysis/importance.h"
#include "core/brain/brain.h"
#include "core/log/sweep_spec.h"
#include "rest/contract.h"
#include "server/http/backend/backend.h"
#include "server/store/reader.h"

// Converts rows of the store to structs of the REST contract.
namespace attune::server {

// Members of a sweep that only the brain knows.
struct LiveSweep {
  std::string waiting_reason;
  std::string end_state;
  std::optional<rest::ScheduledDeletion> deletion;
};

// The scheduled deletion of the sweep; nullopt if there is none. `now` is the time that people see.
std::optional<rest::ScheduledDeletion> RenderDeletion(const State& state, SweepId sweep, Time now);

rest::Sweep RenderSweep(const SweepRow& row, const std::vector<Step>& rungs, const LiveSweep& live);
rest::SweepDetail RenderDetail(const SweepRow& row, const std::vector<Step>& rungs,
                               const LiveSweep& live, Reader::SweepFile file);
rest::Limits RenderLimits(const StopPolicy& stop);
std::vector<int64_t> RenderSteps(const std::vector<Step>& steps);

rest::Trial RenderTrial(const TrialRow& row, const std::string& waiting_reason);
rest::TrialDetail RenderDetail(const TrialDetail& detail, const SweepSpec& spec,
                               const std::string& waiting_reason);
rest::Explanation RenderExplanation(const TrialRow& trial,
                                    const std::optional<Explanation>& explanation);
rest::LoggedPoint RenderLogged(const LoggedRow& row);
// Leaves out records that are not as the contract describes them.
rest::AttemptEnvironment RenderEnvironment(const AttemptEnvironment& environment);

// The copy of a checkpoint that outlives its executor.
struct StoredCopy {
  bool exists = false;
  std::string url;  // in an object store; empty: it is not in one
};
rest::SweepCheckpoint RenderCheckpoint(SweepId sweep, const KeptRow& row, const StoredCopy& copy);
rest::CheckpointDetail RenderCheckpointDetail(SweepId sweep, const KeptRow& row,
                                              const StoredCopy& copy);

rest::Importance RenderImportance(const Objective& metric, Step step,
                                  const Importances& importances);
rest::Failures RenderFailures(const Failures& failures);
rest::Branch RenderBranch(const Branch& branch);
rest::UserAction RenderUserAction(const UserAction& action);
// Writes rest::Curves directly as text, because curves are long.
std::string CurvesToText(const std::string& metric, const Curves& curves,
                         const std::string& next_page_token);

rest::SweepCost RenderCost(SweepId sweep, const SweepCost& cost,
                           const std::optional<GpuHourPrice>& price, Time now);

rest::HeldAttempt RenderHeld(const HeldRow& row);
// `sweep` is the sweep of the gang, and `place` its place in the queue.
rest::QueuedGang RenderQueued(const QueuedGang& gang, const Sweep& sweep, size_t place, Time now);
rest::Demand RenderDemand(const Demand& demand);
rest::Executor RenderExecutor(const Backend::ExecutorStatus& status);

rest::TrialCounts RenderCounts(const std::map<std::string, int64_t, std::less<>>& counts);

}  // namespace attune::server
