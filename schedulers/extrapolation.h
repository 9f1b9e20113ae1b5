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

namespace attune::schedulers {

// Where learning curves are going: what a trial's best value will be at the last rung, told from
// the trials that came further. For each rung a ridge regression (Hoerl and Kennard, Technometrics
// 12, 1970) says how much the best value still falls until the next one, from
//
//   1, the best value so far, how much it fell since the rung before, how far the newest is above
//   it
//
// and it trains on what its successor says of the trials that have come to the next rung: so a rung
// that few have reached is told by one that many have. Before there are curves to learn from, half
// of the last fall is expected once more.
//
// All of this happens on a scale of its own: log(1 + (value - best of all) / the lower quartile of
// what trials have above it), bounded above, so that a curve that diverges weighs no more than one
// that is merely bad. Costs are values of which small is better; one that is not finite is the
// worst.
class Extrapolation {
 public:
  // What is expected, as a cost; it comes true within the spread in two of three cases where past
  // deviations repeat.
  struct Forecast {
    double cost = std::numeric_limits<double>::infinity();
    double spread = 0;
  };

  // REQUIRES: rungs >= 2.
  explicit Extrapolation(size_t rungs);

  // Any report of a trial.
  void See(TrialNumber trial, double cost);
  // The best cost that it has reported, infinite without a finite one.
  double BestOf(TrialNumber trial) const;

  // The trial comes to a rung with this value, and its best one up to there.
  void Come(TrialNumber trial, size_t rung, double cost, double best);

  // By the last fit. REQUIRES: the trial has come to the rung.
  Forecast At(TrialNumber trial, size_t rung) const;
  // As if it came there now with this cost.
  Forecast If(TrialNumber trial, size_t rung, double cost) const;

  // Whether so much has come since the last fit that another is worth its cost, which is linear in
  // what has come.
  bool IsDue() const;
  void Fit();

  // Forgets who came to which rung, and of how many there are. The fit and the best costs stay
  // where the number does.
  void Restart(size_t rungs);

  // But for who came to which rung.
  void Save(ArchiveWriter& archive) const;
  void Load(ArchiveReader& archive);

 private:
  static constexpr size_t kTerms = 4;
  using Terms = std::array<double, kTerms>;
  // What is expected of the step from one rung to the next.
  struct Rule {
    Terms weights{};
    double variance = 0;

    template <class A>
    friend void Fields(A& archive, Like<A, Rule>& rule) {
      archive(rule.weights[0], rule.weights[1], rule.weights[2], rule.weights[3], rule.variance);
    }
  };

  // At a rung; NaN where the trial has not come there.
  struct Mark {
    double cost = std::numeric_limits<double>::quiet_NaN();
    double best = std::numeric_limits<double>::quiet_NaN();
  };
  using Curve = std::vector<Mark>;  // by rung

  double Scaled(double cost) const;  // on the scale of the fit
  double Unscaled(double scaled) const;
  Terms TermsOf(const Curve& curve, size_t rung) const;
  // The best at the last rung, on the scale of the fit.
  double Expected(const Curve& curve, size_t rung) const;
  Forecast ForecastOf(const Curve& curve, size_t rung) const;
  void FitScale();
  void FitRung(size_t rung);

  size_t rungs_;
  std::map<TrialNumber, Curve> curves_;  // of those that have come to a rung
  std::map<TrialNumber, double> bests_;
  double best_ = std::numeric_limits<double>::infinity();
  int64_t came_since_ = 0;  // to rungs, since the fit

  // The fit.
  double origin_ = std::numeric_limits<double>::infinity();  // the best of all
  double unit_ = 1;
  double ceiling_ = std::numeric_limits<double>::infinity();
  std::vector<Rule> rules_;  // by rung, but the last
};

// A spread for a sentence: two digits, since more say nothing.
std::string SpreadText(double spread);

}  // namespace attune::schedulers
