#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/client/event_stream.h"
#include "cli/json.h"
#include "core/space/objective.h"

namespace attune::cli {

// What is known of one trial.
struct TrialRow {
  int64_t number = 0;
  std::string state = "pending";
  std::string reason;
  std::string executor;  // of its last attempt, once an event has told
  int64_t step = 0;
  int64_t attempts = 0;
  std::optional<double> last;  // the sweep's metric, last reported
  std::optional<double> best;
  Json config = Json::object();
};

// A sweep as it is seen from here: read over REST, kept up to date by events. Events that REST has
// already included may be applied again.
class SweepModel {
 public:
  // REQUIRES: `sweep` is a SWEEP of docs/rest-api.md, and `trials` an array of its TRIALs.
  void Reset(const Json& sweep, const Json& trials);
  void Refresh(const Json& sweep);  // the sweep only
  void Apply(const ServerEvent& event);

  const std::string& id() const { return id_; }
  const std::string& name() const { return name_; }
  const std::string& state() const { return state_; }
  const std::string& reason() const { return reason_; }
  const std::string& stopping() const { return stopping_; }  // as what it will have ended
  // What the next gang waits for while nothing runs at all; empty while something does, for then it
  // waits for that.
  std::string stuck() const { return Count("running") == 0 ? waiting_ : ""; }
  const Objective& objective() const { return objective_; }
  const std::vector<int64_t>& rungs() const { return rungs_; }
  int64_t max_step() const { return max_step_; }
  int64_t max_trials() const { return max_trials_; }  // 0: not known beforehand
  int64_t workers() const { return workers_; }
  std::optional<double> created() const { return created_; }  // seconds since 1970
  const std::map<int64_t, TrialRow>& trials() const { return trials_; }

  bool ended() const;  // nothing will happen to it any more
  int64_t Count(std::string_view state) const;
  int64_t ended_trials() const;
  int64_t Reached(int64_t rung) const;  // trials that have reported at this step or a later one
  const TrialRow* Best() const;         // null before the first report; owned by the model

 private:
  std::string id_;
  std::string name_;
  std::string state_;
  std::string reason_;
  std::string stopping_;
  std::string waiting_;
  Objective objective_;
  std::vector<Constraint> constraints_;
  std::vector<int64_t> rungs_;
  int64_t max_step_ = 0;
  int64_t max_trials_ = 0;
  int64_t workers_ = 1;
  std::optional<double> created_;
  std::map<int64_t, TrialRow> trials_;
};

// Whether a sweep or a trial in this state stays in it.
bool IsFinal(std::string_view state);

}  // namespace attune::cli
