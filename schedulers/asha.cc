#include "schedulers/asha.h"

#include <algorithm>
#include <limits>

#include "core/base/check.h"

namespace attune::schedulers {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string Text(Step step) { return std::to_string(step.value); }

Asha::Options OptionsOf(const SweepSpec& spec) {
  return {.min = Step(std::get<int64_t>(spec.scheduler.options.at("min"))),
          .max = spec.max_step,
          .reduction_factor = std::get<int64_t>(spec.scheduler.options.at("reduction_factor"))};
}

Result<std::unique_ptr<Scheduler>> Make(const SweepSpec& spec) {
  const Asha::Options options = OptionsOf(spec);
  if (options.max == Step(0)) {
    return Error{ErrorCode::kInvalid,
                 "scheduler.max: asha needs max, the step at which a trial is complete"};
  }
  if (options.min >= options.max) {
    return Error{ErrorCode::kInvalid, "scheduler.min: " + Text(options.min) + " is not below max " +
                                          Text(options.max) +
                                          ", so no trial could be stopped; lower min or raise max"};
  }
  return {std::make_unique<Asha>(spec.objective(), options)};
}

}  // namespace

Asha::Asha(Objective objective, Options options) : objective_(std::move(objective)) {
  SetRungs(options);
}

void Asha::SetRungs(const Options& options) {
  ATTUNE_CHECK(options.min >= Step(1) && options.min < options.max);
  ATTUNE_CHECK(options.reduction_factor >= 2);
  reduction_factor_ = options.reduction_factor;
  rungs_.clear();
  for (int64_t step = options.min.value; step < options.max.value; step *= reduction_factor_) {
    rungs_.push_back({Step(step), {}});
    if (step > options.max.value / reduction_factor_) break;  // the product is beyond max
  }
  rungs_.push_back({options.max, {}});
}

Verdict Asha::Judge(const TrialView& trial, const Report& report) const {
  Reason reason{.rule = "asha", .step = report.step};
  const Rung* rung = RungFor(trial.id.number, report.step);
  if (rung == nullptr) {
    const auto next = NextMilestone(trial, report.step);
    reason.text =
        "goes on at step " + Text(report.step) +
        (next ? ": nothing is decided before rung " + Text(*next) : ": the last rung is behind it");
    return Verdict::Continue(std::move(reason));
  }

  const auto place = static_cast<int64_t>(PlaceIn(*rung, ValueOf(report)));
  const int64_t peers = std::ssize(rung->values) + 1;
  const int64_t going_on = peers / reduction_factor_;
  const bool last = rung == &rungs_.back();

  reason.rung = rung->step;
  reason.value = ValueOf(report);
  reason.rank = place + 1;
  reason.peers = peers;
  if (going_on > 0) {
    // The values of the rung with this one put in at its place.
    if (going_on == reason.rank) {
      reason.cutoff = reason.value;
    } else {
      reason.cutoff = rung->values[going_on - (going_on > reason.rank ? 2 : 1)];
    }
  }

  const bool stops = !last && going_on > 0 && reason.rank > going_on;
  reason.text = std::string(last    ? "completes"
                            : stops ? "stopped"
                                    : "goes on") +
                " at step " + Text(report.step) + ": " + Standing(report, reason) +
                (last ? ", the last" : Rule(going_on, reason.cutoff));
  return stops ? Verdict::Stop(std::move(reason)) : Verdict::Continue(std::move(reason));
}

std::string Asha::Standing(const Report& report, const Reason& reason) const {
  const bool reported = report.metrics.contains(objective_.metric);
  return objective_.metric + " " + (reported ? FormatShort(reason.value) : "(not reported)") +
         " is rank " + std::to_string(reason.rank) + " of " + std::to_string(reason.peers) +
         " at rung " + Text(reason.rung);
}

std::string Asha::Rule(int64_t going_on, double cutoff) const {
  if (going_on == 0) {
    return "; none is stopped before " + std::to_string(reduction_factor_) + " have reached it";
  }
  const std::string who =
      going_on == 1 ? "only the best goes on" : "the best " + std::to_string(going_on) + " go on";
  return "; " + who + " (cutoff " + FormatShort(cutoff) + ")";
}

std::optional<Step> Asha::NextMilestone(const TrialView& trial, Step after) const {
  const size_t next = std::max(Passed(trial.id.number), RungsUpTo(after));
  if (next == rungs_.size()) return std::nullopt;
  return rungs_[next].step;
}

void Asha::Observe(const Event& event) {
  const auto* reported = std::get_if<TrialReported>(&event.fact);
  if (reported == nullptr) return;
  const TrialNumber trial = reported->attempt.trial.number;
  const Rung* found = RungFor(trial, reported->report.step);
  if (found == nullptr) return;

  Rung& rung = rungs_[static_cast<size_t>(found - rungs_.data())];
  const double value = ValueOf(reported->report);
  rung.values.insert(rung.values.begin() + static_cast<ptrdiff_t>(PlaceIn(rung, value)), value);
  passed_[trial] = reported->report.step;
}

void Asha::Adapt(const SweepSpec& spec) {
  std::map<Step, std::vector<double>> values;
  for (Rung& rung : rungs_) values[rung.step] = std::move(rung.values);
  SetRungs(OptionsOf(spec));
  for (Rung& rung : rungs_) rung.values = std::move(values[rung.step]);
}

void Asha::Save(ArchiveWriter& archive) const {
  std::vector<std::vector<double>> values;
  for (const Rung& rung : rungs_) values.push_back(rung.values);
  archive(values, passed_);
}

void Asha::Load(ArchiveReader& archive) {
  std::vector<std::vector<double>> values;
  archive(values, passed_);
  if (values.size() != rungs_.size()) return archive.Fail();
  for (size_t i = 0; i < rungs_.size(); ++i) rungs_[i].values = std::move(values[i]);
}

std::vector<Step> Asha::Rungs() const {
  std::vector<Step> steps;
  for (const Rung& rung : rungs_) steps.push_back(rung.step);
  return steps;
}

const Asha::Rung* Asha::RungFor(TrialNumber trial, Step step) const {
  const size_t reached = RungsUpTo(step);
  return reached > Passed(trial) ? &rungs_[reached - 1] : nullptr;
}

size_t Asha::Passed(TrialNumber trial) const {
  const auto found = passed_.find(trial);
  return found == passed_.end() ? 0 : RungsUpTo(found->second);
}

size_t Asha::RungsUpTo(Step step) const {
  const auto beyond =
      std::upper_bound(rungs_.begin(), rungs_.end(), step,
                       [](Step wanted, const Rung& rung) { return wanted < rung.step; });
  return static_cast<size_t>(beyond - rungs_.begin());
}

double Asha::ValueOf(const Report& report) const {
  const auto found = report.metrics.find(objective_.metric);
  return found == report.metrics.end() ? kNaN : found->second;
}

size_t Asha::PlaceIn(const Rung& rung, double value) const {
  const auto place =
      std::upper_bound(rung.values.begin(), rung.values.end(), value,
                       [this](double a, double b) { return objective_.Better(a, b); });
  return static_cast<size_t>(place - rung.values.begin());
}

Entry<Scheduler> AshaEntry() {
  return {.name = "asha",
          .help = "stops trials that are not among the best at growing steps; needs max",
          .options = {{.name = "min",
                       .fallback = int64_t{1},
                       .min = 1,
                       .help = "step of the first rung: the least a trial trains"},
                      {.name = "reduction_factor",
                       .fallback = int64_t{4},
                       .min = 2,
                       .help = "one in so many goes on, and each rung is so many times further"}},
          .make = Make};
}

}  // namespace attune::schedulers
