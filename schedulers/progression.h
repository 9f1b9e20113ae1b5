#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "core/base/ids.h"
#include "core/log/archive.h"

namespace attune::schedulers {

// How far a trial may go for now, as PASHA has it (Bohdal et al., "PASHA: Efficient HPO and NAS
// with progressive resource allocation", ICLR 2023, §4). At first that is the second rung. The next
// one opens when the trials that have come to the highest open rung do not rank there as they did
// at the rung before. Ranks are soft: at each place of the order there must be a trial whose value
// at the rung before lay within epsilon of that of the trial that had the place there.
//
// Epsilon is the noise of the curves: the 90th percentile of the differences, at the highest open
// rung, of pairs whose curves have crossed to and fro. It stays as it was while there are no such
// pairs; until then it is 0. For speed, pairs are made among the first 200 that came there.
//
// Kept are 16 bytes a report: of each trial that has not ended, since it may still come to a rung,
// and of the first 200 of each rung that is or may become the highest.
//
// Costs are values of which small is better; what is not finite takes part in no ranking.
class Progression {
 public:
  // The steps of the rungs, the last one included. REQUIRES: there are two at least.
  explicit Progression(std::vector<Step> rungs);

  // Any report of a trial; one that repeats or goes back changes nothing.
  void See(TrialNumber trial, Step step, double cost);
  // The trial is recorded at a rung, with a report that was seen; the next may open.
  void Come(TrialNumber trial, size_t rung, Step step, double cost);

  Step top() const { return rungs_[top_]; }                // the highest open rung
  Step below() const { return rungs_[top_ - 1]; }          // the one before
  bool Ends() const { return top_ + 1 == rungs_.size(); }  // it is the last of all
  double epsilon() const { return epsilon_; }

  // The trial has ended: its reports are forgotten unless they may still be compared. One that is
  // opened again is seen from there on.
  void End(TrialNumber trial);

  // Other rungs: what is open stays so. Whoever has come is then placed again.
  void Restart(std::vector<Step> rungs);
  // As Come, but opens nothing.
  void Place(TrialNumber trial, size_t rung, Step step, double cost);

  // What Place does not tell. REQUIRES of Load: all have been placed.
  void Save(ArchiveWriter& archive) const;
  void Load(ArchiveReader& archive);

 private:
  struct Arrival {
    TrialNumber trial;
    Step step;
    double cost = 0;
  };

  void Open(size_t top);
  void Estimate();
  // The difference of two at their last common step; negative where their curves have not crossed
  // to and fro.
  double Noise(const Arrival& a, const Arrival& b) const;
  void CompareWithOthers(const Arrival& arrival, size_t others);
  bool RankedAlike() const;

  std::vector<Step> rungs_;
  size_t top_ = 1;
  double epsilon_ = 0;
  std::map<TrialNumber, std::vector<std::pair<Step, double>>> curves_;

  // What follows.
  std::vector<std::vector<Arrival>> arrivals_;  // by rung, finite ones
  std::vector<double> noise_;                   // of pairs at the top
  std::map<TrialNumber, double> before_;        // costs of the arrivals at the rung below
};

}  // namespace attune::schedulers
