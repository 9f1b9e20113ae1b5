#pragma once

#include "base/result.h"
#include "core/log/sweep_spec.h"
#include "core/space/value.h"
#include "json/parse.h"

namespace attune::sweepfile {

// JSON that keeps the order of its keys. The order of parameters and configurations is part of a
// sweep, and a plain nlohmann::json would sort them.
using Json = nlohmann::ordered_json;

// Conversions without loss: 1 and 1.0 stay different, and reals keep every bit, even the sign of
// -0.0. Reals that JSON cannot represent become the text "nan", "inf" or "-inf". Metrics read these
// texts as numbers; values of parameters read them as texts.
Json ToJson(const Value& value);
Json ToJson(const Config& config);    // {"lr": 0.1, "width": 32}
Json ToJson(const Metrics& metrics);  // {"loss": "nan"}
Json RealToJson(double value);

Result<Value> ValueFromJson(const Json& json);
Result<Config> ConfigFromJson(const Json& json);
Result<Metrics> MetricsFromJson(const Json& json);
Result<double> RealFromJson(const Json& json);

// The sweep file with every default. ParseSweep can read its dump.
Json ToJson(const SweepSpec& spec);

// The same form as `resources.requires` of a sweep file.
Json ToJson(const Requirements& required);
// Reads the output of ToJson; a missing key gets its default. The error is kCorrupt and names the
// place. For sweep files from users, use ParseSweep.
Result<SweepSpec> SpecFromJson(const Json& json);

Result<SweepSpec> SpecFromJson(const nlohmann::json& sorted) = delete;
Result<Config> ConfigFromJson(const nlohmann::json& sorted) = delete;

}  // namespace attune::sweepfile
