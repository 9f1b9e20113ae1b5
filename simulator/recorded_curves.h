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

// Curves as they were measured. Trial n takes the curve at place n of the recorded ones, and with
// more trials than curves begins again with the first; its configuration plays no part. Between two
// records a curve stays at the earlier one; beyond the last, at that one. A step takes the time it
// took there.
class RecordedCurves final : public Curves {
 public:
  struct Point {
    double value = 0;
    std::optional<Seconds> seconds;  // of each step from the record before to this one
  };
  using Curve = std::map<Step, Point>;

  // REQUIRES: there is a curve, and each has a point.
  explicit RecordedCurves(std::vector<Curve> curves) : curves_(std::move(curves)) {}

  const std::vector<Curve>& all() const { return curves_; }

  double ValueAt(TrialNumber trial, const Config& config, Step step) const override;
  std::optional<Seconds> SecondsOf(TrialNumber trial, Step step) const override;
  Step End(TrialNumber trial) const override;

 private:
  const Curve& Of(TrialNumber trial) const { return curves_[trial.value % curves_.size()]; }

  std::vector<Curve> curves_;
};

// From what `attune db export --what reports` prints for one sweep: the columns `trial`, `step` and
// `metrics.METRIC`, and where they are there `sweep`, `attempt` and `seconds`; rows of an attempt
// in the order of their steps, others left alone.
//
// Errors: kInvalid; the message begins with `file` and the line.
Result<RecordedCurves> ReadCurves(std::string_view csv, const std::string& file,
                                  const std::string& metric);

}  // namespace attune::simulate
