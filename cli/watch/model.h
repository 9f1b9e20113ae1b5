#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/client/event_stream.h"
#include "cli/json.h"
#include "core/space/objective.h"
#include "rest/contract.h"

namespace attune::cli {

// The newest known facts of a trial.
struct TrialRow {
  int64_t number = 0;
  std::string state = "pending";
  std::string reason;
  std::string executor;  // of its newest attempt; empty until an event names it
  int64_t step = 0;
  int64_t attempts = 0;
  std::optional<double> last;  // last report of the sweep's metric
  std::optional<double> best;
  Json config = Json::object();
};

// A sweep, read over REST and updated by events. Applying an event that an answer already includes
// is harmless.
class SweepModel {
 public:
  void Reset(const rest::Sweep& sweep, const std::vector<rest::Trial>& trials);
  void Refresh(const rest::Sweep& sweep);  // keeps the trials
  void Apply(const ServerEvent& event);

  const std::string& id() const { return id_; }
  const std::string& name() const { return name_; }
  const std::string& state() const { return state_; }
  const std::string& reason() const { return reason_; }
  const std::string& end_state() const { return end_state_; }  // empty unless the sweep is ending
  // Why no trial runs; empty while one runs, because then the next gang waits for it.
  std::string idle_reason() const { return Count("running") == 0 ? waiting_reason_ : ""; }
  const Objective& objective() const { return objective_; }
  const std::vector<int64_t>& rungs() const { return rungs_; }
  int64_t max_step() const { return max_step_; }
  int64_t max_trials() const { return max_trials_; }  // 0: no limit
  int64_t workers() const { return workers_; }
  std::optional<double> created() const { return created_; }  // seconds since 1970
  const std::map<int64_t, TrialRow>& trials() const { return trials_; }

  bool ended() const;
  int64_t Count(std::string_view state) const;
  int64_t ended_trials() const;
  int64_t CountReached(int64_t rung) const;  // number of trials at this step or later
  const TrialRow* Best() const;              // null before the first report; owned by the model

 private:
  std::string id_;
  std::string name_;
  std::string state_;
  std::string reason_;
  std::string end_state_;
  std::string waiting_reason_;
  Objective objective_;
  std::vector<Constraint> constraints_;
  std::vector<int64_t> rungs_;
  int64_t max_step_ = 0;
  int64_t max_trials_ = 0;
  int64_t workers_ = 1;
  std::optional<double> created_;
  std::map<int64_t, TrialRow> trials_;
};

// Whether a sweep or trial in this state has ended.
bool IsFinal(std::string_view state);

// The number of trials in each state, in the order of the contract.
std::vector<std::pair<std::string, int64_t>> CountsByState(const rest::TrialCounts& counts);
int64_t CountEnded(const rest::TrialCounts& counts);

// nullopt if the metric was not reported.
std::optional<double> FindMetric(const std::map<std::string, rest::Real>& metrics,
                                 const std::string& name);

}  // namespace attune::cli
