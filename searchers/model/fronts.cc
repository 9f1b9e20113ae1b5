#include "searchers/model/fronts.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

namespace attune::searchers {
namespace {

constexpr double kReference = 1.1;
constexpr size_t kMostExact = 24;  // of a front with three objectives, in whose cube the cost goes
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Whether the trials are as good but for their results.
bool Comparable(const Record& record, uint32_t a, uint32_t b) {
  const Trial& one = record.trial(a);
  const Trial& other = record.trial(b);
  return one.standing <= Standing::kCut && one.standing == other.standing &&
         (one.standing == Standing::kComplete || one.step == other.step);
}

// REQUIRES: `a` comes first in the order of Record::Better.
bool Dominates(const Record& record, uint32_t a, uint32_t b) {
  for (size_t i = 1; i < record.objectives(); ++i) {
    if (record.Result(a, i) > record.Result(b, i)) return false;
  }
  return true;
}

// Takes the first front from `left`, which stays sorted.
std::vector<uint32_t> TakeFront(const Record& record, std::vector<uint32_t>& left) {
  std::vector<uint32_t> front;
  std::vector<uint32_t> rest;
  for (const uint32_t trial : left) {
    // With two objectives the last member has the smallest second value: it is enough to ask it.
    const size_t from = record.objectives() == 2 && !front.empty() ? front.size() - 1 : 0;
    const bool dominated =
        std::any_of(front.begin() + static_cast<ptrdiff_t>(from), front.end(),
                    [&](uint32_t member) { return Dominates(record, member, trial); });
    (dominated ? rest : front).push_back(trial);
  }
  left = std::move(rest);
  return front;
}

// Results as parts of the front's extent, from 0 to 1.
std::vector<Point> Scaled(const Record& record, const std::vector<uint32_t>& front) {
  std::vector<Point> points(front.size(), Point(record.objectives(), 0));
  for (size_t j = 0; j < record.objectives(); ++j) {
    double low = kInfinity;
    double high = -kInfinity;
    for (const uint32_t trial : front) {
      low = std::min(low, record.Result(trial, j) / 2);  // halves: their difference is finite
      high = std::max(high, record.Result(trial, j) / 2);
    }
    for (size_t i = 0; high > low && i < front.size(); ++i) {
      points[i][j] = (record.Result(front[i], j) / 2 - low) / (high - low);
    }
  }
  return points;
}

std::vector<double> Crowding(const std::vector<Point>& points) {
  std::vector<double> distances(points.size(), 0);
  std::vector<size_t> order(points.size());
  for (size_t j = 0; j < points.front().size(); ++j) {
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) { return points[i][j]; });
    distances[order.front()] = distances[order.back()] = kInfinity;
    for (size_t k = 1; k + 1 < order.size(); ++k) {
      distances[order[k]] += points[order[k + 1]][j] - points[order[k - 1]][j];
    }
  }
  return distances;
}

// Of each point, what would be lost without it.
std::vector<double> Contributions(const std::vector<Point>& points) {
  std::vector<double> contributions;
  for (size_t i = 0; i < points.size(); ++i) {
    double own = 1;
    for (const double v : points[i]) own *= kReference - v;
    std::vector<Point> shared;  // what the others dominate of it
    for (size_t k = 0; k < points.size(); ++k) {
      if (k == i) continue;
      Point& corner = shared.emplace_back(points[k]);
      for (size_t j = 0; j < corner.size(); ++j) corner[j] = std::max(corner[j], points[i][j]);
    }
    contributions.push_back(own - (shared.empty() ? 0 : Hypervolume(std::move(shared))));
  }
  return contributions;
}

// As above, of two objectives in the order of a front.
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

void SortFront(const Record& record, Within within, std::vector<uint32_t>& front) {
  const size_t objectives = record.objectives();
  const std::vector<Point> points = Scaled(record, front);
  if (within == Within::kHypervolume && objectives == 2) {
    return SortBy(Contributions2(points), front);
  }
  SortBy(Crowding(points), front);
  if (within == Within::kCrowding || objectives > 3) return;
  const auto exact = front.begin() + static_cast<ptrdiff_t>(std::min(front.size(), kMostExact));
  std::vector<uint32_t> first(front.begin(), exact);
  SortBy(Contributions(Scaled(record, first)), first);
  std::ranges::copy(first, front.begin());
}

}  // namespace

std::vector<uint32_t> BestOf(const Record& record, const std::vector<uint32_t>& sorted,
                             size_t count, Within within) {
  std::vector<uint32_t> best;
  for (auto begin = sorted.begin(); begin != sorted.end() && best.size() < count;) {
    const auto end = std::find_if(begin, sorted.end(), [&](uint32_t trial) {
      return record.objectives() == 1 || !Comparable(record, *begin, trial);
    });
    if (end == begin) {  // it stands alone
      best.push_back(*begin++);
      continue;
    }
    std::vector<uint32_t> left(begin, end);
    while (!left.empty() && best.size() < count) {
      std::vector<uint32_t> front = TakeFront(record, left);
      SortFront(record, within, front);
      std::ranges::copy(front, std::back_inserter(best));
    }
    begin = end;
  }
  best.resize(std::min(best.size(), count));
  return best;
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
  std::vector<Point> so_far;  // without the last coordinate
  for (size_t i = 0; i < points.size(); ++i) {
    so_far.emplace_back(points[i].begin(), points[i].end() - 1);
    const double next = i + 1 < points.size() ? points[i + 1].back() : kReference;
    if (next > points[i].back()) volume += (next - points[i].back()) * Hypervolume(so_far);
  }
  return volume;
}

}  // namespace attune::searchers
