#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/log/event.h"

// The form of measured values in the log. A report is [attempt,step,seconds,{metrics}], with `true`
// as a fifth element if rank 0 waits for the verdict. Metrics that are logged between reports are
// [attempt,number,step,{metrics}]. Nearly all events are measured values, so they are written and
// read without a tree of JSON.
namespace attune::server {

// Appends the form to `out`. Reals keep every bit and always have a point or an exponent.
void WriteMeasured(const TrialReported& fact, std::string& out);
void WriteMeasured(const MetricsLogged& fact, std::string& out);

// Appends only the metrics: {"loss":0.125,"other":"nan"}.
void WriteMetrics(const Metrics& metrics, std::string& out);

// Reads the exact output of WriteMeasured, field by field, without allocations. Any other JSON, for
// example with spaces or escapes in names, counts as a fault; the caller then uses a JSON parser.
class MeasuredScanner {
 public:
  // The payload must outlive the scanner. Reads everything before the metrics.
  explicit MeasuredScanner(std::string_view payload);

  // Moves to the next metric. Returns false after the last one and at a fault.
  bool NextMetric();
  std::string_view name() const { return name_; }
  double value() const { return value_; }

  // Valid once NextMetric has returned false: whether the whole payload had the expected form.
  bool ok() const { return ok_; }
  bool waits() const { return waits_; }

  uint32_t attempt() const { return attempt_; }
  int64_t count() const { return count_; }  // the second element: a step or a number
  double real() const { return real_; }     // the third element: seconds, or a fractional step

 private:
  bool Take(char expected);
  bool Take(std::string_view expected);
  template <class Number>
  bool TakeNumber(Number& number);
  bool TakeReal(double& real);
  bool TakeName();
  bool Fault();

  const char* at_;
  const char* end_;
  bool first_ = true;
  bool ok_ = true;
  bool waits_ = false;
  uint32_t attempt_ = 0;
  int64_t count_ = 0;
  double real_ = 0;
  std::string_view name_;
  double value_ = 0;
};

}  // namespace attune::server
