#include "searchers/bohb.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "core/base/random.h"
#include "searchers/model/limit.h"
#include "searchers/model/untried.h"

namespace attune::searchers {
namespace {

Bohb::Options BohbOptions(const AlgorithmSpec& spec) {
  return {.min_points = std::get<int64_t>(spec.options.at("min_points")),
          .candidates = std::get<int64_t>(spec.options.at("candidates")),
          .good_fraction = std::get<double>(spec.options.at("good_fraction")),
          .random_fraction = std::get<double>(spec.options.at("random_fraction"))};
}

int64_t MinPoints(const Bohb::Options& options, const SweepSpec& spec) {
  if (options.min_points > 0) return options.min_points;
  return static_cast<int64_t>(Cube(spec.space).size()) + 2;
}

Tpe::Options ModelOf(const SweepSpec& spec) {
  const Bohb::Options options = BohbOptions(spec.searcher);
  return {.startup_trials = MinPoints(options, spec),
          .candidates = options.candidates,
          .good_fraction = options.good_fraction};
}

Result<std::unique_ptr<Searcher>> MakeBohb(const SweepSpec& spec) {
  if (auto error = CheckOneMetric(spec, "bohb")) return *error;
  if (auto error = CheckHasEndIfInfinite(spec, "BOHB")) return *error;
  return {std::make_unique<Bohb>(spec)};
}

}  // namespace

Bohb::Bohb(const SweepSpec& spec) : Tpe(spec, ModelOf(spec)), options_(BohbOptions(spec.searcher)) {
  options_.min_points = MinPoints(options_, spec);
}

Step Bohb::ReachedStep(uint32_t trial) const {
  return trial < curves_.size() ? curves_[trial].reached : Step(0);
}

Step Bohb::RankedStep(uint32_t trial) const {
  return fidelity_ > Step(0) ? std::min(ReachedStep(trial), fidelity_) : ReachedStep(trial);
}

double Bohb::RankedValue(uint32_t trial) const {
  const Curve& curve = curves_[trial];
  const auto later = std::ranges::upper_bound(curve.steps, RankedStep(trial));
  if (later == curve.steps.begin()) return std::numeric_limits<double>::infinity();
  return curve.values[static_cast<size_t>(later - curve.steps.begin()) - 1];
}

bool Bohb::IsKnown(uint32_t trial) const {
  const Standing standing = record().trial(trial).standing;
  if (standing == Standing::kInfeasible || standing == Standing::kFailed) return true;
  if (standing == Standing::kNone) return false;
  return ReachedStep(trial) > Step(0);
}

bool Bohb::Better(uint32_t a, uint32_t b) const {
  if (RankedStep(a) != RankedStep(b)) return RankedStep(a) > RankedStep(b);
  if (RankedStep(a) == Step(0)) return record().Better(a, b);
  const double value_a = RankedValue(a);
  const double value_b = RankedValue(b);
  return value_a != value_b ? value_a < value_b : a < b;
}

std::optional<double> Bohb::ValueOf(uint32_t trial) const {
  return RankedStep(trial) > Step(0) ? std::optional(RankedValue(trial)) : std::nullopt;
}

std::string Bohb::OrderText() const {
  if (fidelity_ == Step(0)) return ", those with more steps first";
  return fidelity_ == kEnd ? ", completed ones first"
                           : ", those at step " + std::to_string(fidelity_.value) + " first";
}

bool Bohb::AddReport(uint32_t trial, Step step) {
  const Trial& now = record().trial(trial);
  Curve& curve = curves_[trial];
  if (!now.has_value || (!curve.values.empty() && now.value >= curve.values.back())) return false;
  while (!curve.steps.empty() && curve.steps.back() >= step) {  // a retry repeats these steps
    curve.steps.pop_back();
    curve.values.pop_back();
  }
  curve.steps.push_back(step);
  curve.values.push_back(now.value);
  return step <= RankedStep(trial);
}

void Bohb::UpdateReached(uint32_t trial) {
  const Trial& now = record().trial(trial);
  Curve& curve = curves_[trial];
  switch (now.outcome) {
    case Standing::kComplete:
      curve.reached = kEnd;
      break;
    case Standing::kCut:
      curve.reached = now.step;
      break;
    case Standing::kRunning:  // keeps the step of its last pause
      break;
    default:
      curve.reached = Step(0);
  }
}

void Bohb::UpdateCounts(uint32_t trial) {
  Curve& curve = curves_[trial];
  const Step now = record().trial(trial).placed ? curve.reached : Step(0);
  const Step before = std::exchange(curve.counted, now);
  if (now == before) return;
  if (before > Step(0) && --reached_counts_[before] == 0) reached_counts_.erase(before);
  if (now > Step(0)) ++reached_counts_[now];
}

bool Bohb::ChooseFidelity() {
  Step fidelity{0};
  int64_t trials = 0;
  for (const auto& [step, count] : reached_counts_) {
    trials += count;
    if (trials < options_.min_points) continue;
    fidelity = step;
    break;
  }
  return std::exchange(fidelity_, fidelity) != fidelity;
}

bool Bohb::UpdateRanking(const Event& event, const std::optional<Record::News>& news) {
  if (const auto* reported = std::get_if<TrialReported>(&event.fact)) {
    const uint32_t trial = reported->attempt.trial.number.value;
    if (trial < curves_.size() && AddReport(trial, reported->report.step)) return true;
  }
  if (!news || news->change == Record::Change::kPrior) return false;
  curves_.resize(record().size());
  Curve& curve = curves_[news->trial];
  if (news->change != Record::Change::kStandingChanged) {
    curve = {.counted = curve.counted};
    UpdateCounts(news->trial);
    return ChooseFidelity();
  }
  UpdateReached(news->trial);
  UpdateCounts(news->trial);
  return ChooseFidelity();
}

Suggestion Bohb::Suggest(ProposalNumber proposal) const {
  const bool may_be_random = fidelity_ > Step(0) && !RepeatsPrior(proposal);
  RandomStream random(seed(), proposal, "bohb/random");
  if (!may_be_random || random.Uniform() >= options_.random_fraction) return Tpe::Suggest(proposal);
  const Cube& cube = record().cube();
  const auto draw = [&](int) {
    return cube.Build(
        [&](size_t dimension) { return cube.FromUniform(dimension, random.Uniform()); });
  };
  return ProposeUntried(record(), draw, [](int, const Config&) {
    return Rationale{.rule = "random", .text = "drawn at random, as random_fraction asks"};
  });
}

void Bohb::Adapt(const SweepSpec& spec) {
  options_ = BohbOptions(spec.searcher);
  options_.min_points = MinPoints(options_, spec);
  Tpe::Adapt(spec, ModelOf(spec));
  for (uint32_t trial = 0; trial < curves_.size(); ++trial) {
    UpdateReached(trial);  // the record does not report changes of trials outside the ranges
    UpdateCounts(trial);
  }
  ChooseFidelity();
  Rebuild();
}

void Bohb::Save(ArchiveWriter& archive) const {
  Tpe::Save(archive);
  for (const Curve& curve : curves_) archive(curve.steps, curve.values, curve.reached);
}

void Bohb::Load(ArchiveReader& archive) {
  Tpe::Load(archive);
  curves_.assign(record().size(), {});
  for (Curve& curve : curves_) {
    archive(curve.steps, curve.values, curve.reached);
    if (curve.steps.size() != curve.values.size()) archive.Fail();
    if (!archive.ok()) break;
  }
  if (!archive.ok()) curves_.assign(record().size(), {});
  reached_counts_.clear();
  for (uint32_t trial = 0; trial < curves_.size(); ++trial) UpdateCounts(trial);
  ChooseFidelity();
  Rebuild();
}

Entry<Searcher> BohbEntry() {
  return {
      .name = "bohb",
      .help = "TPE on the results at the deepest step that enough trials have reached",
      .options = {{.name = "min_points",
                   .fallback = int64_t{0},
                   .min = 0,
                   .max = 10'000,
                   .help = "Number of trials that must have reached a step before it is used; 0: "
                           "number of parameters + 2"},
                  {.name = "candidates",
                   .fallback = int64_t{64},
                   .min = 1,
                   .max = 10'000,
                   .help =
                       "Number of candidates for each proposal; the most promising one is chosen"},
                  {.name = "good_fraction",
                   .fallback = 0.15,
                   .min = 0.01,
                   .max = 0.5,
                   .help = "Fraction of the results that are good, at most 25 results"},
                  {.name = "random_fraction",
                   .fallback = 0.33,
                   .min = 0,
                   .max = 1,
                   .help = "Fraction of the proposals that are random"}},
      .make = MakeBohb};
}

}  // namespace attune::searchers
