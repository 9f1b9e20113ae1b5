#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/log/sweep_spec.h"
#include "sweepfile/codec.h"
#include "sweepfile/document.h"

namespace attune::sweepfile {

// Whatever text an error quotes, the error itself stays UTF-8.
constexpr auto kReplaceInvalid = Json::error_handler_t::replace;

// Reads the JSON of a spec back; the first thing that is wrong is the error. Of one use.
class SpecDecoder {
 public:
  explicit SpecDecoder(const Json& json) : json_(json) {}
  Result<SweepSpec> Decode();

 private:
  // The member of an object; a null, and an error, when it is not there.
  const Json& Member(const Json& object, const char* key);
  std::string Text(const Json& object, const char* key);
  int64_t Integer(const Json& object, const char* key, int64_t min, int64_t max);
  int Int(const Json& object, const char* key);  // from 0
  double Real(const Json& object, const char* key);
  Seconds Duration(const Json& object, const char* key);
  std::vector<std::string> Texts(const Json& object, const char* key);
  std::vector<Value> Values(const Json& list);
  Node Scalar(const Json& object, const char* key);

  void DecodeProgram();
  void DecodeObjectives();
  void DecodeObjective(const Json& metric);
  void DecodeConstraints();
  void DecodeSpace();
  void DecodePoints();
  void DecodeWarmStart();
  void DecodeGang();
  void DecodeCheckpoint();
  void DecodeLimits(bool external);
  void DecodeTrialStoppers(const Json& stop);
  Domain DecodeDomain(const Json& parameter);
  Condition DecodeCondition(const std::string& parent, const Json& condition);
  AlgorithmSpec DecodeAlgorithm(const char* key, std::initializer_list<std::string_view> common);
  void Fail(const std::string& message);

  const Json& json_;
  SweepSpec spec_;
  std::optional<Error> error_;
};

}  // namespace attune::sweepfile
