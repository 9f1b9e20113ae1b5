#include "searchers/tpe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "core/base/elementary.h"
#include "searchers/model/fronts.h"
#include "searchers/model/limit.h"
#include "searchers/model/nearest.h"
#include "searchers/model/rationale.h"
#include "searchers/model/untried.h"

namespace attune::searchers {
namespace {

constexpr double kGoodOfFeasible = 1.0 / 3;  // maximum share of good trials among those not failed
constexpr size_t kFewest = 3;                // minimum results of a group for a model
constexpr int64_t kMostPassedOver = 480;     // tried candidates that are drawn again
constexpr int64_t kQuickCandidates = 100;    // with more, a suggestion may take milliseconds
constexpr size_t kLatest = 64;               // trials among which running ones are counted
// With this number of running trials and the same number of results, the middle weighs as much as
// all good trials.
constexpr double kRunningForMiddle = 10;
constexpr double kFitWeight = 3;            // of the fit's log probability in the score
constexpr double kPriorWeightResults = 16;  // results that together weigh as much as the prior
constexpr double kSamePlace = 1e-9;         // distance between equal points, as a share of a range
constexpr double kTwinDistance = 1e-3;      // distance between twins, as a share of a range
constexpr double kTwinsKept = 0.2;          // share of twins that are proposed nevertheless
constexpr int kForksTried = 8;              // random forks that are tried to avoid a twin

Tpe::Options TpeOptions(const AlgorithmSpec& spec) {
  return {.startup_trials = std::get<int64_t>(spec.options.at("startup_trials")),
          .candidates = std::get<int64_t>(spec.options.at("candidates")),
          .good_fraction = std::get<double>(spec.options.at("good_fraction"))};
}

Result<std::unique_ptr<Searcher>> MakeTpe(const SweepSpec& spec) {
  if (auto error = CheckHasEndIfInfinite(spec, "TPE")) return *error;
  return {std::make_unique<Tpe>(spec)};
}

// The logarithm of a mixture of two densities; `share` is the weight of the first.
double LogMixture(double share, double first, double second) {
  const std::array logs{Log(share) + first, Log(1 - share) + second};
  return LogOfSum(logs);
}

}  // namespace

size_t Tpe::Group::IndexOf(uint32_t trial) const {
  return static_cast<size_t>(std::ranges::lower_bound(trials, trial) - trials.begin());
}

Tpe::Tpe(const SweepSpec& spec) : Tpe(spec, TpeOptions(spec.searcher)) {}

Tpe::Tpe(const SweepSpec& spec, Options options)
    : options_(options), seed_(spec.seed), record_(spec), sobol_(record_.cube().size(), spec.seed) {
  Rebuild();
}

void Tpe::Rebuild() {
  const Cube& cube = record_.cube();
  prior_ = Prior(record_);
  forks_.clear();
  for (size_t i = 0; i < cube.size(); ++i) {
    const auto depends = [&](const Parameter& parameter) {
      return std::ranges::find(parameter.when, cube.Name(i), &Condition::parent) !=
             parameter.when.end();
    };
    if (!cube.IsFinite() && std::ranges::any_of(cube.space().parameters(), depends))
      forks_.push_back(i);
  }
  groups_.clear();
  for (size_t i = 0; i < cube.groups(); ++i) {
    std::vector<size_t> dimensions;
    std::vector<Axis> axes;
    for (size_t j = 0; j < cube.size(); ++j) {
      const Cube::Dimension& dimension = cube.dimensions()[j];
      if (dimension.group != i) continue;
      dimensions.push_back(j);
      axes.push_back({dimension.kind, dimension.count});
    }
    groups_.push_back(
        {.dimensions = std::move(dimensions), .axes = axes, .others = WideParzen(axes)});
  }
  for (Group& group : groups_) {
    for (uint32_t trial = 0; trial < record_.size(); ++trial) Add(group, trial);
    const auto better = [this](uint32_t a, uint32_t b) { return Better(a, b); };
    std::ranges::sort(group.ranked, better);
    ChooseGood(group);
    Fit(group);
  }
}

Point Tpe::PointOf(const Group& group, uint32_t trial) const {
  Point point;
  for (const size_t dimension : group.dimensions)
    point.push_back(record_.Coordinate(trial, dimension));
  return point;
}

bool Tpe::UpdateRanking(const Event&, const std::optional<Record::News>&) { return false; }

bool Tpe::IsKnown(uint32_t trial) const {
  return record_.trial(trial).standing < Standing::kRunning;
}

std::optional<double> Tpe::ValueOf(uint32_t trial) const {
  if (record_.trial(trial).standing > Standing::kCut) return std::nullopt;
  return record_.trial(trial).value;
}

// A known trial belongs to the others until ChooseGood finds it good.
void Tpe::Add(Group& group, uint32_t trial) {
  if (std::isnan(record_.Coordinate(trial, group.dimensions[0]))) return;
  group.trials.push_back(trial);
  group.others.Append(PointOf(group, trial));
  group.others.SetIncluded(group.trials.size() - 1, IsKnown(trial));
  if (IsKnown(trial)) group.ranked.push_back(trial);
}

void Tpe::Rank(Group& group, uint32_t trial) {
  const size_t place = group.IndexOf(trial);
  if (place == group.trials.size() || group.trials[place] != trial) return;
  const auto before = std::ranges::find(group.ranked, trial);
  auto moved = before - group.ranked.begin();  // the first rank that changes
  const bool was_ranked = before != group.ranked.end();
  if (was_ranked) group.ranked.erase(before);
  bool without_value = was_ranked && moved >= CountValued(group);  // before or after the change
  if (IsKnown(trial)) {
    const auto better = [this](uint32_t a, uint32_t b) { return Better(a, b); };
    const auto after = std::ranges::upper_bound(group.ranked, trial, better);
    moved = std::min(moved, after - group.ranked.begin());
    without_value = without_value || !ValueOf(trial);
    group.ranked.insert(after, trial);
  }
  ChooseGood(group);
  if (without_value || std::cmp_less(moved, QuadraticFit::ResultsMax(group.axes))) Fit(group);
  const bool good = std::ranges::find(group.good, trial) != group.good.end();
  group.others.SetIncluded(place, IsKnown(trial) && !good);
}

void Tpe::ChooseGood(Group& group) {
  const size_t known = group.ranked.size();
  size_t count = 0;
  if (known >= kFewest) {
    const auto first_failed = std::ranges::partition_point(group.ranked, [this](uint32_t trial) {
      return record_.trial(trial).standing != Standing::kFailed;
    });
    const auto share_of = [](double share, auto total) {
      return static_cast<size_t>(std::ceil(share * static_cast<double>(total)));
    };
    // Without this limit, all other trials would be good if most trials failed.
    const double share_max = std::max(kGoodOfFeasible, options_.good_fraction);
    const size_t good_max = record_.objectives() > 1 ? kMaxGoodOfFronts : kMaxGood;
    count =
        std::min({share_of(options_.good_fraction, known),
                  share_of(share_max, first_failed - group.ranked.begin()), good_max, known - 1});
  }

  const std::vector<uint32_t> before = std::move(group.good);
  group.good = BestOf(record_, group.ranked, count, FrontOrder::kHypervolume);
  if (group.good == before) return;
  for (const uint32_t trial : before) {
    if (std::ranges::find(group.good, trial) != group.good.end()) continue;
    group.others.SetIncluded(group.IndexOf(trial), IsKnown(trial));
  }
  for (const uint32_t trial : group.good) group.others.SetIncluded(group.IndexOf(trial), false);
  group.best.reset();
  if (group.good.empty()) return;
  std::vector<Point> centres;
  for (const uint32_t trial : group.good) centres.push_back(PointOf(group, trial));
  group.best.emplace(group.axes, std::move(centres));
}

ptrdiff_t Tpe::CountValued(const Group& group) const {
  const auto has_value = [this](uint32_t trial) { return ValueOf(trial).has_value(); };
  return std::ranges::partition_point(group.ranked, has_value) - group.ranked.begin();
}

// A trial that was cut short may have a better value than trials that rank before it. Its value is
// raised to theirs. Among the trials without a value, the newest are used, because they are near
// the current search.
void Tpe::Fit(Group& group) {
  group.fit.reset();
  const auto valued = static_cast<size_t>(CountValued(group));
  const size_t results_max = QuadraticFit::ResultsMax(group.axes);
  if (record_.objectives() > 1 || results_max == 0 || valued == 0) return;
  std::vector<Point> points;
  std::vector<double> values;
  for (const uint32_t trial : std::span(group.ranked).first(std::min(results_max, valued))) {
    const double value = *ValueOf(trial);
    points.push_back(PointOf(group, trial));
    values.push_back(values.empty() ? value : std::max(value, values.back()));
  }
  std::vector<uint32_t> newest_first(group.ranked.begin() + static_cast<ptrdiff_t>(valued),
                                     group.ranked.end());
  const size_t count = std::min(newest_first.size(), QuadraticFit::FailedMax(group.axes));
  std::ranges::partial_sort(newest_first, newest_first.begin() + static_cast<ptrdiff_t>(count),
                            std::ranges::greater{});
  std::vector<Point> failed;
  for (const uint32_t trial : std::span(newest_first).first(count)) {
    failed.push_back(PointOf(group, trial));
  }
  group.fit = QuadraticFit::Make(group.axes, points, values, failed);
}

void Tpe::Observe(const Event& event) {
  const auto news = record_.Observe(event);
  if (UpdateRanking(event, news)) return Rebuild();
  if (!news) return;
  const bool changes_points =
      news->change == Record::Change::kRestarted || news->change == Record::Change::kPrior;
  if (changes_points) return Rebuild();
  for (Group& group : groups_) {
    if (news->change == Record::Change::kNew) {
      Add(group, news->trial);
    } else {
      Rank(group, news->trial);
    }
  }
}

bool Tpe::NeedsThread() const { return options_.candidates > kQuickCandidates; }

void Tpe::Adapt(const SweepSpec& spec) { Adapt(spec, TpeOptions(spec.searcher)); }

void Tpe::Adapt(const SweepSpec& spec, Options options) {
  options_ = options;
  record_.Adapt(spec);
  sobol_ = SobolSequence(record_.cube().size(), seed_);
  Rebuild();
}

void Tpe::Load(ArchiveReader& archive) {
  record_.Load(archive);
  Rebuild();
}

size_t Tpe::CountRunning(const Group& group) const {
  const size_t latest = std::min(kLatest, group.trials.size());
  return static_cast<size_t>(std::count_if(
      group.trials.end() - static_cast<ptrdiff_t>(latest), group.trials.end(),
      [this](uint32_t trial) { return record_.trial(trial).standing == Standing::kRunning; }));
}

bool Tpe::IsStartingUp() const {
  return std::ranges::all_of(groups_, [this](const Group& group) {
    return static_cast<int64_t>(group.ranked.size()) < options_.startup_trials;
  });
}

Suggestion Tpe::Suggest(ProposalNumber proposal) const {
  const Cube& cube = record_.cube();
  RandomStream random(seed_, proposal, "tpe/suggest");
  const bool starts = prior_.empty() && IsStartingUp();
  const bool repeats = RepeatsPrior(proposal);
  double ratio = 0;
  bool forks_at_random = false;
  const auto by_model = [&] {
    ratio = 0;
    Point proposed(cube.size(), kAbsent);
    return cube.Build([&](size_t dimension) {
      if (std::isnan(proposed[dimension]))
        ratio += Propose(cube.dimensions()[dimension].group, random, proposed);
      if (forks_at_random && std::ranges::find(forks_, dimension) != forks_.end())
        proposed[dimension] = cube.FromUniform(dimension, random.Uniform());
      return proposed[dimension];
    });
  };
  const auto propose = [&](int attempt) {
    forks_at_random = false;
    if (repeats && attempt == 0) return prior_.best()[proposal.value].config;
    if (starts || attempt >= kModelAttempts) {
      return cube.Build([&](size_t dimension) {
        const double u =
            attempt == 0 ? sobol_.Coordinate(dimension, proposal.value) : random.Uniform();
        return cube.FromUniform(dimension, u);
      });
    }
    Config config = by_model();
    if (forks_.empty() || !IsTwin(config) || random.Uniform() < kTwinsKept) return config;
    forks_at_random = true;
    for (int tries = 0; tries < kForksTried && IsTwin(config); ++tries) config = by_model();
    return config;
  };
  return ProposeUntried(record_, propose, [&](int attempt, const Config& config) {
    if (repeats && attempt == 0) return prior_.ExplainBest(proposal);
    if (forks_at_random) {
      return Rationale{.rule = "fork",
                       .results = static_cast<int64_t>(groups_.front().ranked.size()),
                       .text = "the model proposed a tried point: " + ForkText(config) +
                               " drawn at random, the other parameters by the model"};
    }
    if (!starts) return Explain(config, ratio);
    return ExplainStartPoint(
        proposal, attempt,
        "until " + std::to_string(options_.startup_trials) + " results are known");
  });
}

bool Tpe::IsTwin(const Config& config) const {
  return HasTrialAt(record_, record_.cube().Place(config).value(), kTwinDistance);
}

std::string Tpe::ForkText(const Config& config) const {
  std::string text;
  for (const size_t dimension : forks_) {
    const std::string& name = record_.cube().Name(dimension);
    const Value* value = config.Find(name);
    if (value != nullptr) text += (text.empty() ? "" : ", ") + name + " " + FormatValue(*value);
  }
  return text;
}

Rationale Tpe::Explain(const Config& config, double ratio) const {
  const Point point = record_.cube().Place(config).value();
  std::vector<uint32_t> good;
  size_t results = 0;
  std::optional<uint32_t> best;
  for (const Group& group : groups_) {
    if (group.ranked.empty()) continue;
    if (!best || Better(group.ranked.front(), *best)) best = group.ranked.front();
  }
  const Group* fitted = nullptr;  // the group with the best trial whose fit explains most
  for (const Group& group : groups_) {
    if (std::isnan(point[group.dimensions[0]])) continue;
    good.insert(good.end(), group.good.begin(), group.good.end());
    results = std::max(results, group.ranked.size());
    if (!group.fit || group.ranked.front() != *best) continue;
    if (!fitted || group.fit->explained() > fitted->fit->explained()) fitted = &group;
  }
  if (good.empty() && !prior_.empty()) return prior_.ExplainDraw();
  if (good.empty()) return {.rule = "random", .text = "drawn at random: no result is good"};
  const uint32_t near = Nearest(record_, good, point);
  const std::string changes = DescribeChanges(record_, near, config);
  std::string chance;
  if (fitted) {
    Point place;
    for (const size_t dimension : fitted->dimensions) place.push_back(point[dimension]);
    chance = ", chance of a new best " + FormatShort(Exp(fitted->fit->LogImprovementChance(place)));
  }
  return {.rule = "density_ratio",
          .from = {TrialNumber(near)},
          .results = static_cast<int64_t>(results),
          .score = ratio,
          .text = "model of " + std::to_string(results) + " results" + OrderText() +
                  ": near trial " + std::to_string(near) + (changes.empty() ? "" : ", " + changes) +
                  "; log density ratio " + FormatShort(ratio) + chance};
}

// A fit that falls towards a corner may have its minimum there every time.
bool Tpe::IsTriedCorner(const Point& point) const {
  const auto at_an_end = [](double at) { return at < kSamePlace || at > 1 - kSamePlace; };
  return std::ranges::all_of(point, at_an_end) && HasTrialAt(record_, point, kSamePlace);
}

// Every second candidate is moved to an estimated minimum of the fit, unless this is a tried
// corner. If the group is the whole of a finite space, tried points are passed over.
std::vector<Point> Tpe::DrawCandidates(size_t group_index, double middle, double prior_share,
                                       RandomStream& random) const {
  const Cube& cube = record_.cube();
  const Group& group = groups_[group_index];
  const bool whole = groups_.size() == 1 && cube.IsFinite();
  std::vector<Point> candidates;
  for (int64_t tries = 0; std::cmp_less(candidates.size(), options_.candidates); ++tries) {
    const bool from_prior = prior_share > 0 && (!group.best || random.Uniform() < prior_share);
    Point candidate =
        from_prior ? prior_.DensityOf(group_index)->Draw(random) : group.best->Draw(random, middle);
    const bool fitted = group.fit && tries % 2 == 0 && tries < 2 * options_.candidates;
    const auto snap = [&](Point& point) {
      for (size_t i = 0; i < point.size(); ++i) point[i] = cube.Snap(group.dimensions[i], point[i]);
    };
    if (fitted) {
      Point least = group.fit->Draw(random, candidate);
      snap(least);
      if (groups_.size() > 1 || !IsTriedCorner(least)) candidate = std::move(least);
    }
    snap(candidate);
    const bool enough = tries >= options_.candidates + kMostPassedOver;
    if (whole && !enough && record_.HasTried(candidate)) continue;
    candidates.push_back(std::move(candidate));
    if (enough) break;
  }
  return candidates;
}

double Tpe::Propose(size_t group_index, RandomStream& random, Point& point) const {
  const Cube& cube = record_.cube();
  const Group& group = groups_[group_index];
  const RankedParzen* prior = prior_.empty() ? nullptr : prior_.DensityOf(group_index);
  if (!group.best && prior == nullptr) {
    for (const size_t dimension : group.dimensions) {
      point[dimension] = cube.FromUniform(dimension, random.Uniform());
    }
    return 0;
  }

  const auto running = static_cast<double>(CountRunning(group));
  const double middle =
      group.ranked.empty() || record_.objectives() > 1
          ? 0  // the middle of a front is far from the front
          : running / kRunningForMiddle * running / static_cast<double>(group.ranked.size());

  const double share =
      prior == nullptr
          ? 0
          : kPriorWeightResults / (kPriorWeightResults + static_cast<double>(group.ranked.size()));

  const std::vector<Point> candidates = DrawCandidates(group_index, middle, share, random);
  std::vector<double> gains;
  std::vector<double> chances;
  for (const Point& candidate : candidates) {
    double density = group.best ? group.best->LogDensity(candidate, middle) : 0;
    if (share > 0) {
      const double believed = prior->LogDensity(candidate);
      density = group.best ? LogMixture(share, believed, density) : believed;
    }
    chances.push_back(group.fit ? kFitWeight * group.fit->explained() *
                                      group.fit->LogImprovementChance(candidate)
                                : 0);
    gains.push_back(density + chances.back());
  }
  const auto [best, score] = group.others.LargestDifference(candidates, gains);
  for (size_t i = 0; i < group.dimensions.size(); ++i) {
    point[group.dimensions[i]] = candidates[best][i];
  }
  return score - chances[best];
}

Entry<Searcher> TpeEntry() {
  return {
      .name = "tpe",
      .help = "Proposes points near good results (tree-structured Parzen estimator)",
      .options =
          {{.name = "startup_trials",
            .fallback = int64_t{6},
            .min = 1,
            .help = "Number of ended trials before the model is used; until then a Sobol sequence"},
           {.name = "candidates",
            .fallback = int64_t{24},
            .min = 1,
            .max = 10'000,
            .help = "Number of candidates for each proposal; the most promising one is chosen"},
           {.name = "good_fraction",
            .fallback = 0.2,
            .min = 0.01,
            .max = 0.5,
            .help = "Fraction of the results that are good, at most 25 results"}},
      .make = MakeTpe};
}

}  // namespace attune::searchers
