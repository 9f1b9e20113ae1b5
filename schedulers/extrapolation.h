#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/log/archive.h"
#include "schedulers/ranking.h"

namespace attune::schedulers {

// Ranks trials by where their learning curves are going: the best value that a trial is expected to
// have at the last rung, learnt from the trials that are recorded there. For each rung a ridge
// regression (Hoerl and Kennard, Technometrics 12, 1970) predicts how much the best value falls
// until the next rung, from
//
//   1, the best value so far, how much it fell since the rung before, and how far the newest value
//   is above it
//
// Its targets are the predictions for the next rung, so a rung with few trials learns from one with
// many. Before there are curves, it expects half of the last fall once more.
//
// All values are on the scale log(1 + (value - best of all) / unit), bounded above, where the unit
// is the lower quartile of the trials' distances from the best. A curve that diverges thus weighs
// no more than a bad one.
class Extrapolation final : public Ranking {
 public:
  // REQUIRES: rungs >= 2.
  explicit Extrapolation(size_t rungs) { Reset(rungs); }

  bool Observe(Arrival& report) override;
  // The fit and the best costs stay if the number of rungs stays.
  void Restart(const std::vector<Step>& rungs, const std::vector<Arrival>& arrivals) override;
  // By the last fit. The true cost lies within the spread in two of three cases if past deviations
  // repeat.
  Score ScoreOf(TrialNumber trial, size_t rung, double cost) const override;
  size_t TrialsMin() const override { return 6; }
  void Save(ArchiveWriter& archive) const override;
  void Load(ArchiveReader& archive) override;

  // The steps of Observe.
  void ObserveCost(TrialNumber trial, double cost);
  // `best`: the best cost of the trial up to there.
  void Record(TrialNumber trial, size_t rung, double cost, double best);
  // Whether enough is new since the last fit. A fit is linear in the number of records.
  bool IsFitDue() const;
  void Fit();

  // The best cost that the trial has reported, infinite without a finite one.
  double BestOf(TrialNumber trial) const;

 private:
  static constexpr size_t kTerms = 4;
  using Terms = std::array<double, kTerms>;
  // Predicts the fall from one rung to the next.
  struct Rule {
    Terms weights{};
    double variance = 0;

    template <class A>
    friend void Fields(A& archive, Like<A, Rule>& rule) {
      archive(rule.weights[0], rule.weights[1], rule.weights[2], rule.weights[3], rule.variance);
    }
  };

  // At a rung; NaN if the trial is not recorded there.
  struct Mark {
    double cost = std::numeric_limits<double>::quiet_NaN();
    double best = std::numeric_limits<double>::quiet_NaN();
  };
  using Curve = std::vector<Mark>;  // by rung

  void Reset(size_t rungs);
  double ToFitScale(double cost) const;  // on the scale of the fit
  double FromFitScale(double scaled) const;
  Terms TermsOf(const Curve& curve, size_t rung) const;
  // The best value at the last rung, on the scale of the fit.
  double PredictedEnd(const Curve& curve, size_t rung) const;
  Score Forecast(const Curve& curve, size_t rung) const;
  void FitScale();
  void FitRung(size_t rung);

  size_t rungs_;
  std::map<TrialNumber, Curve> curves_;  // of recorded trials
  std::map<TrialNumber, double> bests_;
  double best_ = std::numeric_limits<double>::infinity();
  int64_t records_since_fit_ = 0;

  // The fit.
  double origin_ = std::numeric_limits<double>::infinity();  // the best of all
  double unit_ = 1;
  double ceiling_ = std::numeric_limits<double>::infinity();
  std::vector<Rule> rules_;  // by rung, without the last
};

// A spread for a sentence, with two digits.
std::string SpreadText(double spread);

}  // namespace attune::schedulers
