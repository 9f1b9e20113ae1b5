#include "channel/launcher.h"

#include <fcntl.h>
#include <unistd.h>

#include "channel/line_reader.h"
#include "json/parse.h"
#include "system/unique_fd.h"

namespace attune::channel {
namespace {

using Json = nlohmann::json;

std::string PacketText(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <typename T>
T Get(const Json& json, const char* name, T fallback) {
  const auto found = json.find(name);
  return found == json.end() ? fallback : found->get<T>();
}

// The result of `read` for the packet, or kInvalid if a field has the wrong type.
template <typename T, typename Read>
Result<T> Parse(std::string_view packet, const Read& read) {
  const Json json = ParseJson<Json>(packet);
  if (!json.is_object()) return Invalid("a packet that is not a JSON object: " + Quote(packet));
  try {
    return T{read(Get<std::string>(json, "type", ""), json)};
  } catch (const Json::exception& error) {
    return Invalid("a malformed packet, " + Quote(packet) + ": " + error.what());
  }
}

}  // namespace

void JoinCgroup(const std::string& folder) {
  const UniqueFd threads(open((folder + "/cgroup.threads").c_str(), O_WRONLY | O_CLOEXEC));
  [[maybe_unused]] const bool joined = threads && write(threads.get(), "0", 1) == 1;
}

Result<std::optional<Fork>> ParseFork(std::string_view packet) {
  const auto read = [](const std::string& type, const Json& json) -> std::optional<Fork> {
    if (type != "fork") return std::nullopt;
    Fork fork{.request = json.at("request").get<uint64_t>(),
              .argv = json.at("argv").get<std::vector<std::string>>(),
              .environment = {},
              .working_directory = Get<std::string>(json, "cwd", ""),
              .process_group = Get<pid_t>(json, "process_group", 0)};
    const Json environment = Get<Json>(json, "env", Json::object());
    for (const auto& [name, value] : environment.items()) {
      fork.environment.emplace_back(
          name, value.is_null() ? std::nullopt : std::optional(value.get<std::string>()));
    }
    return fork;
  };
  return Parse<std::optional<Fork>>(packet, read);
}

uint64_t RequestNumber(std::string_view packet) {
  const Json json = ParseJson<Json>(packet);
  if (!json.is_object()) return 0;
  const auto found = json.find("request");
  return found != json.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

Result<FromLauncher> ParseFromLauncher(std::string_view packet) {
  const auto read = [](const std::string& type, const Json& json) -> FromLauncher {
    if (type == "ready") return Ready{Get<int>(json, "protocol", 0), Get<pid_t>(json, "pid", 0)};
    if (type == "forked") {
      return Forked{Get<uint64_t>(json, "request", 0), Get<pid_t>(json, "pid", 0),
                    Get<std::string>(json, "error", "")};
    }
    if (type == "exited") {
      return Exited{Get<pid_t>(json, "pid", 0), Get<int>(json, "exit_code", 0),
                    Get<int>(json, "signal", 0)};
    }
    return Unknown{};
  };
  return Parse<FromLauncher>(packet, read);
}

std::string ToPacket(const Fork& fork) {
  Json environment = Json::object();
  for (const auto& [name, value] : fork.environment) {
    environment[name] = value ? Json(*value) : Json();
  }
  return PacketText({{"type", "fork"},
                     {"request", fork.request},
                     {"argv", fork.argv},
                     {"env", std::move(environment)},
                     {"cwd", fork.working_directory},
                     {"process_group", fork.process_group}});
}

std::string ToPacket(const Ready& ready) {
  return PacketText({{"type", "ready"}, {"protocol", ready.protocol}, {"pid", ready.pid}});
}

std::string ToPacket(const Forked& forked) {
  Json packet{{"type", "forked"}, {"request", forked.request}};
  if (forked.error.empty()) {
    packet["pid"] = forked.pid;
  } else {
    packet["error"] = forked.error;
  }
  return PacketText(packet);
}

std::string ToPacket(const Exited& exited) {
  Json packet{{"type", "exited"}, {"pid", exited.pid}};
  if (exited.signal != 0) {
    packet["signal"] = exited.signal;
  } else {
    packet["exit_code"] = exited.exit_code;
  }
  return PacketText(packet);
}

}  // namespace attune::channel
