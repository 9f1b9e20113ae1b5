#pragma once

#include "base/result.h"
#include "core/log/sweep_spec.h"
#include "core/space/value.h"
#include "json/parse.h"

namespace attune::sweepfile {

// JSON that keeps the order of its keys. The order of parameters and configurations is part of a
// sweep: putting these into a plain nlohmann::json sorts it away.
using Json = nlohmann::ordered_json;

// Exact both ways: integers and reals stay apart (1 and 1.0), reals keep every bit, -0.0 its sign.
// A real that JSON cannot carry is the text "nan", "inf" or "-inf"; where a number is expected
// (metrics) it is read back as such, as a setting it is text.
Json ToJson(const Value& value);
Json ToJson(const Config& config);    // {"lr": 0.1, "width": 32}
Json ToJson(const Metrics& metrics);  // {"loss": "nan"}
Json RealToJson(double value);

Result<Value> ValueFromJson(const Json& json);
Result<Config> ConfigFromJson(const Json& json);
Result<Metrics> MetricsFromJson(const Json& json);
Result<double> RealFromJson(const Json& json);

// The sweep file with every default. ParseSweep reads its dump as well.
Json ToJson(const SweepSpec& spec);

// As in a sweep file's `resources.requires` and `stop`.
Json ToJson(const Requirements& required);
// Reads what ToJson wrote; a key that is missing has its default. kCorrupt with the place of what
// cannot be read. For sweep files of people use ParseSweep.
Result<SweepSpec> SpecFromJson(const Json& json);

Result<SweepSpec> SpecFromJson(const nlohmann::json& sorted) = delete;
Result<Config> ConfigFromJson(const nlohmann::json& sorted) = delete;

}  // namespace attune::sweepfile
