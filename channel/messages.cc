#include "channel/messages.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <map>

#include "channel/line_reader.h"
#include "channel/message_json.h"
#include "json/parse.h"

namespace attune::channel {
namespace {

// Keeps the order of keys, for messages that are written and for the configuration in `start`.
// Reading it compares each key with all earlier keys, so messages of ranks are read with the
// unordered Json.
using OrderedJson = nlohmann::ordered_json;
using Json = nlohmann::json;

template <typename AnyJson>
std::optional<double> ReadNumber(const AnyJson& json) {
  if (json.is_number()) return json.template get<double>();
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (json == "inf") return std::numeric_limits<double>::infinity();
  if (json == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

template <typename AnyJson>
std::optional<Value> ReadValue(const AnyJson& json) {
  if (json.is_boolean()) return json.template get<bool>();
  if (json.is_string()) return json.template get<std::string>();
  if (json.is_number_unsigned() && json.template get<uint64_t>() > INT64_MAX) return std::nullopt;
  if (json.is_number_integer()) return json.template get<int64_t>();
  if (json.is_number_float()) return json.template get<double>();
  return std::nullopt;
}

template <typename AnyJson>
std::string Dump(const AnyJson& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, AnyJson::error_handler_t::replace);
}

// Typed access to the fields of a message. Remembers the first field that was missing or wrong.
template <typename AnyJson>
class Fields {
 public:
  explicit Fields(const AnyJson& json) : json_(json) {}

  const std::string& problem() const { return problem_; }

  bool Has(const char* name) const { return Find(name) != nullptr; }

  int64_t Integer(const char* name, int64_t min, int64_t max = kIntegerMax) {
    const AnyJson* field = Find(name);
    if (field && field->is_number_integer()) {
      const bool fits = !field->is_number_unsigned() ||
                        field->template get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
      const int64_t value = field->template get<int64_t>();
      if (fits && value >= min && value <= max) return value;
    }
    RejectField(name, "an integer from " + std::to_string(min) + " to " + std::to_string(max));
    return min;
  }

  // As above, for an optional field.
  int64_t IntegerOr(int64_t fallback, const char* name, int64_t min, int64_t max = kIntegerMax) {
    return Has(name) ? Integer(name, min, max) : fallback;
  }

  int Int(const char* name, int min, int max = INT_MAX) {
    return static_cast<int>(Integer(name, min, max));
  }
  int IntOr(int fallback, const char* name, int min, int max = INT_MAX) {
    return static_cast<int>(IntegerOr(fallback, name, min, max));
  }

  // Accepts any seed that a program may use; the seeds of sweeps are below 2^53.
  uint64_t SeedOr(uint64_t fallback, const char* name) {
    const AnyJson* field = Find(name);
    if (!field) return fallback;
    if (field->is_number_unsigned()) return field->template get<uint64_t>();
    RejectField(name, "an integer of at least 0");
    return fallback;
  }

  double NotNegative(const char* name) {
    const AnyJson* field = Find(name);
    if (field && field->is_number()) {
      const double value = field->template get<double>();
      if (std::isfinite(value) && value >= 0) return value;
    }
    RejectField(name, "a finite number of at least 0");
    return 0;
  }

  // An optional field.
  std::optional<bool> Boolean(const char* name) {
    const AnyJson* field = Find(name);
    if (!field) return std::nullopt;
    if (!field->is_boolean()) RejectField(name, "true or false");
    return *field == true;
  }

  std::string Text(const char* name) {
    const AnyJson* field = Find(name);
    if (field && field->is_string()) return field->template get<std::string>();
    RejectField(name, "a string");
    return {};
  }

  std::string TextOr(std::string fallback, const char* name) {
    return Has(name) ? Text(name) : fallback;
  }

  // An optional list.
  std::vector<std::string> TextsOr(std::vector<std::string> fallback, const char* name) {
    const AnyJson* field = Find(name);
    if (!field) return fallback;
    const auto is_text = [](const AnyJson& json) { return json.is_string(); };
    if (field->is_array() && !field->empty() && std::ranges::all_of(*field, is_text)) {
      return field->template get<std::vector<std::string>>();
    }
    RejectField(name, "a list with at least one string");
    return fallback;
  }

  // A path or a host name.
  std::string Name(const char* name) {
    std::string text = Text(name);
    if (text.empty() || HasControlCharacters(text)) {
      RejectField(name, "a text without control characters that is not empty");
    }
    return text;
  }

  std::vector<int> Ranks(const char* name) {
    std::vector<int> ranks;
    const AnyJson* field = Find(name);
    const auto is_rank = [](const AnyJson& json) {
      return json.is_number_integer() && json >= 0 && json <= INT_MAX;
    };
    if (field && field->is_array() && std::ranges::all_of(*field, is_rank)) {
      for (const AnyJson& json : *field) ranks.push_back(json.template get<int>());
    } else {
      RejectField(name, "a list of ranks");
    }
    return ranks;
  }

  std::vector<std::pair<std::string, double>> Metrics(const char* name) {
    std::vector<std::pair<std::string, double>> metrics;
    const AnyJson* field = Find(name);
    if (!field || !field->is_object()) {
      RejectField(name, "an object of numbers");
      return metrics;
    }
    for (const auto& [metric, json] : field->items()) {
      const auto value = ReadNumber(json);
      if (!value) {
        RejectEntry(name, metric, json, R"(an object of numbers, "nan", "inf" or "-inf")");
      }
      metrics.emplace_back(metric, value.value_or(0));
    }
    return metrics;
  }

  std::vector<NamedValue> Parameters(const char* name) {
    std::vector<NamedValue> parameters;
    const AnyJson* field = Find(name);
    if (!field || !field->is_object()) {
      RejectField(name, "an object of numbers, booleans and texts");
      return parameters;
    }
    for (const auto& [parameter, json] : field->items()) {
      const auto value = ReadValue(json);
      if (!value) RejectEntry(name, parameter, json, "an object of numbers, booleans and texts");
      parameters.push_back({parameter, value.value_or(false)});
    }
    return parameters;
  }

  // The index of the field's text in `words`.
  template <size_t N>
  size_t Word(const char* name, const char* const (&words)[N]) {
    const std::string text = Text(name);
    const auto found = std::ranges::find(words, text);
    if (found != std::end(words)) return static_cast<size_t>(found - words);
    std::string choices;
    for (const char* word : words) choices += (choices.empty() ? "" : ", ") + std::string(word);
    RejectField(name, "one of " + choices);
    return 0;
  }

  void SetProblem(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  void RejectField(const char* name, const std::string& requirement) {
    const AnyJson* field = Find(name);
    SetProblem("'" + std::string(name) + "' is " + (field ? Quote(Dump(*field)) : "missing") +
               " and must be " + requirement);
  }

 private:
  void RejectEntry(const char* name, const std::string& key, const AnyJson& json,
                   const std::string& requirement) {
    SetProblem("'" + std::string(name) + "' has " + Quote(key) + " as " + Quote(Dump(json)) +
               " and must be " + requirement);
  }

  const AnyJson* Find(const char* name) const {
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }

  const AnyJson& json_;
  std::string problem_;
};

template <typename AnyJson>
Rendezvous ReadRendezvous(Fields<AnyJson>& fields) {
  return {fields.Name("host"), fields.Int("port", 1, 65535)};
}

// Sweep files may contain integers up to this limit, although some JSON readers round integers
// above kIntegerMax.
constexpr int64_t kSweepIntegerMax = INT64_MAX;

Start ReadStart(Fields<OrderedJson>& fields, const OrderedJson& json) {
  if (fields.Int("protocol", 0) != kProtocol) {
    fields.RejectField("protocol", std::to_string(kProtocol) +
                                       ", the version of this program; build the program with the "
                                       "executor's release");
  }
  Start start;
  start.sweep = fields.TextOr("", "sweep");
  start.trial = fields.IntegerOr(0, "trial", 0, kSweepIntegerMax);
  start.attempt = fields.IntOr(1, "attempt", 1);
  start.world_size = fields.Int("world_size", 1);
  start.rank = fields.Int("rank", 0, start.world_size - 1);
  start.local_rank = fields.IntOr(start.rank, "local_rank", 0);
  start.local_world_size = fields.IntOr(start.world_size, "local_world_size", 1);
  start.address = fields.TextOr("", "address");
  start.device = fields.TextOr("cpu", "device");
  start.devices = fields.TextsOr({}, "devices");
  start.cpus = fields.IntOr(1, "cpus", 0);  // 0: a rank that shares the CPUs of others
  start.seed = fields.SeedOr(0, "seed");
  start.parameters = fields.Parameters("config");
  start.time_attr = fields.TextOr("", "time_attr");
  start.milestone = fields.IntegerOr(0, "milestone", 0, kSweepIntegerMax);
  start.max_step = fields.IntegerOr(0, "max_step", 0, kSweepIntegerMax);
  start.checkpoint_every = fields.IntegerOr(0, "checkpoint_every", 0, kSweepIntegerMax);
  start.checkpoint_dir = fields.TextOr("", "checkpoint_dir");
  if (fields.Has("resume")) {
    Fields resume(json["resume"]);
    start.resume = {resume.Integer("step", 0, kSweepIntegerMax), resume.Text("path"),
                    resume.TextOr("", "digest")};
    if (!resume.problem().empty()) fields.SetProblem("'resume' is invalid: " + resume.problem());
  }
  return start;
}

void Read(const std::string& type, const OrderedJson& json, Fields<OrderedJson>& fields,
          FromExecutor& message) {
  if (type == "start") message = ReadStart(fields, json);
  if (type == "rendezvous") message = ReadRendezvous(fields);
  if (type == "verdict") {
    message = Verdict{.step = fields.Integer("step", 0, kSweepIntegerMax),
                      .action = static_cast<Action>(fields.Word("action", kActions)),
                      .milestone = fields.IntegerOr(0, "milestone", 0, kSweepIntegerMax)};
  }
  if (type == "yield") message = Yield{};
  if (type == "claimed") message = Claimed{};
  if (type == "refused") message = Refused{fields.Text("message")};
}

void Read(const std::string& type, const Json&, Fields<Json>& fields, FromRank& message) {
  if (type == "heartbeat") {
    message = Heartbeat{std::chrono::milliseconds(fields.Integer("silence_ms", 0, kSilenceMsMax))};
  }
  if (type == "progress") message = Progress{fields.Integer("step", 0)};
  if (type == "join") {
    const int world_size = fields.Int("world_size", 1);
    message = Join{.rank = fields.Int("rank", 0, world_size - 1),
                   .world_size = world_size,
                   .local_rank = fields.Int("local_rank", 0, world_size - 1),
                   .local_world_size = fields.Int("local_world_size", 1, world_size)};
  }
  if (type == "claim") message = Claim{};
  if (type == "waiting")
    message = Waiting{.ranks = fields.Ranks("ranks"), .step = fields.Integer("step", 1)};
  if (type == "report") {
    Report report{.step = fields.Integer("step", 1),
                  .metrics = fields.Metrics("metrics"),
                  .seconds = fields.NotNegative("seconds"),
                  .waits = fields.Boolean("waits")};
    fields.SetProblem(MetricsProblem(report.metrics));
    message = std::move(report);
  }
  if (type == "log") {
    Logged logged{.step = fields.NotNegative("step"), .metrics = fields.Metrics("metrics")};
    fields.SetProblem(MetricsProblem(logged.metrics));
    message = std::move(logged);
  }
  if (type == "checkpoint") {
    CheckpointSaved checkpoint{.step = fields.Integer("step", 1),
                               .path = fields.Name("path"),
                               .digest = fields.Text("digest"),
                               .bytes = static_cast<uint64_t>(fields.Integer("bytes", 0))};
    if (!IsDigest(checkpoint.digest)) fields.RejectField("digest", "sha256: and 64 hex digits");
    message = std::move(checkpoint);
  }
  if (type == "rendezvous") message = ReadRendezvous(fields);
  if (type == "leaving") message = Leaving{Shorten(fields.TextOr("", "message"))};
  if (type == "error") {
    message =
        ErrorText{Shorten(fields.Text("message")), fields.Boolean("lost_peer").value_or(false),
                  fields.Boolean("disk_full").value_or(false)};
  }
  if (type == "done") message = Done{};
}

template <typename Message, typename AnyJson>
Result<Message> Parse(std::string_view line) {
  const auto json = ParseJson<AnyJson>(line);
  if (!json.is_object()) return Invalid("not a JSON object in UTF-8: " + Quote(line));
  const auto type = json.find("type");
  if (type == json.end() || !type->is_string()) {
    return Invalid("a message without a string 'type': " + Quote(line));
  }
  Fields fields(json);
  Message message = Unknown{};
  Read(type->template get<std::string>(), json, fields, message);
  if (!fields.problem().empty()) {
    return Invalid("a " + type->template get<std::string>() + " message whose " + fields.problem() +
                   ": " + Quote(line));
  }
  return message;
}

}  // namespace

Result<FromExecutor> ParseFromExecutor(std::string_view line) {
  return Parse<FromExecutor, OrderedJson>(line);
}

Result<FromRank> ParseFromRank(std::string_view line) { return Parse<FromRank, Json>(line); }

std::string MetricsProblem(const std::vector<std::pair<std::string, double>>& metrics) {
  if (metrics.size() > static_cast<size_t>(kMetricsMax)) {
    return "'metrics' has " + std::to_string(metrics.size()) + " metrics, but at most " +
           std::to_string(kMetricsMax) + " are allowed";
  }
  for (const auto& [name, value] : metrics) {
    if (IsMetricName(name)) continue;
    return "'metrics' has the name " + Quote(name) + ", but names must have 1 to " +
           std::to_string(kMetricNameBytesMax) + " bytes without control characters";
  }
  return "";
}

Result<int64_t> StepOfTime(const std::string& time_attr, std::optional<double> value,
                           int64_t last) {
  const std::string metric =
      "the metric " + Quote(time_attr) + ", in which the sweep measures time, ";
  if (!value) return Invalid(metric + "is not in the report");
  if (!(*value >= 0 && *value <= static_cast<double>(kIntegerMax)))
    return Invalid(metric + "is " + Dump(Number(*value)) +
                   " and must be finite, at least 0 and exact");
  const auto step = static_cast<int64_t>(*value);
  if (step >= last) return step;
  return Invalid(metric + "is " + Dump(Number(*value)) + " after " + std::to_string(last) +
                 "; it must increase, and a trial that resumes from a checkpoint must continue "
                 "from its value");
}

}  // namespace attune::channel
