#include "simulator/recorded_curves.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/parse_number.h"
#include "base/result.h"
#include "simulator/csv.h"

namespace attune::simulate {
namespace {

constexpr double kMaxAttemptSeconds = 1e8;  // three years

using Curve = RecordedCurves::Curve;

class Reader {
 public:
  Reader(std::string_view csv, const std::string& file, const std::string& metric)
      : csv_(csv), file_(file), metric_(metric), value_column_("metrics." + metric) {}

  Result<RecordedCurves> Read() {
    if (Status header = ReadHeader(); !header.ok()) return header.error();
    while (csv_.Next(cells_)) {
      if (Status row = ReadRow(); !row.ok()) return row.error();
    }
    if (trials_.empty()) return Fault("no row has a value in the column `" + value_column_ + "`");
    std::vector<Curve> curves;
    for (auto& [number, trial] : trials_) curves.push_back(std::move(trial.curve));
    return RecordedCurves(std::move(curves));
  }

 private:
  struct Recording {
    Curve curve;
    std::string attempt;  // of the previous row, like `step` and `seconds`
    Step step;
    double seconds = 0;
  };

  Error Fault(const std::string& what) const {
    return {ErrorCode::kInvalid, file_ + ":" + std::to_string(csv_.line()) + ": " + what};
  }

  Status ReadHeader() {
    csv_.Next(header_);
    for (const std::string& needed : {std::string("trial"), std::string("step"), value_column_}) {
      if (std::ranges::find(header_, needed) == header_.end())
        return Error{ErrorCode::kInvalid,
                     file_ + ":1: there is no column `" + needed +
                         "`; create the file with `attune db export --what "
                         "reports --sweep SWEEP`, from a sweep with the metric " +
                         metric_};
    }
    return {};
  }

  // The cell of the current row in this column; empty if the file lacks the column.
  std::string Cell(std::string_view column) const {
    const auto found = std::ranges::find(header_, column);
    return found == header_.end() ? "" : cells_[static_cast<size_t>(found - header_.begin())];
  }

  Status ReadRow() {
    if (cells_.size() != header_.size())
      return Fault("the row has " + std::to_string(cells_.size()) + " cells and the header has " +
                   std::to_string(header_.size()) + " columns");
    if (Status sweep = CheckSweep(); !sweep.ok()) return sweep;
    if (Cell(value_column_).empty()) return {};  // a report of other metrics
    const auto trial = ParseNumber<uint32_t>(Cell("trial"));
    if (!trial) return Fault("trial `" + Cell("trial") + "` is not a whole number of at least 0");
    const auto step = ParseNumber<int64_t>(Cell("step"));
    if (!step || *step < 1)
      return Fault("step `" + Cell("step") + "` is not a whole number of at least 1");
    const auto value = ParseNumber<double>(Cell(value_column_));
    if (!value) return Fault(value_column_ + " `" + Cell(value_column_) + "` is not a number");
    return AddPoint(trials_[*trial], Step(*step), *value);
  }

  Status CheckSweep() {
    const std::string sweep = Cell("sweep");
    if (!sweep_) sweep_ = sweep;
    if (*sweep_ == sweep) return {};
    return Fault("the file has reports of the sweeps " + *sweep_ + " and " + sweep +
                 "; export one sweep with --sweep");
  }

  Status AddPoint(Recording& trial, Step step, double value) {
    const std::string attempt = Cell("attempt");
    const bool same_attempt = !trial.curve.empty() && attempt == trial.attempt;
    if (same_attempt && step <= trial.step)
      return Fault("step " + std::to_string(step.value) + " comes after step " +
                   std::to_string(trial.step.value) + " of the same attempt");
    RecordedCurves::Point point{.value = value};
    double seconds = 0;
    if (const std::string text = Cell("seconds"); !text.empty()) {
      const double previous_seconds = same_attempt ? trial.seconds : 0;
      seconds = ParseNumber<double>(text).value_or(-1);
      if (!(seconds >= previous_seconds && seconds <= kMaxAttemptSeconds))
        return Fault("seconds `" + text +
                     "` must be the time since the attempt began, and must not fall from "
                     "row to row");
      // A later attempt resumes from a checkpoint, usually near the end of the attempt before it.
      const int64_t steps = step > trial.step ? step.value - trial.step.value : 1;
      point.seconds = Seconds((seconds - previous_seconds) / static_cast<double>(steps));
    }
    trial.curve[step] = point;
    trial.attempt = attempt;
    trial.step = step;
    trial.seconds = seconds;
    return {};
  }

  CsvReader csv_;
  const std::string& file_;
  const std::string& metric_;
  const std::string value_column_;
  std::vector<std::string> header_;
  std::vector<std::string> cells_;
  std::optional<std::string> sweep_;
  std::map<uint32_t, Recording> trials_;
};

}  // namespace

double RecordedCurves::ValueAt(TrialNumber trial, const Config&, Step step) const {
  const Curve& curve = CurveOf(trial);
  const auto after = curve.upper_bound(step);
  return after == curve.begin() ? after->second.value : std::prev(after)->second.value;
}

std::optional<Seconds> RecordedCurves::SecondsOf(TrialNumber trial, Step step) const {
  const Curve& curve = CurveOf(trial);
  const auto at = curve.lower_bound(step);
  return at == curve.end() ? curve.rbegin()->second.seconds : at->second.seconds;
}

Step RecordedCurves::LastStep(TrialNumber trial) const { return CurveOf(trial).rbegin()->first; }

Result<RecordedCurves> ReadCurves(std::string_view csv, const std::string& file,
                                  const std::string& metric) {
  return Reader(csv, file, metric).Read();
}

}  // namespace attune::simulate
