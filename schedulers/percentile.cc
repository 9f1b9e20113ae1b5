#include "schedulers/percentile.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "schedulers/text.h"

namespace attune::schedulers {
namespace {

using Form = PercentileStopping::Form;

constexpr double kMedian = 50;

std::string_view RuleOf(Form form) { return form == Form::kMedian ? "median" : "percentile"; }

PercentileStopping::Options PercentileOptions(const SweepSpec& spec) {
  const auto& options = spec.scheduler.options;
  const auto integer = [&](const char* name) { return std::get<int64_t>(options.at(name)); };
  const bool median = spec.scheduler.name == RuleOf(Form::kMedian);
  return {.form = median ? Form::kMedian : Form::kPercentile,
          .grace_period = Step(integer("grace_period")),
          .interval = integer("interval"),
          .min_samples = integer("min_samples"),
          .percentile = median ? kMedian : std::get<double>(options.at("percentile")),
          .max = spec.max_step};
}

Result<std::unique_ptr<Scheduler>> MakePercentileStopping(const SweepSpec& spec) {
  const PercentileStopping::Options options = PercentileOptions(spec);
  if (options.max > Step(0) && options.grace_period >= options.max) {
    return Error{ErrorCode::kInvalid, "scheduler.grace_period: " + Text(options.grace_period) +
                                          " is not below max " + Text(options.max) +
                                          ", so no trial would be judged; lower it or raise max"};
  }
  return {std::make_unique<PercentileStopping>(spec.objective(), options)};
}

std::vector<Option> SharedOptions() {
  return {{.name = "grace_period",
           .fallback = int64_t{1},
           .min = 1,
           .help = "First step at which a trial may stop"},
          {.name = "interval", .fallback = int64_t{1}, .min = 1, .help = "Steps between decisions"},
          {.name = "min_samples",
           .fallback = int64_t{3},
           .min = 1,
           .help = "Number of other trials that must have reached the step"}};
}

}  // namespace

template <class A>
void Fields(A& archive, Like<A, PercentileStopping::Curve>& curve) {
  archive(curve.last, curve.best, curve.sum, curve.count);
}

PercentileStopping::PercentileStopping(Objective objective, Options options)
    : objective_(std::move(objective)), options_(options) {
  ATTUNE_CHECK(options.grace_period >= Step(1) && options.interval >= 1);
  ATTUNE_CHECK(options.min_samples >= 1);
  ATTUNE_CHECK(options.percentile >= 0 && options.percentile <= 100);
}

// ---- verdicts ------------------------------------------------------------------------------

Verdict PercentileStopping::Judge(const TrialView& trial, const Report& report) const {
  Reason reason{.rule = std::string(RuleOf(options_.form)), .step = report.step};
  const std::string continues = "continues at step " + Text(report.step) + ": ";
  Curve curve = CurveOf(trial.id.number);
  const auto line = LineFor(curve, report.step);
  if (!line) {
    return NothingDecided(reason.rule, report.step, NextMilestone(trial, report.step), "step",
                          "no decision is left");
  }
  Add(report, curve);
  static const std::vector<double> none;
  const auto found = lines_.find(*line);
  const std::vector<double>& others = found == lines_.end() ? none : found->second;
  reason.rung = *line;
  reason.value = curve.best;
  reason.rank = static_cast<int64_t>(CountBetter(curve.best, others)) + 1;
  reason.peers = std::ssize(others) + 1;
  if (std::ssize(others) < options_.min_samples) {
    reason.text = continues + "none is stopped before " + Text(options_.min_samples) +
                  " others have reached step " + Text(*line) + "; " + Text(std::ssize(others)) +
                  " have";
    return Verdict::Continue(std::move(reason));
  }
  reason.cutoff = CutoffOf(others);
  const bool stops = objective_.Worse(curve.best, reason.cutoff);
  reason.text = (stops ? "stopped at step " + Text(report.step) + ": " : continues) + "its best " +
                objective_.metric + " " + FormatShort(curve.best) +
                (stops ? " is worse than " : " is not worse than ") + FormatShort(reason.cutoff) +
                ", " + CutoffText(others.size(), *line);
  return stops ? Verdict::Stop(std::move(reason)) : Verdict::Continue(std::move(reason));
}

std::string PercentileStopping::CutoffText(size_t others, Step line) const {
  const std::string count = std::to_string(others) + (others == 1 ? " other" : " others");
  if (options_.form == Form::kMedian)
    return "the median of the running means of " + count + " at step " + Text(line);
  return "the value of the best " + FormatShort(options_.percentile) + " % of " + count +
         " by step " + Text(line);
}

std::optional<Step> PercentileStopping::NextMilestone(const TrialView& trial, Step after) const {
  const Step from = std::max(after, CurveOf(trial.id.number).last);
  const auto line = LineUpTo(from);
  if (line && line->value > std::numeric_limits<int64_t>::max() - options_.interval)
    return std::nullopt;
  const Step next = line ? Step(line->value + options_.interval) : options_.grace_period;
  if (options_.max > Step(0) && next > options_.max) return std::nullopt;
  return next;
}

// ---- what was observed ---------------------------------------------------------------------

void PercentileStopping::Observe(const Event& event) {
  const auto* reported = std::get_if<TrialReported>(&event.fact);
  if (reported == nullptr) return;
  Curve& curve = curves_[reported->attempt.trial.number];
  if (reported->report.step <= curve.last) return;
  const auto line = LineFor(curve, reported->report.step);
  Add(reported->report, curve);
  if (!line) return;
  std::vector<double>& sorted = lines_[*line];
  const double statistic = StatisticOf(curve);
  sorted.insert(sorted.begin() + static_cast<ptrdiff_t>(CountBetter(statistic, sorted)), statistic);
}

void PercentileStopping::Adapt(const SweepSpec& spec) { options_ = PercentileOptions(spec); }

void PercentileStopping::Save(ArchiveWriter& archive) const { archive(curves_, lines_); }

void PercentileStopping::Load(ArchiveReader& archive) { archive(curves_, lines_); }

PercentileStopping::Curve PercentileStopping::CurveOf(TrialNumber trial) const {
  const auto found = curves_.find(trial);
  return found == curves_.end() ? Curve() : found->second;
}

void PercentileStopping::Add(const Report& report, Curve& curve) const {
  const double value = objective_.ValueIn(report.metrics);
  curve.last = report.step;
  if (objective_.Better(value, curve.best)) curve.best = value;
  if (report.step < options_.grace_period) return;
  curve.sum += value;
  ++curve.count;
}

// ---- lines ---------------------------------------------------------------------------------

std::optional<Step> PercentileStopping::LineUpTo(Step step) const {
  if (step < options_.grace_period) return std::nullopt;
  return Step(step.value - (step.value - options_.grace_period.value) % options_.interval);
}

std::optional<Step> PercentileStopping::LineFor(const Curve& curve, Step step) const {
  const auto line = LineUpTo(step);
  return line && *line > curve.last ? line : std::nullopt;
}

double PercentileStopping::StatisticOf(const Curve& curve) const {
  if (options_.form == Form::kPercentile) return curve.best;
  return curve.sum / static_cast<double>(curve.count);
}

double PercentileStopping::CutoffOf(const std::vector<double>& sorted) const {
  const double place = options_.percentile / 100 * static_cast<double>(sorted.size() - 1);
  const auto before = static_cast<size_t>(place);
  const double part = place - static_cast<double>(before);
  return part == 0 ? sorted[before] : std::lerp(sorted[before], sorted[before + 1], part);
}

size_t PercentileStopping::CountBetter(double value, const std::vector<double>& sorted) const {
  const auto place = std::ranges::partition_point(
      sorted, [&](double other) { return objective_.Better(other, value); });
  return static_cast<size_t>(place - sorted.begin());
}

Entry<Scheduler> MedianEntry() {
  return {.name = std::string(RuleOf(Form::kMedian)),
          .help =
              "Stops a trial if its best value is worse than the median of the other trials' "
              "running means",
          .options = SharedOptions(),
          .make = MakePercentileStopping};
}

Entry<Scheduler> PercentileEntry() {
  std::vector<Option> options = SharedOptions();
  options.push_back({.name = "percentile",
                     .fallback = 25.0,
                     .min = 0,
                     .max = 100,
                     .help = "A trial continues only while it is among this best percent"});
  return {.name = std::string(RuleOf(Form::kPercentile)),
          .help = "Stops a trial if it is not among the best `percentile` percent at its step",
          .options = std::move(options),
          .make = MakePercentileStopping};
}

}  // namespace attune::schedulers
