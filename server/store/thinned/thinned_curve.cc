#include "server/store/thinned/thinned_curve.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "base/check.h"

namespace attune::server {
namespace {

// The exponent of a width that puts all steps of one sign into one bucket.
constexpr int32_t kWidthExponentMax = std::numeric_limits<double>::max_exponent;

double BucketOf(double step, int32_t width_exponent) {
  return std::floor(std::ldexp(step, -width_exponent));
}

// Whether `a` is below `b`; NaN is above all others.
bool IsLower(const CurvePoint& a, const CurvePoint& b) {
  if (std::isnan(a.value)) return false;
  return std::isnan(b.value) || a.value < b.value;
}

// Calls `keep` with the lowest and the highest point of a bucket, in order of steps.
template <class Keep>
void KeepExtremes(std::span<const CurvePoint> bucket, Keep keep) {
  const auto lowest = std::ranges::min_element(bucket, IsLower);
  const auto highest = std::ranges::max_element(bucket, IsLower);
  const auto [first, second] = std::minmax(lowest, highest);
  keep(*first);
  if (second != first) keep(*second);
}

// Keeps the extremes of each bucket of this width, and the first and the last point.
std::vector<CurvePoint> ThinToWidth(std::span<const CurvePoint> points, int32_t width_exponent) {
  std::vector<CurvePoint> kept;
  const auto keep = [&](const CurvePoint& point) {
    if (kept.empty() || kept.back().step < point.step) kept.push_back(point);
  };
  if (!points.empty()) keep(points.front());
  for (size_t begin = 0; begin < points.size();) {
    const double bucket = BucketOf(points[begin].step, width_exponent);
    size_t end = begin + 1;
    while (end < points.size() && BucketOf(points[end].step, width_exponent) == bucket) ++end;
    KeepExtremes(points.subspan(begin, end - begin), keep);
    begin = end;
  }
  if (!points.empty()) keep(points.back());
  return kept;
}

// The exponent of the largest power of two up to the width with which `most` buckets cover the
// points.
int32_t FirstWidthExponent(std::span<const CurvePoint> points, size_t most) {
  const double width = (points.back().step - points.front().step) / static_cast<double>(most);
  return width > 0 ? std::ilogb(width) : 0;
}

// Thins to at most `most` points, with the smallest width from `width_exponent` on, and returns the
// used exponent.
int32_t ThinFromWidth(std::vector<CurvePoint>& points, size_t most, int32_t width_exponent) {
  while (points.size() > most && width_exponent <= kWidthExponentMax)
    points = ThinToWidth(points, width_exponent++);
  return width_exponent - 1;
}

template <class T>
void Append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Reads values from bytes, as long as there are enough.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  bool Take(T& value) {
    if (rest_.size() < sizeof(value)) return false;
    std::memcpy(&value, rest_.data(), sizeof(value));
    rest_.remove_prefix(sizeof(value));
    return true;
  }
  bool AtEnd() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace

float RoundedValue(double value) {
  constexpr double kMax = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (value > kMax) return kInfinity;
  if (value < -kMax) return -kInfinity;
  return static_cast<float>(value);
}

std::vector<CurvePoint> ThinPoints(std::vector<CurvePoint> points, size_t most) {
  ATTUNE_CHECK(most >= 2);
  if (points.size() <= most) return points;
  if (most < 4) return {points.front(), points.back()};
  ThinFromWidth(points, most, FirstWidthExponent(points, most));
  return points;
}

void ThinnedCurve::AddReport(uint32_t attempt, int64_t resumed_from, int64_t step, double value) {
  if (points_.empty() || attempt != attempt_) {
    attempt_ = attempt;
    covered_ = resumed_from;
  }
  // Replaces the points that earlier attempts reported after this one's last report.
  const auto after = static_cast<double>(std::min(covered_, step - 1));
  const auto at = static_cast<double>(step);
  const auto first = std::ranges::upper_bound(points_, after, {}, &CurvePoint::step);
  const auto last = std::ranges::upper_bound(first, points_.end(), at, {}, &CurvePoint::step);
  const auto place = static_cast<size_t>(first - points_.begin());
  points_.erase(first, last);
  MoveSegments(attempt, after, at, place);
  Insert(place, {at, RoundedValue(value)});
  covered_ = step;
}

void ThinnedCurve::AddLogged(double step, double value) {
  if (!std::isfinite(step)) return;
  // An attempt that resumes from an earlier step logs the later ones again.
  while (!points_.empty() && points_.back().step >= step) points_.pop_back();
  Insert(points_.size(), {step, RoundedValue(value)});
}

// Gives the steps in (from, step] to the attempt. `at` is the place of the new point, and of the
// first point after the step.
void ThinnedCurve::MoveSegments(uint32_t attempt, double from, double step, size_t at) {
  const auto after = [this](double limit) {
    return std::ranges::upper_bound(segments_, limit, {}, &ThinnedSegment::first_step);
  };
  const auto last = after(step);
  const bool has_rest = at < points_.size();
  const auto next = has_rest ? after(points_[at].step) : segments_.end();
  // The attempt of the first point after the step, if its segment begins before.
  uint32_t rest = attempt;
  if (has_rest && next == last && last != segments_.begin()) rest = (last - 1)->attempt;
  auto place = segments_.erase(after(from), last);
  if (place == segments_.begin() || (place - 1)->attempt != attempt)
    place = segments_.insert(place, {attempt, step}) + 1;
  if (rest != attempt) segments_.insert(place, {rest, points_[at].step});
}

// Inserts a point at its place. The lowest and highest points of its bucket may change, and the
// neighbours may no longer be the first or the last point.
void ThinnedCurve::Insert(size_t at, CurvePoint point) {
  points_.insert(points_.begin() + static_cast<ptrdiff_t>(at), point);
  if (width_exponent_ != kNoBuckets) {
    const double before = at > 0 ? points_[at - 1].step : point.step;
    const double next = at + 1 < points_.size() ? points_[at + 1].step : point.step;
    SettleBucketOf(before);
    if (BucketOf(point.step, width_exponent_) != BucketOf(before, width_exponent_))
      SettleBucketOf(point.step);
    if (BucketOf(next, width_exponent_) != BucketOf(point.step, width_exponent_))
      SettleBucketOf(next);
  }
  if (points_.size() > kThinnedPointsMax) {
    const int32_t exponent = width_exponent_ == kNoBuckets
                                 ? FirstWidthExponent(points_, kThinnedPointsMax)
                                 : width_exponent_ + 1;
    width_exponent_ = ThinFromWidth(points_, kThinnedPointsMax, exponent);
  }
  if (segments_.size() > kThinnedPointsMax) DropSegmentsWithoutPoints();
}

// Removes the points of a bucket that are not its extremes, nor the first or the last of all.
void ThinnedCurve::SettleBucketOf(double step) {
  const auto bucket = std::ranges::equal_range(
      points_, BucketOf(step, width_exponent_), {},
      [this](const CurvePoint& each) { return BucketOf(each.step, width_exponent_); });
  if (bucket.size() <= 2) return;
  const CurvePoint* const first = &points_.front();
  const CurvePoint* const last = &points_.back();
  const auto lowest = std::ranges::min_element(bucket, IsLower);
  const auto highest = std::ranges::max_element(bucket, IsLower);
  auto kept = bucket.begin();
  for (auto each = bucket.begin(); each != bucket.end(); ++each) {
    if (each == lowest || each == highest || &*each == first || &*each == last) *kept++ = *each;
  }
  points_.erase(kept, bucket.end());
}

void ThinnedCurve::DropSegmentsWithoutPoints() {
  std::vector<ThinnedSegment> kept;
  for (size_t i = 0; i < segments_.size(); ++i) {
    const auto point =
        std::ranges::lower_bound(points_, segments_[i].first_step, {}, &CurvePoint::step);
    const bool has_point = point != points_.end() &&
                           (i + 1 == segments_.size() || point->step < segments_[i + 1].first_step);
    if (!has_point) continue;
    if (kept.empty() || kept.back().attempt != segments_[i].attempt) kept.push_back(segments_[i]);
  }
  segments_ = std::move(kept);
}

size_t ThinnedCurve::bytes() const {
  return sizeof(*this) + points_.capacity() * sizeof(CurvePoint) +
         segments_.capacity() * sizeof(ThinnedSegment);
}

std::string ThinnedCurve::ToBytes() const {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes;
  Append(bytes, width_exponent_);
  Append(bytes, attempt_);
  Append(bytes, covered_);
  Append(bytes, static_cast<uint32_t>(points_.size()));
  for (const CurvePoint& point : points_) {
    Append(bytes, point.step);
    Append(bytes, point.value);
  }
  for (const ThinnedSegment& segment : segments_) {
    Append(bytes, segment.attempt);
    Append(bytes, segment.first_step);
  }
  return bytes;
}

std::optional<ThinnedCurve> ThinnedCurve::FromBytes(std::string_view bytes) {
  ThinnedCurve curve;
  ByteReader reader(bytes);
  uint32_t points = 0;
  const bool has_head = reader.Take(curve.width_exponent_) && reader.Take(curve.attempt_) &&
                        reader.Take(curve.covered_) && reader.Take(points);
  if (!has_head || points > kThinnedPointsMax) return std::nullopt;
  if (curve.width_exponent_ < kNoBuckets || curve.width_exponent_ > kWidthExponentMax)
    return std::nullopt;
  curve.points_.resize(points);
  for (CurvePoint& point : curve.points_) {
    if (!reader.Take(point.step) || !reader.Take(point.value)) return std::nullopt;
  }
  while (!reader.AtEnd()) {
    ThinnedSegment& segment = curve.segments_.emplace_back();
    if (!reader.Take(segment.attempt) || !reader.Take(segment.first_step)) return std::nullopt;
  }
  const auto not_after = [](double a, double b) { return !(a < b); };
  if (std::ranges::adjacent_find(curve.points_, not_after, &CurvePoint::step) !=
      curve.points_.end())
    return std::nullopt;
  return curve;
}

}  // namespace attune::server
