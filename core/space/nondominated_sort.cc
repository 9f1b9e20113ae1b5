#include "core/space/nondominated_sort.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/base/numbers.h"

namespace attune {
namespace {

using Point = std::vector<double>;

constexpr double kReference = 1.1;
constexpr size_t kMostExact = 24;  // for three objectives; the cost grows with its cube

struct Losses {
  const std::vector<double>& values;  // row after row
  size_t objectives;

  double ValueAt(uint32_t row, size_t objective) const {
    return values[row * objectives + objective];
  }

  // REQUIRES: `a` is an earlier row.
  bool Dominates(uint32_t a, uint32_t b) const {
    for (size_t i = 1; i < objectives; ++i) {
      if (ValueAt(a, i) > ValueAt(b, i)) return false;
    }
    return true;
  }
};

// Takes the first front from `left`, which stays sorted.
std::vector<uint32_t> TakeFront(const Losses& losses, std::vector<uint32_t>& left) {
  std::vector<uint32_t> front;
  std::vector<uint32_t> rest;
  for (const uint32_t row : left) {
    const bool dominated =
        std::ranges::any_of(front, [&](uint32_t member) { return losses.Dominates(member, row); });
    (dominated ? rest : front).push_back(row);
  }
  left = std::move(rest);
  return front;
}

// The first fronts, until they have at least `count` rows in total.
std::vector<std::vector<uint32_t>> FirstFronts(const Losses& losses, size_t rows, size_t count) {
  std::vector<uint32_t> left(rows);
  std::iota(left.begin(), left.end(), uint32_t{0});
  std::vector<std::vector<uint32_t>> fronts;
  for (size_t taken = 0; !left.empty() && taken < count; taken += fronts.back().size())
    fronts.push_back(TakeFront(losses, left));
  return fronts;
}

// All fronts, for two objectives. The last member of each front has the smallest second value of
// the front, and these values grow from front to front.
std::vector<std::vector<uint32_t>> AllFronts2(const Losses& losses, size_t rows) {
  std::vector<std::vector<uint32_t>> fronts;
  std::vector<double> smallest;
  for (uint32_t row = 0; row < rows; ++row) {
    const double value = losses.ValueAt(row, 1);
    const auto first =
        std::ranges::upper_bound(smallest, value);  // the first front that can take it
    const auto place = static_cast<size_t>(first - smallest.begin());
    if (first == smallest.end()) {
      fronts.emplace_back();
      smallest.emplace_back();
    }
    fronts[place].push_back(row);
    smallest[place] = value;
  }
  return fronts;
}

// Losses scaled to the front's extent, from 0 to 1.
std::vector<Point> ScaleLosses(const Losses& losses, const std::vector<uint32_t>& front) {
  std::vector<Point> points(front.size(), Point(losses.objectives, 0));
  for (size_t j = 0; j < losses.objectives; ++j) {
    double low = kInfinity;
    double high = -kInfinity;
    for (const uint32_t row : front) {
      low = std::min(low, losses.ValueAt(row, j) / 2);  // halves, so that the difference is finite
      high = std::max(high, losses.ValueAt(row, j) / 2);
    }
    for (size_t i = 0; high > low && i < front.size(); ++i) {
      points[i][j] = (losses.ValueAt(front[i], j) / 2 - low) / (high - low);
    }
  }
  return points;
}

// The hypervolume that each point alone contributes.
std::vector<double> Contributions(const std::vector<Point>& points) {
  std::vector<double> contributions;
  for (size_t i = 0; i < points.size(); ++i) {
    double volume = 1;  // of the box that the point dominates
    for (const double v : points[i]) volume *= kReference - v;
    std::vector<Point> shared;  // the corners of the parts that other points dominate as well
    for (size_t k = 0; k < points.size(); ++k) {
      if (k == i) continue;
      Point& corner = shared.emplace_back(points[k]);
      for (size_t j = 0; j < corner.size(); ++j) corner[j] = std::max(corner[j], points[i][j]);
    }
    contributions.push_back(volume - (shared.empty() ? 0 : Hypervolume(std::move(shared))));
  }
  return contributions;
}

// The same for two objectives. REQUIRES: points in the order of a front.
std::vector<double> Contributions2(const std::vector<Point>& points) {
  std::vector<double> contributions;
  for (size_t i = 0; i < points.size(); ++i) {
    const double next = i + 1 < points.size() ? points[i + 1][0] : kReference;
    const double before = i > 0 ? points[i - 1][1] : kReference;
    contributions.push_back((next - points[i][0]) * (before - points[i][1]));
  }
  return contributions;
}

void SortBy(const std::vector<double>& scores, std::vector<uint32_t>& front) {
  std::vector<size_t> order(front.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::vector<uint32_t> sorted;
  for (const size_t i : order) sorted.push_back(front[i]);
  front = std::move(sorted);
}

void SortFront(const Losses& losses, FrontOrder order, std::vector<uint32_t>& front) {
  const std::vector<Point> points = ScaleLosses(losses, front);
  if (order == FrontOrder::kHypervolume && losses.objectives == 2) {
    return SortBy(Contributions2(points), front);
  }
  SortBy(CrowdingDistances(points), front);
  if (order == FrontOrder::kCrowding || losses.objectives > 3) return;
  const auto exact = front.begin() + static_cast<ptrdiff_t>(std::min(front.size(), kMostExact));
  std::vector<uint32_t> first(front.begin(), exact);
  SortBy(Contributions(ScaleLosses(losses, first)), first);
  std::ranges::copy(first, front.begin());
}

}  // namespace

std::vector<uint32_t> NondominatedSort(const std::vector<double>& losses, size_t objectives,
                                       size_t count, FrontOrder order) {
  const Losses table{losses, objectives};
  const size_t rows = losses.size() / objectives;
  auto fronts = objectives == 2 ? AllFronts2(table, rows) : FirstFronts(table, rows, count);
  std::vector<uint32_t> best;
  for (auto front = fronts.begin(); front != fronts.end() && best.size() < count; ++front) {
    SortFront(table, order, *front);
    std::ranges::copy(*front, std::back_inserter(best));
  }
  best.resize(std::min(best.size(), count));
  return best;
}

std::vector<double> CrowdingDistances(const std::vector<Point>& points) {
  std::vector<double> distances(points.size(), 0);
  std::vector<size_t> order(points.size());
  for (size_t j = 0; j < points.front().size(); ++j) {
    const auto half = [&](size_t i) { return points[i][j] / 2; };  // so that differences are finite
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, half);
    const double extent = half(order.back()) - half(order.front());
    distances[order.front()] = distances[order.back()] = kInfinity;
    if (!(extent > 0)) continue;
    for (size_t i = 1; i + 1 < order.size(); ++i)
      distances[order[i]] += (half(order[i + 1]) - half(order[i - 1])) / extent;
  }
  return distances;
}

double Hypervolume(std::vector<Point> points) {
  std::ranges::sort(points, {}, [](const Point& point) { return point.back(); });
  const size_t objectives = points.front().size();
  double volume = 0;
  if (objectives == 2) {
    double best = kReference;
    for (size_t i = 0; i < points.size(); ++i) {
      best = std::min(best, points[i][0]);
      const double next = i + 1 < points.size() ? points[i + 1][1] : kReference;
      if (next > points[i][1]) volume += (next - points[i][1]) * std::max(0.0, kReference - best);
    }
    return volume;
  }
  std::vector<Point> projected;  // the points so far, without the last coordinate
  for (size_t i = 0; i < points.size(); ++i) {
    projected.emplace_back(points[i].begin(), points[i].end() - 1);
    const double next = i + 1 < points.size() ? points[i + 1].back() : kReference;
    if (next > points[i].back()) volume += (next - points[i].back()) * Hypervolume(projected);
  }
  return volume;
}

}  // namespace attune
