#include "trainable/channel/messages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "attune/error.h"

namespace attune::trainable {
namespace {

using Json = nlohmann::json;

// Longest text of an exception that is passed on; a line has a limit, and people have one too.
constexpr std::size_t kMaxErrorBytes = 16 << 10;

Json ParseLine(std::string_view line) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("type") || !json["type"].is_string()) {
    throw Error("channel: not a JSON object with a `type`: " + std::string(line.substr(0, 80)));
  }
  return json;
}

template <typename T>
T Get(const Json& json, const char* field) {
  const auto found = json.find(field);
  const std::string type = json["type"];
  if (found == json.end()) throw Error("channel: `" + type + "` has no `" + field + "`");
  try {
    return found->get<T>();
  } catch (const Json::exception&) {
    throw Error("channel: `" + type + "`." + field + " is " + found->dump().substr(0, 80));
  }
}

template <typename T>
T GetOr(const Json& json, const char* field, T fallback) {
  const auto found = json.find(field);
  return found == json.end() || found->is_null() ? fallback : Get<T>(json, field);
}

Json FromReal(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double ToReal(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (json == "inf") return std::numeric_limits<double>::infinity();
  if (json == "-inf") return -std::numeric_limits<double>::infinity();
  throw Error("channel: not a number: " + json.dump().substr(0, 80));
}

void CheckNames(const Metrics& metrics) {
  if (metrics.size() > kMetricsMax) {
    throw Error("Report: " + std::to_string(metrics.size()) + " metrics; report at most " +
                std::to_string(kMetricsMax) + " at a step");
  }
  for (const auto& [name, value] : metrics) {
    const bool odd = std::ranges::any_of(
        name, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
    if (name.empty() || name.size() > kMetricNameBytesMax || odd) {
      throw Error("Report: a metric is named \"" + name.substr(0, 80) + "\"; use 1 to " +
                  std::to_string(kMetricNameBytesMax) + " bytes without control characters");
    }
  }
}

std::string Finish(const Json& json) {
  // Exceptions may carry bytes that are no UTF-8; they must not turn into a second exception.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Start ParseStart(const Json& json) {
  if (const int protocol = Get<int>(json, "protocol"); protocol != 1) {
    throw Error("channel: this program speaks protocol 1 of the worker channel, the executor " +
                std::to_string(protocol) + "; rebuild the program with the executor's release");
  }
  Start start;
  start.sweep = GetOr<std::string>(json, "sweep", "");
  start.trial = GetOr<std::int64_t>(json, "trial", 0);
  start.attempt = GetOr<int>(json, "attempt", 1);
  start.rank = Get<int>(json, "rank");
  start.world_size = Get<int>(json, "world_size");
  start.local_rank = GetOr<int>(json, "local_rank", start.rank);
  start.local_world_size = GetOr<int>(json, "local_world_size", start.world_size);
  start.device = GetOr<std::string>(json, "device", "cpu");
  start.cpus = GetOr<int>(json, "cpus", 1);
  start.seed = GetOr<std::uint64_t>(json, "seed", 0);
  start.config = Config::FromJson(Get<Json>(json, "config").dump());
  start.milestone = GetOr<std::int64_t>(json, "milestone", 0);
  start.max_step = GetOr<std::int64_t>(json, "max_step", 0);
  start.checkpoint_every = GetOr<std::int64_t>(json, "checkpoint_every", 0);
  start.checkpoint_dir = GetOr<std::string>(json, "checkpoint_dir", "");
  if (json.contains("resume") && !json["resume"].is_null()) {
    Json resume = json["resume"];
    resume["type"] = "start.resume";
    start.resume = {Get<std::int64_t>(resume, "step"), Get<std::string>(resume, "path"),
                    GetOr<std::string>(resume, "digest", "")};
  }
  if (start.rank < 0 || start.rank >= start.world_size) {
    throw Error("channel: `start` names rank " + std::to_string(start.rank) + " of " +
                std::to_string(start.world_size));
  }
  return start;
}

Rendezvous ParseRendezvous(const Json& json) {
  return {Get<std::string>(json, "host"), Get<std::uint16_t>(json, "port")};
}

constexpr std::pair<Verdict::Action, const char*> kActions[] = {
    {Verdict::Action::kContinue, "continue"},
    {Verdict::Action::kStop, "stop"},
    {Verdict::Action::kPause, "pause"},
};

Verdict ParseVerdict(const Json& json) {
  Verdict verdict{.step = Get<std::int64_t>(json, "step"),
                  .milestone = GetOr<std::int64_t>(json, "milestone", 0)};
  const std::string name = Get<std::string>(json, "action");
  for (const auto& [action, action_name] : kActions) {
    if (name == action_name) {
      verdict.action = action;
      return verdict;
    }
  }
  throw Error("channel: `verdict`.action is \"" + name + "\"; known are continue, stop and pause");
}

}  // namespace

FromExecutor ParseFromExecutor(std::string_view line) {
  const Json json = ParseLine(line);
  const std::string type = json["type"];
  if (type == "start") return ParseStart(json);
  if (type == "rendezvous") return ParseRendezvous(json);
  if (type == "verdict") return ParseVerdict(json);
  if (type == "yield") return YieldLine{};
  return std::monostate();
}

FromRank ParseFromRank(std::string_view line) {
  const Json json = ParseLine(line);
  const std::string type = json["type"];
  if (type == "rendezvous") return ParseRendezvous(json);
  if (type == "report") {
    ReportLine report{.step = Get<std::int64_t>(json, "step"),
                      .seconds = GetOr<double>(json, "seconds", 0),
                      .waits = GetOr<bool>(json, "waits", false)};
    const Json metrics = Get<Json>(json, "metrics");
    for (const auto& [name, value] : metrics.items()) {
      report.metrics[name] = ToReal(value);
    }
    return report;
  }
  if (type == "checkpoint") {
    return CheckpointInfo{.step = Get<std::int64_t>(json, "step"),
                          .path = Get<std::string>(json, "path"),
                          .digest = Get<std::string>(json, "digest"),
                          .bytes = Get<std::int64_t>(json, "bytes")};
  }
  if (type == "progress") return ProgressLine{Get<std::int64_t>(json, "step")};
  if (type == "error") {
    return ErrorLine{Get<std::string>(json, "message"), GetOr<bool>(json, "lost_peer", false)};
  }
  if (type == "done") return DoneLine{};
  return std::monostate();
}

std::string ToLine(const Start& start) {
  Json json = {{"type", "start"},
               {"protocol", 1},
               {"sweep", start.sweep},
               {"trial", start.trial},
               {"attempt", start.attempt},
               {"rank", start.rank},
               {"world_size", start.world_size},
               {"local_rank", start.local_rank},
               {"local_world_size", start.local_world_size},
               {"device", start.device},
               {"cpus", start.cpus},
               {"seed", start.seed},
               {"config", Json::parse(start.config.ToJson())},
               {"milestone", start.milestone},
               {"max_step", start.max_step},
               {"checkpoint_every", start.checkpoint_every},
               {"checkpoint_dir", start.checkpoint_dir}};
  if (start.resume) {
    json["resume"] = {{"step", start.resume->step},
                      {"path", start.resume->path},
                      {"digest", start.resume->digest}};
  }
  return Finish(json);
}

std::string ToLine(const Rendezvous& rendezvous) {
  return Finish({{"type", "rendezvous"}, {"host", rendezvous.host}, {"port", rendezvous.port}});
}

std::string ToLine(const Verdict& verdict) {
  return Finish({{"type", "verdict"},
                 {"step", verdict.step},
                 {"action", kActions[static_cast<std::size_t>(verdict.action)].second},
                 {"milestone", verdict.milestone}});
}

std::string ToLine(const ReportLine& report) {
  CheckNames(report.metrics);
  Json metrics = Json::object();
  for (const auto& [name, value] : report.metrics) metrics[name] = FromReal(value);
  return Finish({{"type", "report"},
                 {"step", report.step},
                 {"metrics", std::move(metrics)},
                 {"seconds", report.seconds},
                 {"waits", report.waits}});
}

std::string ToLine(const CheckpointInfo& checkpoint) {
  return Finish({{"type", "checkpoint"},
                 {"step", checkpoint.step},
                 {"path", checkpoint.path.string()},
                 {"digest", checkpoint.digest},
                 {"bytes", checkpoint.bytes}});
}

std::string ToLine(const ProgressLine& progress) {
  return Finish({{"type", "progress"}, {"step", progress.step}});
}

std::string ToLine(const HeartbeatLine& heartbeat) {
  return Finish({{"type", "heartbeat"}, {"silence_ms", heartbeat.silence.count()}});
}

std::string ToLine(const ErrorLine& error) {
  return Finish({{"type", "error"},
                 {"message", error.message.substr(0, kMaxErrorBytes)},
                 {"lost_peer", error.lost_peer}});
}

std::string ToLine(const DoneLine&) { return Finish({{"type", "done"}}); }

}  // namespace attune::trainable
