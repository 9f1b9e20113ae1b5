#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/log/event.h"

// The form of measured values in the log. A report is [attempt,step,seconds,{metrics}], with `true`
// as a fifth element if rank 0 waits for the verdict. Metrics that are logged between reports are
// [attempt,number,step,{metrics}]. Nearly every event is one of these, so they are written and read
// without a tree of JSON.
namespace attune::server {

// Appends to `out`. Reals keep every bit and always have a point or an exponent.
void WriteMeasured(const TrialReported& fact, std::string& out);
void WriteMeasured(const MetricsLogged& fact, std::string& out);

// The metrics alone: {"loss":0.125,"other":"nan"}.
void WriteMetrics(const Metrics& metrics, std::string& out);

// Reads them as WriteMeasured writes them, field by field, and allocates nothing. What is JSON but
// written in another way (spaces, escapes in a name) counts as a fault: a JSON parser reads that.
class MeasuredScanner {
 public:
  // The payload outlives the scanner. Reads all but the metrics.
  explicit MeasuredScanner(std::string_view payload);

  // Steps to the next metric; false after the last one and at a fault.
  bool NextMetric();
  std::string_view name() const { return name_; }
  double value() const { return value_; }

  // Once NextMetric has said false: whether the whole payload was as expected.
  bool ok() const { return ok_; }
  bool waits() const { return waits_; }

  uint32_t attempt() const { return attempt_; }
  int64_t count() const { return count_; }  // the second element: a step or a number
  double real() const { return real_; }  // the third: seconds, or a step that may be no whole one

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
