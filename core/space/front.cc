#include "core/space/front.h"

#include <algorithm>
#include <utility>

#include "core/space/nondominated_sort.h"

namespace attune {

bool Dominates(const std::vector<Objective>& objectives, const std::vector<double>& a,
               const std::vector<double>& b) {
  bool better = false;
  for (size_t i = 0; i < objectives.size(); ++i) {
    if (objectives[i].Better(b[i], a[i])) return false;
    better = better || objectives[i].Better(a[i], b[i]);
  }
  return better;
}

FrontChange AddToFront(const std::vector<Objective>& objectives, Best report, Front& front) {
  FrontChange change;
  if (objectives.size() == 1 && front.size() == 1) {  // a fast path, with the same result
    if (!objectives[0].Better(report.values[0], front[0].values[0])) return change;
    std::swap(front[0], report);
    change.joined = true;
    change.left.push_back(std::move(report));
    return change;
  }
  for (const Best& known : front) {
    if (known.values == report.values || Dominates(objectives, known.values, report.values))
      return change;
  }
  const auto leave = [&](Front::iterator place) {
    change.left.push_back(std::move(*place));
    return front.erase(place);
  };
  for (auto known = front.begin(); known != front.end();) {
    const bool dominated = Dominates(objectives, report.values, known->values);
    known = dominated ? leave(known) : known + 1;
  }
  front.push_back(std::move(report));
  change.joined = true;
  if (front.size() <= kMaxFront) return change;

  // Among equally crowded reports, the newest one is removed.
  std::vector<std::vector<double>> points;
  for (const Best& known : front) points.push_back(known.values);
  const std::vector<double> distances = CrowdingDistances(points);
  const auto crowded = std::min_element(distances.rbegin(), distances.rend());
  const auto place = front.begin() + (distances.rend() - crowded - 1);
  if (place + 1 == front.end()) {
    front.pop_back();
    return {};
  }
  leave(place);
  return change;
}

const Best* BestOfFront(const std::vector<Objective>& objectives, const Front& front) {
  const Best* first = nullptr;
  for (const Best& report : front) {
    if (first == nullptr || objectives.front().Better(report.values[0], first->values[0]))
      first = &report;
  }
  return first;
}

}  // namespace attune
