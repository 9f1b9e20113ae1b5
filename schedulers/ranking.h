#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/log/archive.h"

namespace attune::schedulers {

// Decides how the trials at a rung are ranked, and how far trials may climb at the moment. The base
// class ranks trials by the values that they reported and lets them climb the whole ladder.
//
// Costs are values of which small is better. A value that is not finite is the worst.
class Ranking {
 public:
  // A report, and the rung at which it is recorded, if any.
  struct Arrival {
    TrialNumber trial;
    Step step;
    double cost = 0;
    std::optional<size_t> rung = {};
    double best_cost = 0;  // of the trial up to this report
  };
  struct Score {
    double cost = 0;
    std::optional<double> spread = {};  // of a forecast
  };

  virtual ~Ranking() = default;

  // Called for every report, in order. Sets the best cost of a recorded report, if Restart needs
  // it. Returns whether the scores of recorded trials have changed.
  virtual bool Observe(Arrival&) { return false; }
  virtual void ForgetTrial(TrialNumber) {}  // it has ended
  // Starts again with other rungs and the reports that are recorded at them.
  virtual void Restart(const std::vector<Step>& /*rungs*/, const std::vector<Arrival>&) {}

  // What a trial with this cost at the rung is ranked by. If it is not recorded there: the score
  // that it would have.
  virtual Score ScoreOf(TrialNumber, size_t /*rung*/, double cost) const { return {cost}; }
  // No trial is promoted before this number of trials is recorded, if more can be created.
  virtual size_t TrialsMin() const { return 0; }
  // The rung from which no trial continues at the moment, and the reason.
  virtual Step Limit() const { return Step(std::numeric_limits<int64_t>::max()); }
  virtual std::string LimitReason() const { return ""; }

  // All that Restart does not restore. Load follows Restart.
  virtual void Save(ArchiveWriter&) const {}
  virtual void Load(ArchiveReader&) {}
};

}  // namespace attune::schedulers
