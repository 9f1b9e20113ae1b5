#include "sweepfile/stop.h"

#include <algorithm>

#include "sweepfile/scalar.h"

namespace attune::sweepfile {
namespace {

std::optional<double> RealOrNone(const Fields& fields, std::string_view key) {
  const Value* value = fields.Find(key);
  if (value == nullptr) return std::nullopt;
  return std::get<double>(*value);
}

Step GracePeriod(const Fields& fields) { return Step(fields.Get<int64_t>("grace_period")); }

bool IsMap(const Spot& spot) { return spot.node != nullptr && spot.node->kind == Node::Kind::kMap; }

Plateau ReadPlateau(const Spot& spot, const SweepSpec& spec, Faults& faults) {
  const Fields fields = ReadSection(PlateauKeys(), spot, faults);
  Plateau plateau{.metric = spec.objective(),
                  .patience = static_cast<int>(fields.Get<int64_t>("patience")),
                  .min_delta = fields.Get<double>("min_delta"),
                  .std = RealOrNone(fields, "std"),
                  .grace_period = GracePeriod(fields)};
  if (plateau.std && fields.Given("min_delta"))
    faults.AtValue(fields.spot("min_delta"), "std is there as well; give the one or the other");
  if (plateau.std && plateau.patience < 2)
    faults.AtValue(fields.spot("patience"),
                   "one value deviates from nothing; with std it is 2 at least");
  if (fields.Given("metric")) {
    plateau.metric = Minimise(fields.Get<std::string>("metric"));
    CheckName(fields.spot("metric"), plateau.metric.metric, faults);
  }
  const auto known = std::ranges::find(spec.objectives, plateau.metric.metric, &Objective::metric);
  if (known != spec.objectives.end()) plateau.metric = *known;
  if (fields.Given("mode")) {
    plateau.metric.mode = fields.Get<std::string>("mode") == "min" ? Mode::kMin : Mode::kMax;
  } else if (known == spec.objectives.end() && !plateau.std) {
    faults.AtValue(fields.spot("metric"),
                   plateau.metric.metric +
                       " is no metric of the sweep's; say with mode whether smaller or larger is "
                       "better");
  }
  return plateau;
}

Threshold ReadThreshold(const std::string& metric, const Spot& spot, Faults& faults) {
  CheckName(spot, metric, faults);
  const Fields fields = ReadSection(ThresholdKeys(), spot, faults);
  Threshold threshold{.metric = metric,
                      .at_least = RealOrNone(fields, "at_least"),
                      .at_most = RealOrNone(fields, "at_most"),
                      .grace_period = GracePeriod(fields)};
  if (IsMap(spot) && !fields.Given("at_least") && !fields.Given("at_most"))
    faults.AtValue(spot, "says nothing; give at_least, at_most or both");
  if (threshold.at_least && threshold.at_most && *threshold.at_least <= *threshold.at_most)
    faults.AtValue(fields.spot("at_least"),
                   FormatReal(*threshold.at_least) + " is not above at_most " +
                       FormatReal(*threshold.at_most) + ", so every value would end the trial");
  return threshold;
}

}  // namespace

void ReadTrialStoppers(const Fields& stop, SweepSpec& spec, Faults& faults) {
  if (stop.Given("plateau")) spec.stop.plateau = ReadPlateau(stop.spot("plateau"), spec, faults);
  const Spot& thresholds = stop.spot("threshold");
  if (thresholds.node == nullptr) return;
  if (!IsMap(thresholds))
    return faults.AtValue(thresholds, "expected a map such as {accuracy: {at_least: 0.9}}, found " +
                                          Describe(*thresholds.node));
  if (thresholds.node->entries.size() > kMaxThresholds)
    return faults.AtValue(thresholds,
                          "has more than " + std::to_string(kMaxThresholds) + " metrics");
  for (const MapEntry& entry : thresholds.node->entries) {
    if (entry.key.empty()) {
      faults.AtValue(Child(thresholds, entry), "names no metric");
      continue;
    }
    spec.stop.thresholds.push_back(ReadThreshold(entry.key, Child(thresholds, entry), faults));
  }
}

}  // namespace attune::sweepfile
