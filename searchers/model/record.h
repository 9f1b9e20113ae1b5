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

// What became of a trial, the best outcome first: a model may learn from each.
enum class Standing : uint8_t {
  kComplete,    // it has come to its end, with a result
  kCut,         // stopped, paused or killed before its end, with a result at some step
  kInfeasible,  // ended, and no report has met the constraints
  kFailed,      // failed, or it has reported nothing that is a finite number
  kRunning,     // or waits to run: its result is not known yet
  kNone,        // nothing to learn: ended by others before it reported, or outside of the space
};

// A trial as models see it: what it was and how it did.
//
// `value` is the best feasible one reported so far, small being good whatever the objective's mode;
// meaningful where the standing is kComplete or kCut. With several objectives it is that of the
// first, at the newest feasible report that none before it dominates. `violation` is the smallest
// sum, over the constraints, of how far a report was outside; meaningful for kInfeasible.
struct Trial {
  double value = 0;
  double violation = 0;
  Step step{0};                            // the deepest one reported
  Standing standing = Standing::kRunning;  // kNone while it lies outside of the space
  Standing outcome = Standing::kRunning;    // wherever it lies
  bool has_value = false;
  bool has_violation = false;
  bool placed = false;  // its configuration lies in the space
  bool has_values = false;  // it did when it was created, so that its values are kept
};

// Everything that a sweep's trials have taught, whoever proposed them, and what it has taken of
// earlier sweeps. Built by its events alone;
// trials are counted by `number` in the sweep, from 0. The values, a point and 40 bytes a trial; in
// a finite space a hash as well.
class Record {
 public:
  explicit Record(const SweepSpec& spec);

  enum class Change {
    kNew,       // the trial was created; it has the highest number so far
    kStandingChanged,  // and with it what it is ranked by
    kRestarted,     // it goes on as another configuration, without results
    kPrior,     // results of earlier sweeps, before any trial
  };
  struct News {
    uint32_t trial = 0;
    Change change = Change::kNew;
  };

  // What a model has to know of the event, if anything. A report of a running trial is nothing yet.
  std::optional<News> Observe(const Event& event);

  // Other ranges, objective or constraints from now on. Trials are placed anew by their values, and
  // those outside of the ranges wait for wider ones. REQUIRES: the same parameters under the same
  // conditions.
  void Adapt(const SweepSpec& spec);

  void Save(ArchiveWriter& archive) const;
  void Load(ArchiveReader& archive);

  const Cube& cube() const { return cube_; }
  uint32_t size() const { return static_cast<uint32_t>(trials_.size()); }
  const Trial& trial(uint32_t number) const { return trials_[number]; }
  const std::vector<PriorResult>& prior() const { return prior_; }  // sweep after sweep

  // A coordinate of its point; NaN where its parameter is absent.
  double At(uint32_t number, size_t dimension) const {
    return points_[number * cube_.size() + dimension];
  }

  size_t objectives() const { return objectives_.size(); }
  // Of any objective, as Trial::value of the first.
  double Result(uint32_t number, size_t objective) const {
    return objective == 0 ? trials_[number].value
                          : results_[number * (objectives() - 1) + objective - 1];
  }

  // Whether `a` taught better news than `b`: by standing; then, of those that were cut, the one
  // that came further; then by value, the first objective's before the next one's, or by violation.
  // Of equal ones the earlier. Who dominates another is always the better one.
  bool Better(uint32_t a, uint32_t b) const;

  // Whether a trial of this point was created; asked and known in finite spaces only, elsewhere
  // false. By a hash of 64 bits: that one of n points is taken for another has odds of n to 2^64.
  bool Tried(const Point& point) const;

 private:
  std::optional<uint32_t> Known(TrialNumber number) const;
  // Values as they were, in 8 bytes each: a place in `choices_` where they are listed ones.
  void Keep(uint32_t number, const Config& config);
  uint64_t SlotOf(size_t dimension, const Value& value);
  Value ValueOf(size_t dimension, uint64_t slot) const;
  Config ConfigOf(uint32_t number) const;
  void Put(uint32_t number, const Config& config);
  void Stand(Trial& trial, Standing outcome) const;
  void Restart(uint32_t number, const Config& config);  // it goes on as another configuration
  void Take(uint32_t number, const Report& report);
  Standing Ended(const Trial& trial, TrialState state) const;

  Cube cube_;
  std::vector<Objective> objectives_;
  std::vector<Constraint> constraints_;
  std::vector<PriorResult> prior_;
  std::vector<Trial> trials_;
  std::vector<uint64_t> values_;             // a row a trial
  std::vector<double> points_;               // a row a trial
  std::vector<double> results_;              // likewise, of the objectives but the first
  std::vector<std::vector<Value>> choices_;  // by dimension, that there ever were
  std::unordered_set<uint64_t> tried_;       // hashes of points, in a finite space
};

}  // namespace attune::searchers
