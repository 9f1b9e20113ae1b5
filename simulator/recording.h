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

// What the trials of a sweep have reported and what that cost, read off its events.
class Recording {
 public:
  struct Point {
    Metrics metrics;
    Seconds seconds{0};  // trained since the point before
  };
  struct Trial {
    Config config;                // that it began with
    std::map<Step, Point> curve;  // under that configuration; the newest report of a step
    // It was given another's checkpoint or another configuration: what it reported after that is
    // not of this curve.
    bool cloned = false;
    TrialState state = TrialState::kPending;
    std::optional<Step> ended_at;  // by itself, whether it had completed or failed
    bool told = false;             // to stop, by the newest verdict
  };

  // `spec`: the sweep's, as it is now; of the reports it keeps what that asks for and `metrics`.
  explicit Recording(SweepSpec spec, const std::vector<std::string>& metrics = {});

  // REQUIRES: the events of one sweep, each once, in order, from the first on.
  void Observe(const Event& event);

  const SweepSpec& spec() const { return spec_; }
  const Summary& summary() const { return tally_.summary(); }
  const std::vector<Trial>& trials() const { return trials_; }  // by number
  int64_t reports() const { return reports_; }

  // That an attempt occupied its slots beside its steps, on average of those that came to an end.
  Seconds Start() const;

 private:
  struct Attempt {
    Time assigned;
    Time heard;  // of its newest report, or when it was assigned
    Step at{0};
    Seconds seconds{0};
  };

  void On(const TrialCreated& fact, Time now);
  void On(const TrialReopened& fact, Time now);
  void On(const AttemptAssigned& fact, Time now);
  void On(const TrialReported& fact, Time now);
  void On(const TrialDecided& fact, Time now);
  void On(const TrialPromoted& fact, Time now);
  void On(const AttemptEnded& fact, Time now);
  void On(const TrialEnded& fact, Time now);

  void Add(Trial& trial, const Report& report, Seconds took, Step from);
  Trial& At(const TrialId& id) { return trials_.at(id.number.value); }

  SweepSpec spec_;
  std::set<std::string> kept_;  // metrics
  Tally tally_;
  std::vector<Trial> trials_;
  std::map<TrialNumber, Attempt> attempts_;  // that run
  int64_t reports_ = 0;
  int64_t ended_ = 0;    // attempts
  double beside_s_ = 0;  // of these, that they occupied their slots without training
};

}  // namespace attune::simulate
