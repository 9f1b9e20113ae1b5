#pragma once

#include <string>
#include <string_view>

#include "server/store/json.h"

namespace attune::server {

// Picks the step and one metric out of a report's payload without building the rest: curves read
// every report of a sweep.
class PointScanner final : public nlohmann::json_sax<Json> {
 public:
  explicit PointScanner(const std::string& metric) : metric_(metric) {}

  // Whether the report has the metric.
  bool Scan(std::string_view payload) {
    depth_ = 0;
    in_metrics_ = found_ = false;
    field_ = Field::kOther;
    return Json::sax_parse(payload, this) && found_;
  }

  int64_t step() const { return step_; }
  double value() const { return value_; }

  bool key(string_t& name) override {
    if (depth_ == 1) {
      field_ = name == "step" ? Field::kStep : Field::kOther;
      at_metrics_ = name == "metrics";
    } else {
      field_ = depth_ == 2 && in_metrics_ && name == metric_ ? Field::kValue : Field::kOther;
    }
    return true;
  }
  bool number_integer(number_integer_t number) override {
    if (field_ == Field::kStep) step_ = number;
    return Real(static_cast<double>(number));
  }
  bool number_unsigned(number_unsigned_t number) override {
    return number_integer(static_cast<number_integer_t>(number));
  }
  bool number_float(number_float_t number, const string_t&) override { return Real(number); }
  bool string(string_t& text) override {
    return field_ != Field::kValue || Real(ValueOrThrow(sweepfile::RealFromJson(text)));
  }
  bool start_object(size_t) override {
    in_metrics_ = ++depth_ == 2 && at_metrics_;
    return true;
  }
  bool end_object() override {
    in_metrics_ = false;
    --depth_;
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  enum class Field { kOther, kStep, kValue };

  bool Real(double number) {
    if (field_ == Field::kValue) {
      value_ = number;
      found_ = true;
    }
    return true;
  }

  const std::string& metric_;
  int depth_ = 0;
  bool at_metrics_ = false;
  bool in_metrics_ = false;
  bool found_ = false;
  Field field_ = Field::kOther;
  int64_t step_ = 0;
  double value_ = 0;
};

}  // namespace attune::server
