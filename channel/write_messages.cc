// Messages as lines of JSON.

#include <type_traits>
#include <utility>
#include <variant>

#include "channel/message_json.h"
#include "channel/messages.h"

namespace attune::channel {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string Line(const OrderedJson& json) {
  // The text of an exception may not be UTF-8. Replacement keeps the line valid.
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

OrderedJson Object(const std::vector<std::pair<std::string, double>>& metrics) {
  OrderedJson object = OrderedJson::object();
  for (const auto& [name, value] : metrics) object[name] = Number(value);
  return object;
}

OrderedJson Object(const std::vector<NamedValue>& parameters) {
  OrderedJson object = OrderedJson::object();
  for (const NamedValue& entry : parameters) {
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

}  // namespace

std::string ToLine(const Start& start) {
  OrderedJson json{{"type", "start"},
                   {"protocol", kProtocol},
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
                   {"config", Object(start.parameters)},
                   {"milestone", start.milestone},
                   {"max_step", start.max_step},
                   {"checkpoint_every", start.checkpoint_every},
                   {"checkpoint_dir", start.checkpoint_dir}};
  if (!start.devices.empty()) json["devices"] = start.devices;
  if (!start.address.empty()) json["address"] = start.address;
  if (!start.time_attr.empty()) json["time_attr"] = start.time_attr;
  if (start.resume) {
    json["resume"] = {{"step", start.resume->step},
                      {"path", start.resume->path.string()},
                      {"digest", start.resume->digest}};
  }
  return Line(json);
}

std::string ToLine(const Verdict& verdict) {
  return Line({{"type", "verdict"},
               {"step", verdict.step},
               {"action", kActions[static_cast<size_t>(verdict.action)]},
               {"milestone", verdict.milestone}});
}

std::string ToLine(const Yield&) { return Line({{"type", "yield"}}); }

std::string ToLine(const Rendezvous& rendezvous) {
  return Line({{"type", "rendezvous"}, {"host", rendezvous.host}, {"port", rendezvous.port}});
}

std::string ToLine(const Report& report) {
  OrderedJson json{{"type", "report"},
                   {"step", report.step},
                   {"seconds", report.seconds},
                   {"metrics", Object(report.metrics)}};
  if (report.waits) json["waits"] = *report.waits;
  return Line(json);
}

std::string ToLine(const Logged& logged) {
  return Line({{"type", "log"}, {"step", logged.step}, {"metrics", Object(logged.metrics)}});
}

std::string ToLine(const CheckpointSaved& checkpoint) {
  return Line({{"type", "checkpoint"},
               {"step", checkpoint.step},
               {"path", checkpoint.path},
               {"digest", checkpoint.digest},
               {"bytes", checkpoint.bytes}});
}

std::string ToLine(const Progress& progress) {
  // Progress is the most frequent message, so it is written without a JSON tree.
  return R"({"type":"progress","step":)" + std::to_string(progress.step) + "}\n";
}

std::string ToLine(const Heartbeat& heartbeat) {
  return Line({{"type", "heartbeat"}, {"silence_ms", heartbeat.silence.count()}});
}

std::string ToLine(const Waiting& waiting) {
  return Line({{"type", "waiting"}, {"ranks", waiting.ranks}, {"step", waiting.step}});
}

std::string ToLine(const Join& join) {
  return Line({{"type", "join"},
               {"rank", join.rank},
               {"world_size", join.world_size},
               {"local_rank", join.local_rank},
               {"local_world_size", join.local_world_size}});
}

std::string ToLine(const Claim&) { return Line({{"type", "claim"}}); }

std::string ToLine(const Claimed&) { return Line({{"type", "claimed"}}); }

std::string ToLine(const Refused& refused) {
  return Line({{"type", "refused"}, {"message", Shorten(refused.message)}});
}

std::string ToLine(const Leaving& leaving) {
  return Line({{"type", "leaving"}, {"message", Shorten(leaving.message)}});
}

std::string ToLine(const ErrorText& error) {
  return Line({{"type", "error"},
               {"message", Shorten(error.message)},
               {"lost_peer", error.lost_peer},
               {"disk_full", error.disk_full}});
}

std::string ToLine(const Done&) { return Line({{"type", "done"}}); }

std::string ToJson(const std::vector<NamedValue>& parameters) { return Line(Object(parameters)); }

}  // namespace attune::channel
