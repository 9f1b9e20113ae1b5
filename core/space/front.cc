#include "core/space/front.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace attune {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Of each report, how far its neighbours are from each other, summed over the objectives in shares
// of the whole front's extent.
std::vector<double> CrowdingDistances(const Front& front) {
  std::vector<double> distances(front.size(), 0);
  std::vector<size_t> order(front.size());
  for (size_t objective = 0; objective < front.front().values.size(); ++objective) {
    const auto value = [&](size_t i) { return front[i].values[objective]; };
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, value);
    const double extent = value(order.back()) - value(order.front());
    distances[order.front()] = distances[order.back()] = kInfinity;
    if (!(extent > 0)) continue;
    for (size_t i = 1; i + 1 < order.size(); ++i)
      distances[order[i]] += (value(order[i + 1]) - value(order[i - 1])) / extent;
  }
  return distances;
}

}  // namespace

bool Dominates(const std::vector<Objective>& objectives, const std::vector<double>& a,
               const std::vector<double>& b) {
  bool better = false;
  for (size_t i = 0; i < objectives.size(); ++i) {
    if (objectives[i].Better(b[i], a[i])) return false;
    better = better || objectives[i].Better(a[i], b[i]);
  }
  return better;
}

Offered Offer(const std::vector<Objective>& objectives, Best report, Front& front) {
  Offered offered;
  if (objectives.size() == 1 && front.size() == 1) {  // as below, for most sweeps
    if (!objectives[0].Better(report.values[0], front[0].values[0])) return offered;
    std::swap(front[0], report);
    offered.joined = true;
    offered.left.push_back(std::move(report));
    return offered;
  }
  for (const Best& known : front) {
    if (known.values == report.values || Dominates(objectives, known.values, report.values))
      return offered;
  }
  const auto leave = [&](Front::iterator place) {
    offered.left.push_back(std::move(*place));
    return front.erase(place);
  };
  for (auto known = front.begin(); known != front.end();) {
    const bool dominated = Dominates(objectives, report.values, known->values);
    known = dominated ? leave(known) : known + 1;
  }
  front.push_back(std::move(report));
  offered.joined = true;
  if (front.size() <= kMaxFront) return offered;

  // Of equally crowded ones the newest leaves.
  const std::vector<double> distances = CrowdingDistances(front);
  const auto crowded = std::min_element(distances.rbegin(), distances.rend());
  const auto place = front.begin() + (distances.rend() - crowded - 1);
  if (place + 1 == front.end()) {
    front.pop_back();
    return {};
  }
  leave(place);
  return offered;
}

const Best* First(const std::vector<Objective>& objectives, const Front& front) {
  const Best* first = nullptr;
  for (const Best& report : front) {
    if (first == nullptr || objectives.front().Better(report.values[0], first->values[0]))
      first = &report;
  }
  return first;
}

}  // namespace attune
