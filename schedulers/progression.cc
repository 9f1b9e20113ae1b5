#include "schedulers/progression.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "core/space/value.h"
#include "schedulers/quantile.h"
#include "schedulers/text.h"

namespace attune::schedulers {
namespace {

constexpr size_t kCompared = 200;  // trials that were the first at a rung
constexpr double kPercentile = 0.9;

}  // namespace

Progression::Progression(std::vector<Step> rungs)
    : rungs_(std::move(rungs)), arrivals_(rungs_.size()) {
  ATTUNE_CHECK(rungs_.size() >= 2);
}

bool Progression::Observe(Arrival& report) {
  auto& curve = curves_[report.trial];
  if (curve.empty() || report.step > curve.back().first)
    curve.emplace_back(report.step, report.cost);
  if (!report.rung) return false;
  AddArrival(report);
  if (*report.rung > top_) {
    OpenRung(*report.rung);  // the trial has skipped the rungs before it
  } else if (*report.rung == top_ && !IsComplete() && !RanksAgree()) {
    OpenRung(top_ + 1);
  }
  return false;
}

void Progression::ForgetTrial(TrialNumber trial) {
  for (size_t rung = top_; rung < arrivals_.size(); ++rung) {
    const auto& arrivals = arrivals_[rung];
    const auto compared =
        arrivals.begin() + static_cast<ptrdiff_t>(std::min(kCompared, arrivals.size()));
    if (std::find_if(arrivals.begin(), compared, [trial](const Arrival& arrival) {
          return arrival.trial == trial;
        }) != compared)
      return;
  }
  curves_.erase(trial);
}

void Progression::AddArrival(const Arrival& arrival) {
  if (!std::isfinite(arrival.cost)) return;
  const size_t rung = *arrival.rung;
  arrivals_[rung].push_back(arrival);
  if (rung + 1 == top_) before_.emplace(arrival.trial, arrival.cost);
  if (rung != top_) return;
  CompareWithOthers(arrivals_[rung].back(), arrivals_[rung].size() - 1);
  if (!noise_.empty()) epsilon_ = Quantile(noise_, kPercentile);
}

void Progression::OpenRung(size_t top) {
  top_ = top;
  before_.clear();
  for (const Arrival& arrival : arrivals_[top_ - 1]) before_.emplace(arrival.trial, arrival.cost);
  EstimateEpsilon();
}

void Progression::EstimateEpsilon() {
  noise_.clear();
  const auto& arrivals = arrivals_[top_];
  for (size_t i = 1; i < arrivals.size(); ++i) CompareWithOthers(arrivals[i], i);
  if (!noise_.empty()) epsilon_ = Quantile(noise_, kPercentile);
}

void Progression::CompareWithOthers(const Arrival& arrival, size_t others) {
  if (others >= kCompared) return;
  for (size_t i = 0; i < others; ++i) {
    const double noise = Noise(arrivals_[top_][i], arrival);
    if (noise >= 0) noise_.push_back(noise);
  }
}

double Progression::Noise(const Arrival& a, const Arrival& b) const {
  const auto one = curves_.find(a.trial);
  const auto other = curves_.find(b.trial);
  if (one == curves_.end() || other == curves_.end()) return -1;
  double last = -1;
  int sign = 0;
  int crossings = 0;
  auto y = other->second.begin();
  for (const auto& [step, cost] : one->second) {
    while (y != other->second.end() && y->first < step) ++y;
    if (step > a.step || step > b.step || y == other->second.end()) break;
    if (y->first != step || !std::isfinite(cost) || !std::isfinite(y->second)) continue;
    last = std::abs(cost - y->second);
    const int now = cost < y->second ? -1 : cost > y->second ? 1 : sign;
    if (sign != 0 && now != sign) ++crossings;
    sign = now;
  }
  return crossings >= 2 ? last : -1;
}

bool Progression::RanksAgree() const {
  struct Ranked {
    double now = 0;
    double before = 0;
  };
  std::vector<Ranked> ranked;
  for (const Arrival& arrival : arrivals_[top_]) {
    const auto found = before_.find(arrival.trial);
    if (found != before_.end()) ranked.push_back({arrival.cost, found->second});
  }
  std::vector<double> places;
  for (const Ranked& each : ranked) places.push_back(each.before);
  std::ranges::sort(places);
  std::ranges::sort(ranked, [](const Ranked& a, const Ranked& b) {
    return std::pair(a.now, a.before) < std::pair(b.now, b.before);
  });
  for (size_t i = 0; i < ranked.size(); ++i) {
    if (std::abs(ranked[i].before - places[i]) > epsilon_) return false;
  }
  return true;
}

std::string Progression::LimitReason() const {
  return "no trial continues beyond step " + Text(Limit()) + " while rungs " + Text(below()) +
         " and " + Text(Limit()) + " rank their trials in the same order (epsilon " +
         FormatShort(epsilon_) + ")";
}

void Progression::Restart(const std::vector<Step>& rungs, const std::vector<Arrival>& arrivals) {
  ATTUNE_CHECK(rungs.size() >= 2);
  const Step open = Limit();
  rungs_ = rungs;
  const auto reached = std::ranges::lower_bound(rungs_, open) - rungs_.begin();
  top_ = std::clamp<size_t>(static_cast<size_t>(reached), 1, rungs_.size() - 1);
  arrivals_.assign(rungs_.size(), {});
  noise_.clear();
  before_.clear();
  for (const Arrival& arrival : arrivals) AddArrival(arrival);
}

void Progression::Save(ArchiveWriter& archive) const {
  archive(static_cast<uint64_t>(top_), epsilon_, curves_);
}

void Progression::Load(ArchiveReader& archive) {
  uint64_t top = 0;
  double epsilon = 0;
  archive(top, epsilon, curves_);
  if (!archive.ok() || top < 1 || top >= rungs_.size()) return archive.Fail();
  OpenRung(static_cast<size_t>(top));
  epsilon_ = epsilon;
}

}  // namespace attune::schedulers
