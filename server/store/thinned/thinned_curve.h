#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::server {

struct CurvePoint {
  double step = 0;
  float value = 0;  // may be NaN or infinite

  bool operator==(const CurvePoint&) const = default;
};

// Rounds to a float. Finite values that are too large become infinite.
float RoundedValue(double value);

// Keeps at most `most` points of a curve that is sorted by step. The steps are divided into
// buckets, whose width is a power of two and doubles until it suffices. Each bucket keeps its
// lowest and its highest value; NaN counts as the highest, and the first of equal values is kept.
// The first and the last point stay. If there are too many points for a `most` of 2 or 3, only
// these two stay. REQUIRES: most >= 2.
std::vector<CurvePoint> ThinPoints(std::vector<CurvePoint> points, size_t most);

// The most points that a ThinnedCurve keeps.
inline constexpr size_t kThinnedPointsMax = 256;

// A part of a curve that one attempt reported. It ends where the next one begins.
struct ThinnedSegment {
  uint32_t attempt = 0;
  double first_step = 0;

  bool operator==(const ThinnedSegment&) const = default;
};

// The values of one metric of one trial, thinned while they come in the order of time: either those
// of reports or those that were logged between reports. Later attempts replace points as in
// server/store/curves.h. Every point of a thinned curve is a point of the exact curve. Without
// later attempts, it has the points that ThinPoints would keep at some width. If a later attempt
// replaces a part of a bucket, the rest of that bucket keeps only the points that it had kept.
class ThinnedCurve {
 public:
  // Adds a value that the attempt reported at this step. `resumed_from` is the step from which the
  // attempt resumed; 0: it began from the start.
  void AddReport(uint32_t attempt, int64_t resumed_from, int64_t step, double value);
  // Adds a logged value. It replaces those at the same and at later steps. Steps that are not
  // finite are ignored.
  void AddLogged(double step, double value);

  const std::vector<CurvePoint>& points() const { return points_; }
  // The parts by attempt; empty for logged values. A part without a kept point may be missing.
  const std::vector<ThinnedSegment>& segments() const { return segments_; }

  // The memory that the curve takes.
  size_t bytes() const;

  // A form for a file on this machine. Nullopt: the bytes are damaged.
  std::string ToBytes() const;
  static std::optional<ThinnedCurve> FromBytes(std::string_view bytes);

 private:
  // Before this value of width_exponent_, each step has its own bucket.
  static constexpr int32_t kNoBuckets = -0x7fff;

  void Insert(size_t at, CurvePoint point);
  void SettleBucketOf(double step);
  void MoveSegments(uint32_t attempt, double from, double step, size_t at);
  void DropSegmentsWithoutPoints();

  int32_t width_exponent_ = kNoBuckets;
  uint32_t attempt_ = 0;  // of the last report
  int64_t covered_ = 0;   // the last step that attempt_ covers
  std::vector<CurvePoint> points_;
  std::vector<ThinnedSegment> segments_;
};

}  // namespace attune::server
