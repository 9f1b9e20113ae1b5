#include "searchers/gp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "searchers/gaussian/hypervolume.h"
#include "searchers/gaussian/maximise.h"
#include "searchers/gaussian/process.h"
#include "searchers/gaussian/trust_region.h"
#include "searchers/model/draw.h"
#include "searchers/model/fronts.h"
#include "searchers/model/limit.h"
#include "searchers/model/nearest.h"
#include "searchers/model/rationale.h"
#include "searchers/model/untried.h"

namespace attune::searchers {
namespace {

constexpr size_t kRoughFitTrials = 48;  // trials of the first fit, which has several starts
constexpr size_t kFitTrials = 100;      // trials of the second fit, which starts at the first's end
constexpr int kRoughEvaluations = 20;   // evaluations per start of the first fit
constexpr int kRefitEvaluations = 10;   // evaluations of the second fit
constexpr size_t kMostPending = 100;
constexpr size_t kGuesses = 8;     // sampled outcomes of each pending trial
constexpr size_t kGood = 5;        // best trials near which candidates are drawn
constexpr size_t kNeighbours = 5;  // trials with which a failed one is compared
constexpr double kBelief = 2;      // weight of the earlier sweeps' density, divided by the results

Gp::Options GpOptions(const AlgorithmSpec& spec) {
  return {.startup_trials = std::get<int64_t>(spec.options.at("startup_trials"))};
}

Result<std::unique_ptr<Searcher>> MakeGp(const SweepSpec& spec) {
  if (auto error = CheckHasEndIfInfinite(spec, "gp")) return *error;
  return {std::make_unique<Gp>(spec)};
}

// `count` trials, at even distances in the ranking.
std::vector<uint32_t> SpreadByRank(const std::vector<uint32_t>& best_first, size_t count) {
  if (best_first.size() <= count) return best_first;
  std::vector<uint32_t> chosen;
  for (size_t i = 0; i < count; ++i) chosen.push_back(best_first[i * best_first.size() / count]);
  return chosen;
}

// `count` trials: one half are the best, the other half the newest of the rest.
std::vector<uint32_t> BestAndNewest(const std::vector<uint32_t>& best_first, size_t count) {
  if (best_first.size() <= count) return best_first;
  const auto middle = best_first.begin() + static_cast<ptrdiff_t>(count / 2);
  std::vector<uint32_t> others(middle, best_first.end());
  std::ranges::sort(others, std::ranges::greater{});
  const uint32_t oldest = others[count - count / 2 - 1];
  std::vector<uint32_t> chosen(best_first.begin(), middle);
  std::copy_if(middle, best_first.end(), std::back_inserter(chosen),
               [oldest](uint32_t trial) { return trial >= oldest; });
  return chosen;
}

}  // namespace

Gp::Gp(const SweepSpec& spec)
    : options_(GpOptions(spec.searcher)),
      seed_(spec.seed),
      record_(spec),
      sobol_(record_.cube().size(), spec.seed) {}

void Gp::Observe(const Event& event) {
  const auto news = record_.Observe(event);
  if (news && news->change == Record::Change::kPrior) prior_ = Prior(record_);
}

void Gp::Load(ArchiveReader& archive) {
  record_.Load(archive);
  prior_ = Prior(record_);
}

void Gp::Adapt(const SweepSpec& spec) {
  options_ = GpOptions(spec.searcher);
  record_.Adapt(spec);
  prior_ = Prior(record_);
  sobol_ = SobolSequence(record_.cube().size(), seed_);
}

size_t Gp::StartupTrials() const {
  if (options_.startup_trials > 0) return static_cast<size_t>(options_.startup_trials);
  return std::min<size_t>(4 + record_.cube().size(), 20);
}

Point Gp::PointOf(uint32_t trial) const {
  Point point;
  for (size_t k = 0; k < record_.cube().size(); ++k) point.push_back(record_.Coordinate(trial, k));
  return point;
}

std::vector<uint32_t> Gp::EndedTrials() const {
  std::vector<uint32_t> known;
  for (uint32_t trial = 0; trial < record_.size(); ++trial) {
    if (record_.trial(trial).standing < Standing::kRunning) known.push_back(trial);
  }
  std::ranges::sort(known, [this](uint32_t a, uint32_t b) { return record_.Better(a, b); });
  if (record_.objectives() == 1) return known;
  return BestOf(record_, known, known.size(), FrontOrder::kHypervolume);
}

std::vector<uint32_t> Gp::RunningTrials() const {
  std::vector<uint32_t> pending;
  for (uint32_t trial = record_.size(); trial-- > 0 && pending.size() < kMostPending;) {
    if (record_.trial(trial).standing == Standing::kRunning) pending.push_back(trial);
  }
  return pending;
}

// If a configuration is the cause of a failure, most of its neighbours fail too. A listed value has
// no neighbours: it is the cause if every trial with this value failed.
std::vector<uint32_t> Gp::FailedByChance(const std::vector<uint32_t>& best_first) const {
  const auto failed = [this](uint32_t trial) {
    return record_.trial(trial).standing == Standing::kFailed;
  };
  const auto is_cause = [&](uint32_t trial, size_t dimension) {
    if (record_.cube().dimensions()[dimension].kind != Cube::Kind::kChoice) return false;
    if (std::isnan(record_.Coordinate(trial, dimension))) return false;
    return std::ranges::all_of(best_first, [&](uint32_t other) {
      return failed(other) ||
             record_.Coordinate(other, dimension) != record_.Coordinate(trial, dimension);
    });
  };
  std::vector<uint32_t> by_chance;
  // Failed trials are at the end, in the order of their numbers.
  const auto first = best_first.end() - std::min(std::ranges::count_if(best_first, failed),
                                                 ptrdiff_t{kMostObservations});
  for (auto trial = first; trial != best_first.end(); ++trial) {
    bool has_cause = false;
    for (size_t k = 0; k < record_.cube().size(); ++k) has_cause = has_cause || is_cause(*trial, k);
    if (has_cause) continue;
    std::vector<uint32_t> near = NearestOf(record_, best_first, PointOf(*trial), kNeighbours + 1);
    if (std::erase(near, *trial) == 0) near.pop_back();
    if (std::ranges::count_if(near, failed) * 2 < std::ssize(near)) by_chance.push_back(*trial);
  }
  return by_chance;
}

Process Gp::MakeProcess(size_t objective, const std::vector<uint32_t>& best_first,
                        const std::vector<uint32_t>& pending, RandomStream& random) const {
  const Cube& cube = record_.cube();
  const auto rows = [&](const std::vector<uint32_t>& trials) {
    Eigen::MatrixXd points(std::ssize(trials), static_cast<Eigen::Index>(cube.size()));
    for (Eigen::Index i = 0; i < points.rows(); ++i) {
      points.row(i) = Encode(cube, PointOf(trials[static_cast<size_t>(i)]));
    }
    return points;
  };
  const auto fit = [&](const std::vector<uint32_t>& trials,
                       const std::vector<FittedParameters>& starts, int evaluations) {
    return FitParameters(cube, rows(trials), Outcomes(record_, trials, objective), starts,
                         evaluations);
  };
  FittedParameters fitted =
      fit(SpreadByRank(best_first, kRoughFitTrials), StartingParameters(cube), kRoughEvaluations);
  if (best_first.size() > kRoughFitTrials) {
    fitted = fit(BestAndNewest(best_first, kFitTrials), {fitted}, kRefitEvaluations);
  }
  const std::vector<uint32_t> observed = BestAndNewest(best_first, kMostObservations);
  Eigen::MatrixXd draws(std::ssize(pending), pending.empty() ? 1 : kGuesses);
  for (double& draw : draws.reshaped()) draw = StandardNormal(random);
  return Process(cube, fitted, rows(observed), Outcomes(record_, observed, objective),
                 rows(pending), draws);
}

std::unique_ptr<Acquisition> Gp::MakeAcquisition(const std::vector<uint32_t>& best_first,
                                                 const std::vector<uint32_t>& pending,
                                                 ProposalNumber proposal) const {
  RandomStream random(seed_, proposal, "gp/guesses");
  if (record_.objectives() == 1)
    return std::make_unique<Process>(MakeProcess(0, best_first, pending, random));
  std::vector<Process> objectives;
  for (size_t k = 0; k < record_.objectives(); ++k) {
    objectives.push_back(MakeProcess(k, best_first, pending, random));
  }
  return std::make_unique<HypervolumeImprovement>(std::move(objectives));
}

Box Gp::SearchRegion(uint32_t best, const Acquisition& acquisition) const {
  const size_t n = record_.cube().size();
  if (n <= kGlobalDimensionsMax || record_.objectives() > 1) return {Point(n, 0.0), Point(n, 1.0)};
  std::vector<double> losses;
  for (uint32_t trial = 0; trial < record_.size(); ++trial) {
    const Trial& known = record_.trial(trial);
    if (known.standing >= Standing::kRunning) continue;
    const bool complete = known.standing == Standing::kComplete;
    losses.push_back(complete ? known.value : std::numeric_limits<double>::infinity());
  }
  losses.erase(losses.begin(), losses.begin() + static_cast<ptrdiff_t>(StartupTrials()));
  std::vector<double> lengthscales;
  for (size_t k = 0; k < n; ++k) lengthscales.push_back(std::min(acquisition.Lengthscale(k), 1.0));
  return TrustRegion(PointOf(best), lengthscales, TrustRegionSide(losses, n));
}

std::optional<ScoredPoint> Gp::MostPromisingPoint(std::vector<uint32_t> best_first,
                                                  ProposalNumber proposal) const {
  const Cube& cube = record_.cube();
  // If the best point was tried already, the next best one is proposed. This is not done after
  // failures and early ends: they say too little about their points, and the search would stay near
  // a bad point for long.
  const bool skips_tried = std::ranges::none_of(best_first, [this](uint32_t trial) {
    const Standing standing = record_.trial(trial).standing;
    return standing == Standing::kCut || standing == Standing::kFailed;
  });
  std::vector<uint32_t> pending = RunningTrials();
  for (const uint32_t trial : FailedByChance(best_first)) {
    std::erase(best_first, trial);
    if (pending.size() < kMostPending) pending.push_back(trial);
  }
  const std::unique_ptr<Acquisition> model = MakeAcquisition(best_first, pending, proposal);
  std::vector<Point> good;
  for (size_t i = 0; i < std::min(best_first.size(), kGood); ++i) {
    good.push_back(PointOf(best_first[i]));
  }
  RandomStream random(seed_, proposal, "gp/suggest");
  const auto is_new = [&](const Point& point) {
    return cube.IsFinite() ? !record_.HasTried(point)
                           : !skips_tried || !HasTrialAt(record_, point, 0);
  };
  const Belief belief{prior_.empty() ? nullptr : &prior_,
                      kBelief / static_cast<double>(best_first.size())};
  return MaximiseAcquisition(cube, *model, belief, SearchRegion(best_first[0], *model), good,
                             is_new, random);
}

Suggestion Gp::Suggest(ProposalNumber proposal) const {
  const Cube& cube = record_.cube();
  const std::vector<uint32_t> known = EndedTrials();
  const bool starts = known.size() < StartupTrials() || cube.size() == 0;
  std::optional<ScoredPoint> found;
  const bool repeats = proposal.value < prior_.best().size();
  const bool believes = starts && !prior_.empty();
  if (!starts && !repeats) found = MostPromisingPoint(known, proposal);
  if (found && HasTrialAt(record_, found->point, 0)) found.reset();
  RandomStream random(seed_, proposal, "gp/random");
  const auto propose = [&](int attempt) {
    if (attempt == 0 && repeats) return prior_.best()[proposal.value].config;
    if (believes && attempt < kModelAttempts) return prior_.Draw(cube, random);
    return cube.Build([&](size_t k) {
      if (attempt == 0 && found) return found->point[k];
      const bool in_turn = starts && attempt == 0;
      const double u = in_turn ? sobol_.Coordinate(k, proposal.value) : random.Uniform();
      return cube.FromUniform(k, u);
    });
  };
  return ProposeUntried(record_, propose, [&](int attempt, const Config& config) {
    if (attempt == 0 && repeats) return prior_.ExplainBest(proposal);
    if (believes) return prior_.ExplainDraw();
    if (attempt == 0 && found) return Explain(known, config, found->log_improvement);
    if (starts) {
      return ExplainStartPoint(proposal, attempt,
                               "until " + std::to_string(StartupTrials()) + " trials have ended");
    }
    return Rationale{.rule = "random", .text = "drawn at random: the point of the model was tried"};
  });
}

Rationale Gp::Explain(const std::vector<uint32_t>& best_first, const Config& config,
                      double log_improvement) const {
  const std::vector<uint32_t> good(
      best_first.begin(),
      best_first.begin() + static_cast<ptrdiff_t>(std::min(best_first.size(), kGood)));
  const uint32_t near = Nearest(record_, good, record_.cube().Place(config).value());
  const std::string changes = DescribeChanges(record_, near, config);
  const auto observed = static_cast<int64_t>(std::min(best_first.size(), kMostObservations));
  return {.rule = "expected_improvement",
          .from = {TrialNumber(near)},
          .results = observed,
          .score = log_improvement,
          .text = "model of " + std::to_string(observed) + " results: near trial " +
                  std::to_string(near) + (changes.empty() ? "" : ", " + changes) +
                  "; log expected " +
                  (record_.objectives() > 1 ? "hypervolume improvement " : "improvement ") +
                  FormatShort(log_improvement)};
}

Entry<Searcher> GpEntry() {
  return {.name = "gp",
          .help = "Models each metric with a Gaussian process; for few, expensive trials",
          .options = {{.name = "startup_trials",
                       .fallback = int64_t{0},
                       .min = 0,
                       .help = "Number of ended trials before the model is used; 0: number of "
                               "parameters + 4, at most 20"}},
          .make = MakeGp};
}

}  // namespace attune::searchers
