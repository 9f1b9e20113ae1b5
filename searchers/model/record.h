#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "core/log/archive.h"
#include "core/log/event.h"
#include "core/log/sweep_spec.h"
#include "searchers/model/cube.h"

namespace attune::searchers {

// The state of a trial's result, from the best to the worst. A model may learn from the first four.
enum class Standing : uint8_t {
  kComplete,    // completed, with a result
  kCut,         // stopped, paused or killed before its end, with a result at some step
  kInfeasible,  // ended without a report that meets the constraints
  kFailed,      // failed, or ended without a finite value
  kRunning,     // running or waiting; the result is not known yet
  kNone,        // nothing to learn: stopped before its first report, or outside the space
};

// The result of a trial, for models.
//
// `value` is the best feasible value so far; small is good, whatever the mode of the objective. It
// is valid if the standing is kComplete or kCut. With several objectives it is the value of the
// first one, from the newest feasible report that no earlier report dominates. `violation` is valid
// for kInfeasible: the sum over the constraints of the distance from the bound, at the best report.
struct Trial {
  double value = 0;
  double violation = 0;
  Step step{0};                            // the last step that was reported
  Standing standing = Standing::kRunning;  // kNone while the trial is outside the space
  Standing outcome = Standing::kRunning;   // the standing that it would have inside the space
  bool has_value = false;
  bool has_violation = false;
  bool placed = false;      // the configuration is in the space
  bool has_values = false;  // it was in the space at creation, so its parameter values are kept
};

// The results of all trials of a sweep, whichever searcher or user proposed them, and the results
// of earlier sweeps. Built from the events of the sweep alone.
//
// `number` is the number of a trial in the sweep, from 0. Memory per trial: 40 bytes, 16 per
// dimension, and in a finite space a hash.
class Record {
 public:
  explicit Record(const SweepSpec& spec);

  enum class Change {
    kNew,              // the trial was created, with the highest number so far
    kStandingChanged,  // its standing changed, and so its rank
    kRestarted,        // it continues with another configuration, without results
    kPrior,            // results of earlier sweeps arrived, before any trial
  };
  struct News {
    uint32_t trial = 0;
    Change change = Change::kNew;
  };

  // Returns what a model must know about the event, if anything. A report of a running trial is no
  // news.
  std::optional<News> Observe(const Event& event);

  // Changes the ranges, objectives or constraints. The points of the trials are computed again.
  // Trials outside the ranges have no point until the ranges contain them. REQUIRES: the parameters
  // and their conditions are the same.
  void Adapt(const SweepSpec& spec);

  void Save(ArchiveWriter& archive) const;
  void Load(ArchiveReader& archive);

  const Cube& cube() const { return cube_; }
  uint32_t size() const { return static_cast<uint32_t>(trials_.size()); }
  const Trial& trial(uint32_t number) const { return trials_[number]; }
  const std::vector<PriorResult>& prior() const { return prior_; }  // grouped by sweep

  // A coordinate of the trial's point; NaN if the parameter is absent.
  double Coordinate(uint32_t number, size_t dimension) const {
    return points_[number * cube_.size() + dimension];
  }

  size_t objectives() const { return objectives_.size(); }
  // The value of an objective; for the first one, Trial::value.
  double Result(uint32_t number, size_t objective) const {
    return objective == 0 ? trials_[number].value
                          : results_[number * (objectives() - 1) + objective - 1];
  }

  // Whether `a` ranks before `b`: by standing; then, among trials that were cut, by the later step;
  // then by value or by violation; then by number. Values are compared objective by objective, so a
  // trial that dominates another always ranks before it.
  bool Better(uint32_t a, uint32_t b) const;

  // Whether a trial with this point was created. Always false in an infinite space. It compares
  // hashes of 64 bits, so with n points the probability of a wrong answer is n in 2^64.
  bool HasTried(const Point& point) const;

 private:
  std::optional<uint32_t> Find(TrialNumber number) const;
  // Keeps the parameter values, so that Adapt can compute the point again. Each takes 8 bytes; a
  // listed value is an index in choices_.
  void KeepValues(uint32_t number, const Config& config);
  uint64_t SlotOf(size_t dimension, const Value& value);
  Value ValueOf(size_t dimension, uint64_t slot) const;
  Config ConfigOf(uint32_t number) const;
  void SetPoint(uint32_t number, const Config& config);
  void SetOutcome(Trial& trial, Standing outcome) const;
  // Gives the trial another configuration, without results.
  void Restart(uint32_t number, const Config& config);
  void AddReport(uint32_t number, const Report& report);
  // The standing of a trial that ends in this state.
  Standing StandingAtEnd(const Trial& trial, TrialState state) const;

  Cube cube_;
  std::vector<Objective> objectives_;
  std::vector<Constraint> constraints_;
  std::vector<PriorResult> prior_;
  std::vector<Trial> trials_;
  std::vector<uint64_t> values_;             // one row per trial
  std::vector<double> points_;               // one row per trial
  std::vector<double> results_;              // one row per trial: the objectives after the first
  std::vector<std::vector<Value>> choices_;  // by dimension: all listed values, also former ones
  std::unordered_set<uint64_t> tried_;       // hashes of the points, in a finite space
};

}  // namespace attune::searchers
