#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "simulator/curves.h"

namespace attune::simulate {

// Measured curves, read from a file. Trial n uses curve n modulo the number of curves; its
// configuration does not matter. Between two records, a curve keeps the earlier value; after the
// last record, it keeps the last value. Each step takes as long as it took in the recording.
class RecordedCurves final : public Curves {
 public:
  struct Point {
    double value = 0;
    std::optional<Seconds> seconds;  // of one step, averaged since the previous record
  };
  using Curve = std::map<Step, Point>;

  // REQUIRES: there is at least one curve, and each curve has a point.
  explicit RecordedCurves(std::vector<Curve> curves) : curves_(std::move(curves)) {}

  const std::vector<Curve>& all() const { return curves_; }

  double ValueAt(TrialNumber trial, const Config& config, Step step) const override;
  std::optional<Seconds> SecondsOf(TrialNumber trial, Step step) const override;
  Step LastStep(TrialNumber trial) const override;

 private:
  const Curve& CurveOf(TrialNumber trial) const { return curves_[trial.value % curves_.size()]; }

  std::vector<Curve> curves_;
};

// Reads the output of `attune db export --what reports` for one sweep. The columns `trial`, `step`
// and `metrics.METRIC` are required; `sweep`, `attempt` and `seconds` are optional; others are
// ignored. The rows of an attempt must be sorted by step.
//
// Errors: kInvalid; the message begins with `file` and the line.
Result<RecordedCurves> ReadCurves(std::string_view csv, const std::string& file,
                                  const std::string& metric);

}  // namespace attune::simulate
