#include "server/store/thinned/thinned_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <string>

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<double> StepsOf(const std::vector<CurvePoint>& points) {
  std::vector<double> steps;
  for (const CurvePoint& point : points) steps.push_back(point.step);
  return steps;
}

uint64_t Seed() {
  const char* text = std::getenv("ATTUNE_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

// A whole curve with the attempt of each step, by the rules of server/store/curves.cc.
class ExactCurve {
 public:
  struct Value {
    float value = 0;
    uint32_t attempt = 0;
  };

  void AddReport(uint32_t attempt, int64_t resumed_from, int64_t step, double value) {
    if (values_.empty() || attempt != attempt_) {
      attempt_ = attempt;
      covered_ = resumed_from;
    }
    const auto from = static_cast<double>(std::min(covered_, step - 1));
    const auto at = static_cast<double>(step);
    values_.erase(values_.upper_bound(from), values_.upper_bound(at));
    values_[at] = {RoundedValue(value), attempt};
    covered_ = step;
  }

  void AddLogged(double step, double value) {
    values_.erase(values_.lower_bound(step), values_.end());
    values_[step] = {RoundedValue(value), 0};
  }

  const std::map<double, Value>& values() const { return values_; }

  std::vector<CurvePoint> Points() const {
    std::vector<CurvePoint> points;
    for (const auto& [step, each] : values_) points.push_back({step, each.value});
    return points;
  }

  std::vector<ThinnedSegment> Segments() const {
    std::vector<ThinnedSegment> segments;
    for (const auto& [step, each] : values_) {
      if (segments.empty() || segments.back().attempt != each.attempt)
        segments.push_back({each.attempt, step});
    }
    return segments;
  }

 private:
  std::map<double, Value> values_;
  uint32_t attempt_ = 0;
  int64_t covered_ = 0;
};

// The points that buckets of this width keep, by the definition.
std::vector<CurvePoint> ThinByDefinition(const std::vector<CurvePoint>& points, double width) {
  std::map<double, std::pair<size_t, size_t>> extremes;
  for (size_t i = 0; i < points.size(); ++i) {
    const auto [entry, is_new] =
        extremes.try_emplace(std::floor(points[i].step / width), std::pair(i, i));
    auto& [lowest, highest] = entry->second;
    if (points[i].value < points[lowest].value) lowest = i;
    if (points[i].value > points[highest].value) highest = i;
  }
  std::vector<CurvePoint> kept;
  for (size_t i = 0; i < points.size(); ++i) {
    const auto& [lowest, highest] = extremes.at(std::floor(points[i].step / width));
    if (i == 0 || i + 1 == points.size() || i == lowest || i == highest) kept.push_back(points[i]);
  }
  return kept;
}

uint32_t AttemptAt(const std::vector<ThinnedSegment>& segments, double step) {
  uint32_t attempt = 0;
  for (const ThinnedSegment& segment : segments) {
    if (segment.first_step <= step) attempt = segment.attempt;
  }
  return attempt;
}

void ExpectPointsOf(const ThinnedCurve& curve, const ExactCurve& exact) {
  const auto& points = curve.points();
  ASSERT_FALSE(points.empty());
  ASSERT_LE(points.size(), kThinnedPointsMax);
  EXPECT_EQ(points.front().step, exact.values().begin()->first);
  EXPECT_EQ(points.back().step, exact.values().rbegin()->first);
  for (size_t i = 0; i < points.size(); ++i) {
    if (i > 0) {
      ASSERT_LT(points[i - 1].step, points[i].step);
    }
    const auto found = exact.values().find(points[i].step);
    ASSERT_NE(found, exact.values().end()) << points[i].step;
    ASSERT_EQ(found->second.value, points[i].value);
    ASSERT_EQ(found->second.attempt, AttemptAt(curve.segments(), points[i].step));
  }
}

TEST(ThinPoints, KeepsACurveThatIsShortEnough) {
  const std::vector<CurvePoint> points = {{1, 5}, {2, 6}, {3, 4}};
  EXPECT_EQ(ThinPoints(points, 3), points);
  EXPECT_THAT(ThinPoints({}, 2), IsEmpty());
}

TEST(ThinPoints, KeepsTheExtremesAndTheEnds) {
  std::vector<CurvePoint> points;
  for (int step = 0; step < 1'000; ++step) points.push_back({static_cast<double>(step), 1});
  points[371].value = 9;
  points[602].value = -9;
  const auto thinned = ThinPoints(points, 10);
  EXPECT_LE(thinned.size(), 10u);
  EXPECT_THAT(StepsOf(thinned), ::testing::IsSupersetOf({0.0, 371.0, 602.0, 999.0}));
}

TEST(ThinPoints, KeepsOnlyTheEndsIfNoMoreIsAllowed) {
  const std::vector<CurvePoint> points = {{1, 5}, {2, 6}, {3, 4}, {4, 7}};
  EXPECT_THAT(StepsOf(ThinPoints(points, 2)), ElementsAre(1, 4));
  EXPECT_THAT(StepsOf(ThinPoints(points, 3)), ElementsAre(1, 4));
}

TEST(ThinPoints, CountsNanAsTheHighestValue) {
  std::vector<CurvePoint> points;
  for (int step = 0; step < 64; ++step) points.push_back({static_cast<double>(step), 0});
  points[10].value = kNan;
  points[20].value = kInfinity;
  points[30].value = -kInfinity;
  EXPECT_THAT(StepsOf(ThinPoints(points, 4)), ElementsAre(0, 10, 30, 63));
}

TEST(RoundedValue, MakesLargeValuesInfinite) {
  EXPECT_EQ(RoundedValue(1e300), kInfinity);
  EXPECT_EQ(RoundedValue(-1e300), -kInfinity);
  EXPECT_TRUE(std::isnan(RoundedValue(std::nan(""))));
  EXPECT_EQ(RoundedValue(0.5), 0.5f);
}

TEST(ThinnedCurve, IsExactUpToItsLimit) {
  ThinnedCurve curve;
  for (int64_t step = 1; step <= int64_t{kThinnedPointsMax}; ++step) curve.AddReport(1, 0, step, 1);
  EXPECT_THAT(curve.points(), SizeIs(kThinnedPointsMax));
  curve.AddReport(1, 0, kThinnedPointsMax + 1, 1);
  EXPECT_LT(curve.points().size(), kThinnedPointsMax);
  EXPECT_EQ(curve.points().back().step, kThinnedPointsMax + 1);
}

TEST(ThinnedCurve, KeepsASpikeForever) {
  ThinnedCurve curve;
  for (int64_t step = 1; step <= 1'000'000; ++step)
    curve.AddReport(1, 0, step, step == 777 ? 9 : 1);
  EXPECT_THAT(StepsOf(curve.points()), ::testing::Contains(777.0));
}

TEST(ThinnedCurve, LaterAttemptsReplaceTheStepsThatTheyCover) {
  ThinnedCurve curve;
  for (const int64_t step : {1, 2, 4, 5}) curve.AddReport(1, 0, step, 1);
  curve.AddReport(2, 0, 2, 2);
  EXPECT_THAT(StepsOf(curve.points()), ElementsAre(2, 4, 5));
  EXPECT_THAT(curve.segments(), ElementsAre(ThinnedSegment{2, 2}, ThinnedSegment{1, 4}));
  curve.AddReport(2, 0, 6, 2);
  EXPECT_THAT(StepsOf(curve.points()), ElementsAre(2, 6));
  EXPECT_THAT(curve.segments(), ElementsAre(ThinnedSegment{2, 2}));
  curve.AddReport(3, 4, 5, 3);
  EXPECT_THAT(StepsOf(curve.points()), ElementsAre(2, 5, 6));
  EXPECT_THAT(curve.segments(),
              ElementsAre(ThinnedSegment{2, 2}, ThinnedSegment{3, 5}, ThinnedSegment{2, 6}));
}

TEST(ThinnedCurve, LoggedValuesReplaceLaterOnes) {
  ThinnedCurve curve;
  for (const double step : {0.5, 1.5, 2.5}) curve.AddLogged(step, 1);
  curve.AddLogged(1.25, 2);
  curve.AddLogged(std::nan(""), 2);
  EXPECT_THAT(curve.points(), ElementsAre(CurvePoint{0.5, 1}, CurvePoint{1.25, 2}));
  EXPECT_THAT(curve.segments(), IsEmpty());
}

TEST(ThinnedCurve, OfOneAttemptIsWhatBucketsOfSomeWidthKeep) {
  for (uint64_t seed = Seed(); seed < Seed() + 40; ++seed) {
    SCOPED_TRACE("ATTUNE_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    const bool is_logged = seed % 2 == 0;
    const int64_t stride = 1 + static_cast<int64_t>(random() % 50);
    ThinnedCurve curve;
    ExactCurve exact;
    int64_t step = 0;
    for (uint64_t count = 1 + random() % 3'000; count > 0; --count) {
      step += 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(stride));
      const double value = static_cast<double>(random() % 1'000);
      if (is_logged) {
        curve.AddLogged(static_cast<double>(step) / 7, value);
        exact.AddLogged(static_cast<double>(step) / 7, value);
      } else {
        curve.AddReport(1, 0, step, value);
        exact.AddReport(1, 0, step, value);
      }
    }
    ExpectPointsOf(curve, exact);
    bool found = exact.Points() == curve.points();
    for (int exponent = -20; exponent < 30 && !found; ++exponent)
      found = ThinByDefinition(exact.Points(), std::ldexp(1, exponent)) == curve.points();
    EXPECT_TRUE(found);
  }
}

TEST(ThinnedCurve, OfManyAttemptsHasPointsOfTheExactCurve) {
  for (uint64_t seed = Seed(); seed < Seed() + 40; ++seed) {
    SCOPED_TRACE("ATTUNE_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    ThinnedCurve curve;
    ExactCurve exact;
    int64_t last = 0;
    size_t most = 0;
    for (uint32_t attempt = 1; attempt <= 1 + seed % 20; ++attempt) {
      const int64_t resumed_from =
          last == 0 ? 0 : static_cast<int64_t>(random() % static_cast<uint64_t>(last + 1));
      const int64_t stride = 1 + static_cast<int64_t>(random() % 3);
      int64_t step = resumed_from;
      for (uint64_t count = random() % (seed % 3 == 0 ? 20 : 900); count > 0; --count) {
        step += stride;
        const double value = static_cast<double>(random() % 1'000);
        curve.AddReport(attempt, resumed_from, step, value);
        exact.AddReport(attempt, resumed_from, step, value);
        most = std::max(most, exact.values().size());
      }
      last = std::max(last, step);
      if (last == 0) continue;
      ASSERT_NO_FATAL_FAILURE(ExpectPointsOf(curve, exact));
    }
    if (most > kThinnedPointsMax) continue;
    EXPECT_EQ(curve.points(), exact.Points());
    EXPECT_EQ(curve.segments(), exact.Segments());
  }
}

TEST(ThinnedCurve, ManyAttemptsDoNotMakeItGrow) {
  ThinnedCurve curve;
  for (uint32_t attempt = 1; attempt <= 5'000; ++attempt)
    curve.AddReport(attempt, attempt - 1, attempt, static_cast<double>(attempt % 7));
  EXPECT_LE(curve.segments().size(), kThinnedPointsMax);
  EXPECT_EQ(curve.segments().back(), (ThinnedSegment{5'000, 5'000}));
}

TEST(ThinnedCurve, ItsBytesContinueIt) {
  ThinnedCurve whole;
  ThinnedCurve saved;
  for (int64_t step = 1; step <= 2'000; ++step) {
    const uint32_t attempt = step < 900 ? 1 : 2;
    const double value = static_cast<double>(step * 7'919 % 1'009);
    whole.AddReport(attempt, 890, step, value);
    saved.AddReport(attempt, 890, step, value);
    if (step % 100 == 0) saved = ThinnedCurve::FromBytes(saved.ToBytes()).value();
  }
  EXPECT_EQ(saved.points(), whole.points());
  EXPECT_EQ(saved.segments(), whole.segments());
}

TEST(ThinnedCurve, DamagedBytesAreRefused) {
  ThinnedCurve curve;
  for (int64_t step = 1; step <= 9; ++step) curve.AddReport(1, 0, step, 1);
  const std::string bytes = curve.ToBytes();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_TRUE(size + 12 == bytes.size() || !ThinnedCurve::FromBytes(bytes.substr(0, size)))
        << size;  // without its only segment, it is still a curve
  std::string unsorted = bytes;
  unsorted[27] = '\x7f';
  EXPECT_FALSE(ThinnedCurve::FromBytes(unsorted));
}

}  // namespace
}  // namespace attune::server
