#include "executor/gang/channel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace attune::gang {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kQuotedBytes = 120;
constexpr size_t kErrorTextBytesMax = 16 * 1024;
constexpr size_t kDigestHexDigits = 64;
constexpr int kProtocol = 1;

Json Number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

std::optional<double> ReadNumber(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (json == "inf") return std::numeric_limits<double>::infinity();
  if (json == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

bool HasControlCharacters(std::string_view text) {
  return std::ranges::any_of(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

// Typed access to the fields of one message; remembers the first that was missing or wrong.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}

  const std::string& problem() const { return problem_; }

  int64_t Integer(const char* name, int64_t min, int64_t max = kIntegerMax) {
    const Json* field = Find(name);
    if (field && field->is_number_integer()) {
      const bool fits = !field->is_number_unsigned() ||
                        field->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
      const int64_t value = field->get<int64_t>();
      if (fits && value >= min && value <= max) return value;
    }
    Complain(name, "an integer from " + std::to_string(min) + " to " + std::to_string(max));
    return min;
  }

  double Seconds(const char* name) {
    const Json* field = Find(name);
    if (field && field->is_number()) {
      const double value = field->get<double>();
      if (std::isfinite(value) && value >= 0) return value;
    }
    Complain(name, "a finite number of at least 0");
    return 0;
  }

  // A field that may be left out.
  std::optional<bool> Boolean(const char* name) {
    const Json* field = Find(name);
    if (!field) return std::nullopt;
    if (!field->is_boolean()) Complain(name, "true or false");
    return *field == true;
  }

  std::string Text(const char* name) {
    const Json* field = Find(name);
    if (field && field->is_string()) return field->get<std::string>();
    Complain(name, "a string");
    return {};
  }

  // A text for machines: a path, a host.
  std::string Name(const char* name) {
    std::string text = Text(name);
    if (text.empty() || HasControlCharacters(text)) {
      Complain(name, "a text without control characters, and not empty");
    }
    return text;
  }

  std::vector<std::pair<std::string, double>> Metrics(const char* name) {
    std::vector<std::pair<std::string, double>> metrics;
    const Json* field = Find(name);
    if (!field || !field->is_object()) {
      Complain(name, "an object of numbers");
      return metrics;
    }
    if (field->size() > static_cast<size_t>(kMetricsMax)) {
      ComplainOf(name, std::to_string(field->size()) + " metrics",
                 "at most " + std::to_string(kMetricsMax));
      return metrics;
    }
    for (const auto& [metric, json] : field->items()) {
      if (metric.empty() || metric.size() > kMetricNameBytesMax || HasControlCharacters(metric)) {
        ComplainOf(name, "one named " + Quote(metric),
                   "named in 1 to " + std::to_string(kMetricNameBytesMax) +
                       " bytes without control characters");
      }
      const auto value = ReadNumber(json);
      if (!value) {
        ComplainOf(name, Quote(metric) + " as " + Quote(Dump(json)),
                   R"(an object of numbers, "nan", "inf" or "-inf")");
      }
      metrics.emplace_back(metric, value.value_or(0));
    }
    return metrics;
  }

  void Complain(const char* name, const std::string& wanted) {
    if (!problem_.empty()) return;
    const Json* field = Find(name);
    problem_ = "'" + std::string(name) + "' is " + (field ? Quote(Dump(*field)) : "missing") +
               " and must be " + wanted;
  }

 private:
  void ComplainOf(const char* name, const std::string& value, const std::string& wanted) {
    if (problem_.empty()) {
      problem_ = "'" + std::string(name) + "' has " + value + " and must be " + wanted;
    }
  }

  const Json* Find(const char* name) const {
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }

  const Json& json_;
  std::string problem_;
};

bool IsDigest(std::string_view digest) {
  constexpr std::string_view kPrefix = "sha256:";
  return digest.starts_with(kPrefix) && digest.size() == kPrefix.size() + kDigestHexDigits &&
         digest.find_first_not_of("0123456789abcdef", kPrefix.size()) == std::string_view::npos;
}

Message ReadFields(const std::string& type, Fields& fields) {
  if (type == "heartbeat") {
    return Heartbeat{std::chrono::milliseconds(fields.Integer("silence_ms", 0, kSilenceMsMax))};
  }
  if (type == "progress") return Progress{fields.Integer("step", 0)};
  if (type == "report") {
    return Report{.step = fields.Integer("step", 1),
                  .metrics = fields.Metrics("metrics"),
                  .seconds = fields.Seconds("seconds"),
                  .waits = fields.Boolean("waits")};
  }
  if (type == "checkpoint") {
    CheckpointSaved checkpoint{.step = fields.Integer("step", 1),
                               .path = fields.Name("path"),
                               .digest = fields.Text("digest"),
                               .bytes = static_cast<uint64_t>(fields.Integer("bytes", 0))};
    if (!IsDigest(checkpoint.digest)) fields.Complain("digest", "sha256: and 64 hex digits");
    return checkpoint;
  }
  if (type == "rendezvous") {
    return Rendezvous{fields.Name("host"), static_cast<int>(fields.Integer("port", 1, 65535))};
  }
  if (type == "error") {
    std::string message = fields.Text("message");
    if (message.size() > kErrorTextBytesMax) message.resize(kErrorTextBytesMax);
    return ErrorText{std::move(message), fields.Boolean("lost_peer").value_or(false)};
  }
  if (type == "done") return Done{};
  return Unknown{};
}

std::string Line(const Json& json) {
  // Text from a sweep file is UTF-8 already; should it not be, a worker gets something readable.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json ConfigObject(const std::vector<NamedValue>& config) {
  Json object = Json::object();
  for (const NamedValue& entry : config) {
    std::visit(
        [&](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>) {
            object[entry.name] = Number(value);
          } else {
            object[entry.name] = value;
          }
        },
        entry.value);
  }
  return object;
}

std::string DeviceOf(const GangSpec& spec, const RankSlot& slot) {
  if (slot.gpus.empty()) return "cpu";
  const std::vector<int> visible = VisibleGpus(spec);
  return "cuda:" + std::to_string(std::ranges::find(visible, slot.gpus[0]) - visible.begin());
}

}  // namespace

std::string Quote(std::string_view line) {
  std::string quoted = "'" + std::string(line.substr(0, kQuotedBytes));
  for (char& c : quoted) {
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '?';
  }
  return quoted + (line.size() > kQuotedBytes ? "...'" : "'");
}

OrError<Message> ParseMessage(std::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Error{"not a JSON object in UTF-8: " + Quote(line)};
  const auto type = json.find("type");
  if (type == json.end() || !type->is_string()) {
    return Error{"a message without a string 'type': " + Quote(line)};
  }
  Fields fields(json);
  Message message = ReadFields(type->get<std::string>(), fields);
  if (!fields.problem().empty()) {
    return Error{"a " + type->get<std::string>() + " message whose " + fields.problem() + ": " +
                 Quote(line)};
  }
  return message;
}

std::optional<std::string_view> LineReader::Next() {
  if (too_long_) return std::nullopt;
  const size_t newline = buffer_.find('\n', std::max(begin_, scanned_));
  const size_t end = newline == std::string::npos ? buffer_.size() : newline;
  if (end - begin_ > kLineBytesMax) {
    too_long_ = true;
    return std::nullopt;
  }
  if (newline == std::string::npos) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    scanned_ = buffer_.size();
    return std::nullopt;
  }
  const std::string_view line = std::string_view(buffer_).substr(begin_, newline - begin_);
  begin_ = newline + 1;
  return line;
}

std::string StartLine(const GangSpec& spec, const RankSlot& slot) {
  Json start{{"type", "start"},
             {"protocol", kProtocol},
             {"sweep", "s" + std::to_string(spec.attempt.sweep)},
             {"trial", spec.attempt.trial},
             {"attempt", spec.attempt.attempt},
             {"rank", slot.rank},
             {"world_size", spec.world_size},
             {"local_rank", slot.local_rank},
             {"local_world_size", spec.ranks.size()},
             {"device", DeviceOf(spec, slot)},
             {"cpus", slot.cpus},
             {"seed", spec.seed},
             {"config", ConfigObject(spec.config)},
             {"milestone", spec.milestone},
             {"max_step", spec.max_step},
             {"checkpoint_every", spec.checkpoint_every},
             {"checkpoint_dir", spec.checkpoint_dir.string()}};
  if (spec.resume) {
    start["resume"] = {{"step", spec.resume->step},
                       {"path", spec.resume->path.string()},
                       {"digest", spec.resume->digest}};
  }
  return Line(start);
}

std::string RendezvousLine(const Rendezvous& rendezvous) {
  return Line({{"type", "rendezvous"}, {"host", rendezvous.host}, {"port", rendezvous.port}});
}

std::string VerdictLine(const Verdict& verdict) {
  const char* action = verdict.action == Action::kContinue ? "continue"
                       : verdict.action == Action::kStop   ? "stop"
                                                           : "pause";
  return Line({{"type", "verdict"},
               {"step", verdict.step},
               {"action", action},
               {"milestone", verdict.milestone}});
}

std::string YieldLine() { return Line({{"type", "yield"}}); }

std::string ConfigJson(const std::vector<NamedValue>& config) { return Line(ConfigObject(config)); }

std::vector<int> VisibleGpus(const GangSpec& spec) {
  std::vector<int> visible;
  for (const RankSlot& slot : spec.ranks) {
    for (const int gpu : slot.gpus) {
      if (std::ranges::find(visible, gpu) == visible.end()) visible.push_back(gpu);
    }
  }
  return visible;
}

}  // namespace attune::gang
