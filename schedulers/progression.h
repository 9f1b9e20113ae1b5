#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/log/archive.h"
#include "schedulers/ranking.h"

namespace attune::schedulers {

// Limits how far trials may climb at the moment, as in PASHA (Bohdal et al., "PASHA: Efficient HPO
// and NAS with progressive resource allocation", ICLR 2023, §4). The first limit is the second
// rung. The next rung opens when the trials at the highest open rung do not rank there as they did
// at the rung before. Ranks are soft: at each place of the order there must be a trial whose value
// at the rung before lies within epsilon of the value of the trial that had the place there.
//
// Epsilon is the noise of the curves: the 90th percentile of the differences, at the highest open
// rung, of pairs whose curves have crossed at least twice. It keeps its value while there are no
// such pairs, and starts at 0. For speed, only the first 200 trials at the rung form pairs.
//
// It stores 16 bytes per report: of each trial that has not ended, since it may still reach a rung,
// and of the first 200 trials at each rung that is or may become the highest.
//
// Trials rank by value. Costs that are not finite take part in no comparison.
class Progression final : public Ranking {
 public:
  // The steps of the rungs, the last one included. REQUIRES: at least two.
  explicit Progression(std::vector<Step> rungs);

  // A report that repeats a step or goes back changes nothing.
  bool Observe(Arrival& report) override;
  // Forgets its reports unless they may still be compared.
  void ForgetTrial(TrialNumber trial) override;
  // Rungs that were open stay open.
  void Restart(const std::vector<Step>& rungs, const std::vector<Arrival>& arrivals) override;
  Step Limit() const override { return rungs_[top_]; }
  std::string LimitReason() const override;
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

  Step below() const { return rungs_[top_ - 1]; }                // the rung before the limit
  bool IsComplete() const { return top_ + 1 == rungs_.size(); }  // every rung is open
  double epsilon() const { return epsilon_; }

 private:
  void AddArrival(const Arrival& arrival);
  void OpenRung(size_t top);
  void EstimateEpsilon();
  // The difference of two curves at their last common step; negative if they have crossed less than
  // twice.
  double Noise(const Arrival& a, const Arrival& b) const;
  void CompareWithOthers(const Arrival& arrival, size_t others);
  bool RanksAgree() const;

  std::vector<Step> rungs_;
  size_t top_ = 1;
  double epsilon_ = 0;
  std::map<TrialNumber, std::vector<std::pair<Step, double>>> curves_;

  // Derived from the above.
  std::vector<std::vector<Arrival>> arrivals_;  // by rung, those with finite costs
  std::vector<double> noise_;                   // of pairs at the top
  std::map<TrialNumber, double> before_;        // costs of the arrivals at the rung below
};

}  // namespace attune::schedulers
