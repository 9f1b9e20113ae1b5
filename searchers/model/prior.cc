#include "searchers/model/prior.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/base/elementary.h"
#include "searchers/model/record.h"

namespace attune::searchers {
namespace {

constexpr double kGoodFraction = 0.2;
constexpr size_t kMostGood = 25;  // of all earlier sweeps
constexpr int kDraws = 8;         // the likeliest one is taken

struct Placed {
  double rank;
  Point point;
};

}  // namespace

Prior::Prior(const Record& record)
    : groups_(record.cube().groups()), fronts_(record.objectives() > 1) {
  const Cube& cube = record.cube();
  std::map<SweepId, int64_t> count;
  std::vector<Placed> good;
  for (const PriorResult& result : record.prior()) ++count[result.from.sweep];
  for (const PriorResult& result : record.prior()) {
    auto point = cube.Place(result.config);
    if (!point) continue;  // the ranges were edited
    ++results_;
    const bool is_best = best_.empty() || best_.back().from.sweep != result.from.sweep;
    if (is_best) best_.push_back(result);
    // The best result of a sweep is good, even if the sweep has few results.
    if (is_best || result.rank < kGoodFraction) good.push_back({result.rank, std::move(*point)});
  }
  std::ranges::stable_sort(good, {}, &Placed::rank);
  if (good.size() > kMostGood) good.erase(good.begin() + kMostGood, good.end());

  for (Placed& placed : good) good_.push_back(std::move(placed.point));

  for (size_t k = 0; k < cube.size(); ++k)
    groups_[cube.dimensions()[k].group].dimensions.push_back(k);
  for (Group& group : groups_) {
    std::vector<Axis> axes;
    for (const size_t k : group.dimensions)
      axes.push_back({cube.dimensions()[k].kind, cube.dimensions()[k].count});
    std::vector<Point> points;
    for (const Point& point : good_)
      if (Has(group, point)) points.push_back(Part(group, point));
    if (!points.empty()) group.good.emplace(std::move(axes), std::move(points));
  }
}

bool Prior::Has(const Group& group, const Point& point) {
  return !std::isnan(point[group.dimensions[0]]);
}

Point Prior::Part(const Group& group, const Point& point) {
  Point part;
  for (const size_t k : group.dimensions) part.push_back(point[k]);
  return part;
}

Prior::Middle Prior::MiddleOf(const Cube& cube) const {
  const double nowhere = std::numeric_limits<double>::quiet_NaN();
  Middle middle{Point(cube.size(), nowhere), Point(cube.size(), nowhere)};
  for (size_t k = 0; k < cube.size(); ++k) {
    if (cube.dimensions()[k].kind == Cube::Kind::kChoice) continue;
    double weights = 0;
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < good_.size(); ++i) {
      const double at = good_[i][k];
      if (std::isnan(at)) continue;
      const double weight =
          Log(static_cast<double>(good_.size()) + 0.5) - Log(static_cast<double>(i + 1));
      weights += weight;
      sum += weight * at;
      squares += weight * at * at;
    }
    if (!(weights > 0)) continue;
    middle.mean[k] = sum / weights;
    middle.deviation[k] =
        std::sqrt(std::max(0.0, squares / weights - middle.mean[k] * middle.mean[k]));
  }
  return middle;
}

double Prior::LogDensity(const Point& point) const {
  double sum = 0;
  for (const Group& group : groups_)
    if (group.good && Has(group, point)) sum += group.good->LogDensity(Part(group, point));
  return sum;
}

std::vector<double> Prior::Slope(const Point& point) const {
  std::vector<double> slope(point.size(), 0);
  for (const Group& group : groups_) {
    if (!group.good || !Has(group, point)) continue;
    const std::vector<double> part = group.good->Slope(Part(group, point));
    for (size_t j = 0; j < part.size(); ++j) slope[group.dimensions[j]] = part[j];
  }
  return slope;
}

Config Prior::Draw(const Cube& cube, RandomStream& random) const {
  std::pair<double, Config> likeliest;
  for (int draw = 0; draw < kDraws; ++draw) {
    Point point(cube.size(), std::numeric_limits<double>::quiet_NaN());
    Config config = cube.Build([&](size_t k) {
      const Group& group = groups_[cube.dimensions()[k].group];
      if (std::isnan(point[k])) {
        const Point part = group.good ? group.good->Draw(random) : Point();
        for (size_t j = 0; j < group.dimensions.size(); ++j) {
          const size_t at = group.dimensions[j];
          point[at] = group.good ? cube.Snap(at, part[j]) : cube.FromUniform(at, random.Uniform());
        }
      }
      return point[k];
    });
    const double density = LogDensity(point);
    if (draw == 0 || density > likeliest.first) likeliest = {density, std::move(config)};
  }
  return std::move(likeliest.second);
}

std::string Prior::Text() const {
  return std::to_string(results_) + (results_ == 1 ? " result of " : " results of ") +
         std::to_string(best_.size()) + (best_.size() == 1 ? " earlier sweep" : " earlier sweeps");
}

Rationale Prior::ExplainBest(ProposalNumber proposal) const {
  const TrialId& from = best_[proposal.value].from;
  return {.rule = "warm_start",
          .text = (fronts_ ? "from the front of " : "the best of ") + ToString(from.sweep) +
                  ", its trial " + std::to_string(from.number.value)};
}

Rationale Prior::ExplainDraw() const {
  return {.rule = "warm_start",
          .results = static_cast<int64_t>(results_),
          .text = "near the good ones of " + Text()};
}

}  // namespace attune::searchers
