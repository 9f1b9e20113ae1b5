#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/log/event.h"
#include "simulator/tally.h"

namespace attune::simulate {

// The reports of a sweep's trials and the time they took, collected from the events of the sweep.
class Recording {
 public:
  struct Point {
    Metrics metrics;
    Seconds seconds{0};  // training time since the previous point
  };
  struct Trial {
    Config config;                // the initial one
    std::map<Step, Point> curve;  // with that configuration; the newest report of each step
    // The trial got another trial's checkpoint or a new configuration. Its later reports are not
    // part of the curve.
    bool cloned = false;
    TrialState state = TrialState::kPending;
    std::optional<Step> ended_at;  // without an order to stop; completed or failed
    bool told_to_stop = false;     // by the newest verdict
  };

  // `spec` is the sweep's current one. The recording keeps the metrics that `spec` needs and
  // `metrics`; it drops all others.
  explicit Recording(SweepSpec spec, const std::vector<std::string>& metrics = {});

  // REQUIRES: all events of one sweep, each once, in order, starting with the first.
  void Observe(const Event& event);

  const SweepSpec& spec() const { return spec_; }
  const Summary& summary() const { return tally_.summary(); }
  const std::vector<Trial>& trials() const { return trials_; }  // by number
  int64_t reports() const { return reports_; }

  // The average time that an ended attempt occupied its slots without training.
  Seconds StartupTime() const;

 private:
  struct Attempt {
    Time assigned;
    Time last_report;  // the time of assignment if there is no report
    Step last_step{0};
    Seconds seconds{0};
  };

  void Handle(const TrialCreated& fact, Time now);
  void Handle(const TrialReopened& fact, Time now);
  void Handle(const AttemptAssigned& fact, Time now);
  void Handle(const TrialReported& fact, Time now);
  void Handle(const TrialDecided& fact, Time now);
  void Handle(const TrialPromoted& fact, Time now);
  void Handle(const AttemptEnded& fact, Time now);
  void Handle(const TrialEnded& fact, Time now);

  void AddPoint(Trial& trial, const Report& report, Seconds took, Step from);
  Trial& TrialOf(const TrialId& id) { return trials_.at(id.number.value); }

  SweepSpec spec_;
  std::set<std::string> kept_metrics_;
  Tally tally_;
  std::vector<Trial> trials_;
  std::map<TrialNumber, Attempt> attempts_;  // the running ones
  int64_t reports_ = 0;
  int64_t ended_attempts_ = 0;
  double startup_s_ = 0;  // time that ended attempts occupied their slots without training
};

}  // namespace attune::simulate
