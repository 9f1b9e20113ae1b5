#include "searchers/cmaes.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/result.h"
#include "core/base/elementary.h"
#include "core/base/numbers.h"
#include "searchers/model/draw.h"
#include "searchers/model/limit.h"
#include "searchers/model/prior.h"
#include "searchers/model/untried.h"

namespace attune::searchers {
namespace {

constexpr int kRedraws = 3;              // draws after one outside the ranges
constexpr double kDeviationMax = 0.5;    // share of a range; wider ones hardly differ
constexpr double kDeviationMin = 1e-12;  // share of a range; narrower ones hardly differ
constexpr double kChangeMin = 1e-12;     // share of the best values by which they must differ
constexpr double kWarmStepMin = 0.1;     // share of the initial step
constexpr double kListRate = 0.1;        // learning rate of a list's probabilities, per parent
constexpr int kDoublingsMax = 9;         // of the population

Cmaes::Options CmaesOptions(const AlgorithmSpec& spec) {
  return {.population = std::get<int64_t>(spec.options.at("population")),
          .initial_step = std::get<double>(spec.options.at("initial_step"))};
}

Result<std::unique_ptr<Searcher>> MakeCmaes(const SweepSpec& spec) {
  if (auto error = CheckOneMetric(spec, "cmaes")) return *error;
  if (auto error = CheckHasEndIfInfinite(spec, "CMA-ES")) return *error;
  return {std::make_unique<Cmaes>(spec)};
}

bool IsList(const Cube::Dimension& dimension) { return dimension.kind == Cube::Kind::kChoice; }

}  // namespace

Cmaes::Cmaes(const SweepSpec& spec)
    : options_(CmaesOptions(spec.searcher)), seed_(spec.seed), record_(spec) {
  StartRun(Point(record_.cube().size(), 0.5), Population(), options_.initial_step);
}

size_t Cmaes::Population() const {
  if (options_.population > 0) return std::max<size_t>(4, static_cast<size_t>(options_.population));
  const auto n = static_cast<double>(std::max<size_t>(record_.cube().size(), 1));
  return static_cast<size_t>(4 + 3 * Log(n));
}

void Cmaes::StartRun(Point mean, size_t population, double step) {
  numeric_.clear();
  lists_.assign(mean.size(), {});
  Point numeric_mean;
  for (size_t i = 0; i < mean.size(); ++i) {
    const Cube::Dimension& dimension = record_.cube().dimensions()[i];
    if (IsList(dimension)) {
      lists_[i].assign(static_cast<size_t>(dimension.count),
                       1 / static_cast<double>(dimension.count));
    } else {
      numeric_.push_back(i);
      numeric_mean.push_back(std::isnan(mean[i]) ? 0.5 : mean[i]);
    }
  }
  normal_ = AdaptedNormal(std::move(numeric_mean), step, population);
  bests_.clear();
  run_start_ = generation_;
}

void Cmaes::StartWarmRun() {
  const Prior::Middle middle = Prior(record_).MiddleOf(record_.cube());
  StartRun(middle.mean, Population(), StepOf(middle.deviation));
}

double Cmaes::StepOf(const Point& deviation) const {
  double squares = 0;
  double count = 0;
  for (const double width : deviation) {
    if (std::isnan(width)) continue;
    squares += width * width;
    ++count;
  }
  const double step_max = options_.initial_step;
  if (!(count > 0)) return step_max;
  return std::clamp(std::sqrt(squares / count), kWarmStepMin * step_max, step_max);
}

void Cmaes::RestartElsewhere() {
  ++restarts_;
  RandomStream random(seed_, TrialNumber(restarts_), "cmaes/restart");
  Point mean(record_.cube().size());
  for (double& coordinate : mean) coordinate = random.Uniform();
  const size_t population_max = Population() << kDoublingsMax;
  StartRun(std::move(mean), std::min(2 * normal_.population(), population_max),
           options_.initial_step);
}

Point Cmaes::Sample(RandomStream& random) const {
  const auto& dimensions = record_.cube().dimensions();
  Point point(dimensions.size());
  Point normal(numeric_.size());
  for (int redraw = 0; redraw <= kRedraws; ++redraw) {
    for (double& coordinate : normal) coordinate = StandardNormal(random);
    const Point at = normal_.ToPoint(normal);
    bool inside = true;
    for (size_t i = 0; i < at.size(); ++i) {
      double& coordinate = point[numeric_[i]];
      coordinate = at[i];
      // For steps, a point beyond the end belongs to the last cell.
      if (dimensions[numeric_[i]].kind != Cube::Kind::kRange) continue;
      inside = inside && coordinate >= 0 && coordinate <= 1;
      coordinate = std::clamp(coordinate, 0.0, 1.0);
    }
    if (inside) break;
  }
  for (size_t i = 0; i < lists_.size(); ++i) {
    if (lists_[i].empty()) continue;
    double left = random.Uniform();
    size_t chosen = 0;
    while (chosen + 1 < lists_[i].size() && left >= lists_[i][chosen]) left -= lists_[i][chosen++];
    point[i] = static_cast<double>(chosen);
  }
  return point;
}

Rationale Cmaes::Explain() const {
  std::string text = "draw of generation " + std::to_string(generation_ - run_start_ + 1);
  if (restarts_ > 0) text += " of run " + std::to_string(restarts_ + 1);
  return {.rule = "adapted_normal",
          .text = text + ", of " + std::to_string(normal_.population()) + ": step size " +
                  FormatShort(normal_.step())};
}

Suggestion Cmaes::Draw(ProposalNumber proposal, Point& drawn) const {
  const Cube& cube = record_.cube();
  RandomStream random(seed_, proposal, "cmaes/suggest");
  Config last;
  const auto propose = [&](int attempt) {
    if (attempt < kModelAttempts) {
      drawn = Sample(random);
    } else {
      for (size_t i = 0; i < drawn.size(); ++i) drawn[i] = cube.FromUniform(i, random.Uniform());
    }
    return last = cube.Build([&](size_t dimension) { return drawn[dimension]; });
  };
  Suggestion suggestion =
      ProposeUntried(record_, propose, [this](int, const Config&) { return Explain(); });
  const auto* proposed = std::get_if<Proposed>(&suggestion);
  if (proposed == nullptr || proposed->config != last) drawn.clear();  // no draw was untried
  return suggestion;
}

Suggestion Cmaes::Suggest(ProposalNumber proposal) const {
  Point drawn;
  return Draw(proposal, drawn);
}

void Cmaes::Observe(const Event& event) {
  // Events do not contain the drawn point. Nothing was observed since the proposal, so the same
  // point is drawn again. If the configuration differs nevertheless, the trial counts as injected.
  Point drawn;
  const auto* created = std::get_if<TrialCreated>(&event.fact);
  if (created != nullptr && created->proposal) {
    const Suggestion again = Draw(*created->proposal, drawn);
    const auto* proposed = std::get_if<Proposed>(&again);
    if (proposed == nullptr || proposed->config != created->config) drawn.clear();
  }
  const auto news = record_.Observe(event);
  if (!news) return;
  if (news->change == Record::Change::kPrior) return StartWarmRun();
  const uint32_t trial = news->trial;
  std::erase(finished_, trial);
  if (news->change != Record::Change::kStandingChanged) {
    drawn_.erase(trial);
    if (!drawn.empty()) drawn_[trial] = {std::move(drawn), generation_};
    return;
  }
  const Standing standing = record_.trial(trial).standing;
  if (standing == Standing::kRunning) return;
  const auto known = drawn_.find(trial);
  const bool of_old_run = known != drawn_.end() && known->second.generation < run_start_;
  if (standing == Standing::kNone || of_old_run) {
    drawn_.erase(trial);
    return;
  }
  finished_.push_back(trial);
  if (finished_.size() >= normal_.population()) Learn();
}

void Cmaes::Learn() {
  std::vector<uint32_t> best_first = std::exchange(finished_, {});
  std::ranges::sort(best_first, [this](uint32_t a, uint32_t b) { return record_.Better(a, b); });
  bool learned = true;
  const bool all_failed = record_.trial(best_first[0]).standing == Standing::kFailed;
  if (!all_failed) {
    std::vector<AdaptedNormal::Sample> samples;
    for (const uint32_t trial : best_first) {
      const auto known = drawn_.find(trial);
      const bool is_drawn = known != drawn_.end();
      AdaptedNormal::Sample& sample = samples.emplace_back();
      sample.injected = !is_drawn || known->second.generation != generation_;
      for (size_t i = 0; i < numeric_.size(); ++i) {
        const double coordinate =
            is_drawn ? known->second.point[numeric_[i]] : record_.Coordinate(trial, numeric_[i]);
        sample.point.push_back(std::isnan(coordinate) ? normal_.mean()[i] : coordinate);
      }
    }
    const AdaptedNormal before = normal_;
    if (!numeric_.empty()) learned = normal_.Learn(samples);
    for (size_t i = 0; learned && i < numeric_.size(); ++i) {
      const auto absent = std::ranges::count_if(best_first, [&](uint32_t trial) {
        return std::isnan(record_.Coordinate(trial, numeric_[i]));
      });
      if (2 * absent > std::ssize(best_first)) normal_.RestoreDimension(i, before);
    }
    LearnLists(best_first);
  }
  for (const uint32_t trial : best_first) drawn_.erase(trial);
  ++generation_;
  if (!learned || HasStalled(best_first)) return RestartElsewhere();
  normal_.LimitDeviation(kDeviationMax);
  const double margin =
      1 / (static_cast<double>(numeric_.size()) * static_cast<double>(normal_.population()));
  for (size_t i = 0; i < numeric_.size(); ++i) {
    if (record_.cube().dimensions()[numeric_[i]].kind != Cube::Kind::kSteps) continue;
    normal_.KeepMargin(i, record_.cube().CellAround(numeric_[i], normal_.mean()[i]), margin);
  }
}

void Cmaes::LearnLists(const std::vector<uint32_t>& best_first) {
  const size_t parents = best_first.size() / 2;
  const double rate = std::min(0.5, kListRate * static_cast<double>(parents) / 2);
  const auto count = static_cast<double>(
      std::ranges::count_if(lists_, [](const auto& chances) { return !chances.empty(); }));
  const double margin = 1 / (static_cast<double>(best_first.size()) * count);
  for (size_t i = 0; i < lists_.size(); ++i) {
    std::vector<double>& chances = lists_[i];
    if (chances.size() < 2) continue;
    std::vector<double> weights(chances.size(), 0);
    double total = 0;
    for (size_t rank = 0; rank < parents; ++rank) {
      const double place = record_.Coordinate(best_first[rank], i);
      if (std::isnan(place)) continue;
      const double weight =
          Log(static_cast<double>(best_first.size() + 1) / 2) - Log(static_cast<double>(rank + 1));
      weights[static_cast<size_t>(place)] += weight;
      total += weight;
    }
    if (!(total > 0)) continue;
    const double chance_min = margin / static_cast<double>(chances.size());
    double sum = 0;
    for (size_t k = 0; k < chances.size(); ++k) {
      chances[k] = std::max(chance_min, chances[k] + rate * (weights[k] / total - chances[k]));
      sum += chances[k];
    }
    for (double& chance : chances) chance /= sum;
  }
}

bool Cmaes::HasStalled(const std::vector<uint32_t>& best_first) {
  const auto value = [&](uint32_t trial) {
    const Trial& known = record_.trial(trial);
    return known.standing <= Standing::kCut ? known.value : kInfinity;
  };
  const size_t n = record_.cube().size();
  const size_t kept = 10 + (30 * n + best_first.size() - 1) / best_first.size();
  bests_.push_back(value(best_first[0]));
  if (bests_.size() > kept) bests_.erase(bests_.begin());
  double widest = numeric_.empty() ? kInfinity : 0;
  for (size_t i = 0; i < numeric_.size(); ++i) widest = std::max(widest, normal_.Deviation(i));
  if (widest < kDeviationMin) return true;
  if (bests_.size() < kept) return false;
  double low = *std::ranges::min_element(bests_);
  double high = *std::ranges::max_element(bests_);
  for (const uint32_t trial : best_first) {
    low = std::min(low, value(trial));
    high = std::max(high, value(trial));
  }
  if (low == high) return true;
  return std::isfinite(high - low) &&
         high - low <= kChangeMin * std::max(std::abs(low), std::abs(high));
}

void Cmaes::Adapt(const SweepSpec& spec) {
  const Options options = CmaesOptions(spec.searcher);
  const bool same = options == options_ && spec.space == record_.cube().space();
  options_ = options;
  record_.Adapt(spec);
  if (same) return;
  Point mean(record_.cube().size(), 0.5);
  std::optional<uint32_t> best;
  for (uint32_t trial = 0; trial < record_.size(); ++trial) {
    if (record_.trial(trial).standing > Standing::kCut) continue;
    if (!best || record_.Better(trial, *best)) best = trial;
  }
  for (size_t i = 0; best && i < mean.size(); ++i) mean[i] = record_.Coordinate(*best, i);
  ++generation_;
  finished_.clear();
  drawn_.clear();
  if (!best && !record_.prior().empty()) return StartWarmRun();
  StartRun(std::move(mean), Population(), options_.initial_step);
}

void Cmaes::Save(ArchiveWriter& archive) const {
  record_.Save(archive);
  archive(normal_, lists_, generation_, run_start_, restarts_, bests_, finished_, drawn_);
}

void Cmaes::Load(ArchiveReader& archive) {
  record_.Load(archive);
  const auto lists = lists_;
  archive(normal_, lists_, generation_, run_start_, restarts_, bests_, finished_, drawn_);
  bool valid = archive.ok() && normal_.size() == numeric_.size() && lists_.size() == lists.size();
  for (size_t i = 0; valid && i < lists.size(); ++i) valid = lists_[i].size() == lists[i].size();
  for (const uint32_t trial : finished_) valid = valid && trial < record_.size();
  for (const auto& [trial, drawn] : drawn_) valid = valid && drawn.point.size() == lists.size();
  if (!valid) archive.Fail();
}

Entry<Searcher> CmaesEntry() {
  return {.name = "cmaes",
          .help = "Adapts a normal distribution by ranks (CMA-ES); for many trials",
          .options = {{.name = "population",
                       .fallback = int64_t{0},
                       .min = 0,
                       .max = 100'000,
                       .help = "Population size, at least 4; 0: 4 + 3·ln(number of parameters)"},
                      {.name = "initial_step",
                       .fallback = 0.15,
                       .min = 0.001,
                       .max = 1.0,
                       .help = "Initial standard deviation, as a fraction of each range"}},
          .make = MakeCmaes};
}

}  // namespace attune::searchers
