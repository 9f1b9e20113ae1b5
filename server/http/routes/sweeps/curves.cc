#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parse_number.h"
#include "base/result.h"
#include "core/base/numbers.h"
#include "server/http/answers/curve_bytes.h"
#include "server/http/answers/render.h"
#include "server/http/routes/request/query.h"
#include "server/http/routes/sweeps/sweeps.h"
#include "server/http/transport/problem.h"

namespace attune::server {
namespace {

constexpr std::string_view kOf = "curves";

constexpr int64_t kPointsMin = 2;
constexpr int64_t kRangePointsMax = 2'000;
constexpr int64_t kBestMax = 1'000;
constexpr size_t kTrialsMax = 500;
constexpr size_t kRangeTrialsMax = 100;

// The parameters that only the binary form has.
constexpr const char* kBinaryParameters[] = {"points", "best", "trials", "first_step", "last_step"};

// The metrics that the sweep file names and that trials have logged.
std::set<std::string> MetricsOf(const SweepRow& sweep) {
  std::set<std::string> names(sweep.logged.begin(), sweep.logged.end());
  for (const Objective& each : sweep.spec.objectives) names.insert(each.metric);
  for (const Constraint& each : sweep.spec.constraints) names.insert(each.metric);
  return names;
}

// The answer for a metric without a value that neither the file nor the logs name.
Response UnknownMetric(const SweepRow& sweep, const std::set<std::string>& known,
                       const std::string& metric) {
  std::string names;
  for (const std::string& each : known) names += (names.empty() ? "" : ", ") + each;
  return Problem(rest::ProblemType::kInvalidRequest,
                 "metric: no trial of sweep " + ToString(sweep.id) + " has reported or logged " +
                     metric + "; the sweep's file and logs name " + names);
}

bool WantsBytes(const Request& request) {
  return request.Header("Accept").value_or("").find(kCurvesType) != std::string::npos;
}

Result<double> StepQuery(const Request& request, std::string_view name, double fallback) {
  const auto text = request.Query(name);
  if (!text) return fallback;
  const auto step = ParseNumber<double>(*text);
  if (!step || !std::isfinite(*step))
    return Invalid(std::string(name) + ": '" + *text + "' is not a number");
  return *step;
}

// The numbers of the parameter `trials`, sorted.
Result<std::vector<TrialNumber>> TrialsQuery(const std::string& text) {
  std::vector<TrialNumber> trials;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string each = text.substr(begin, end - begin);
    const auto number = ParseNumber<uint32_t>(each);
    if (!number)
      return Invalid("trials: '" + each +
                     "' is not the number of a trial; separate numbers by commas");
    trials.emplace_back(*number);
    begin = end + 1;
  }
  std::ranges::sort(trials);
  const auto repeated = std::ranges::unique(trials);
  trials.erase(repeated.begin(), repeated.end());
  if (trials.size() > kTrialsMax)
    return Invalid("trials: more than " + std::to_string(kTrialsMax) + " trials");
  return trials;
}

Status TakeTrials(const Request& request, CurveSelection& selection) {
  const auto listed = request.Query("trials");
  if (listed) {
    auto trials = TrialsQuery(*listed);
    if (!trials.ok()) return trials.error();
    selection.trials = std::move(trials).value();
  }
  if (request.Query("best")) {
    if (listed) return Invalid("best: give either `best` or `trials`");
    const auto best = IntegerQuery(request, "best", 1, 1, kBestMax);
    if (!best.ok()) return best.error();
    selection.best = static_cast<size_t>(*best);
  }
  if (request.Query("page_token").value_or("").empty()) return {};
  if (listed || selection.best)
    return Invalid("page_token: `best` and `trials` have only one page");
  // The number of the page's first trial, as in the header of the page before.
  const auto first = IntegerQuery(request, "page_token", 0, 0, UINT32_MAX);
  if (!first.ok()) return first.error();
  selection.first = TrialNumber(static_cast<uint32_t>(*first));
  return {};
}

Status TakeRange(const Request& request, CurveSelection& selection) {
  if (!request.Query("first_step") && !request.Query("last_step")) return {};
  if (!selection.trials || selection.trials->size() > kRangeTrialsMax)
    return Invalid("first_step, last_step: give `trials` with at most " +
                   std::to_string(kRangeTrialsMax) + " trials");
  const auto first = StepQuery(request, "first_step", -kInfinity);
  if (!first.ok()) return first.error();
  const auto last = StepQuery(request, "last_step", kInfinity);
  if (!last.ok()) return last.error();
  if (*first > *last) return Invalid("last_step: it is before first_step");
  selection.range = {.first_step = *first, .last_step = *last};
  return {};
}

Result<CurveSelection> SelectionOf(const Request& request) {
  CurveSelection selection;
  if (Status taken = TakeTrials(request, selection); !taken.ok()) return taken.error();
  if (Status taken = TakeRange(request, selection); !taken.ok()) return taken.error();
  const auto points = IntegerQuery(request, "points", kThinnedPointsMax, kPointsMin,
                                   selection.range ? kRangePointsMax : int64_t{kThinnedPointsMax});
  if (!points.ok()) return points.error();
  selection.points = static_cast<size_t>(*points);
  return selection;
}

}  // namespace

Response Sweeps::Curves(const Request& request, const Target& target) {
  const auto sweep = reader_.Sweep(target.sweep());
  if (!sweep.ok()) return Problem(sweep.error());
  std::string metric = request.Query("metric").value_or("");
  if (metric.empty()) metric = sweep->spec.objective().metric;
  if (WantsBytes(request)) return CurvesAsBytes(request, *sweep, metric);
  for (const char* name : kBinaryParameters) {
    if (request.Query(name))
      return Problem(Invalid(std::string(name) + ": only the binary form has it; send `Accept: " +
                             std::string(kCurvesType) + "`"));
  }
  const auto from = ParsePageToken(kOf, request);
  if (!from.ok()) return Problem(from.error());
  const TrialNumber first(static_cast<uint32_t>(from->value_or(0)));
  const auto curves = reader_.MetricCurves(target.sweep(), metric, first, {.stop = request.left});
  if (!curves.ok()) return Problem(curves.error());
  const std::set<std::string> known = MetricsOf(*sweep);
  const bool whole = !*from && !curves->next;
  if (whole && curves->trials.empty() && !known.contains(metric))
    return UnknownMetric(*sweep, known, metric);
  Response response{.content_type = "application/json"};
  response.body =
      CurvesToText(metric, *curves, curves->next ? PageToken(kOf, curves->next->value) : "");
  response.Set("Cache-Control", "no-store");
  return response;
}

Response Sweeps::CurvesAsBytes(const Request& request, const SweepRow& sweep,
                               const std::string& metric) {
  const auto selection = SelectionOf(request);
  if (!selection.ok()) return Problem(selection.error());
  const auto page = reader_.ThinnedCurves(sweep.id, metric, *selection, {.stop = request.left});
  if (!page.ok()) return Problem(page.error());
  const bool whole = !selection->best && !selection->trials && selection->first.value == 0;
  const std::set<std::string> known = MetricsOf(sweep);
  if (whole && page->trials.empty() && !known.contains(metric))
    return UnknownMetric(sweep, known, metric);
  Response response{.content_type = std::string(kCurvesType)};
  response.body = CurvesToBytes(*page);
  response.Set("Cache-Control", "no-store");
  return response;
}

}  // namespace attune::server
