#include "cli/commands/pilots/pilot_flags.h"

#include <charconv>
#include <string_view>

#include "cli/commands/command.h"
#include "cli/text/numbers.h"

namespace attune::cli {
namespace {

Result<std::chrono::milliseconds> DurationOf(const std::string& flag, const std::string& text) {
  const std::optional<double> seconds = ParseDuration(text);
  if (seconds.has_value() && *seconds > 0 && *seconds < 1e7)
    return std::chrono::milliseconds(static_cast<int64_t>(*seconds * 1000));
  return Error{ErrorCode::kInvalid,
               flag + ": `" + text + "` is not a duration; write 30s, 5m or 2h"};
}

// kInvalid if no number of pilots has a number of nodes within the limits.
Status CheckPilotSize(const PilotFlags& flags, const pilots::Limits& limits) {
  const int max_nodes = limits.nodes_max / flags.nodes_per_pilot * flags.nodes_per_pilot;
  if (max_nodes > 0 && max_nodes >= limits.nodes_min) return {};
  return Error{ErrorCode::kInvalid, "--nodes " + flags.nodes + ": the range has no multiple of " +
                                        std::to_string(flags.nodes_per_pilot) +
                                        " nodes (--nodes-per-pilot); widen it"};
}

}  // namespace

Result<PilotSettings> CheckPilotFlags(const PilotFlags& flags) {
  const auto limits = ParseNodes(flags.nodes);
  if (!limits.ok()) return limits.error();
  if (Status size = CheckPilotSize(flags, *limits); !size.ok()) return size.error();
  const auto idle = DurationOf("--idle", flags.idle);
  if (!idle.ok()) return idle.error();
  const auto poll = DurationOf("--poll", flags.poll);
  if (!poll.ok()) return poll.error();
  const auto give_up = DurationOf("--give-up", flags.give_up);
  if (!give_up.ok()) return give_up.error();
  const Result<Labels> labels = ReadLabels(flags.labels);
  if (!labels.ok()) return labels.error();
  PilotSettings settings{.limits = *limits,
                         .idle = *idle,
                         .poll = *poll,
                         .give_up = std::chrono::ceil<std::chrono::seconds>(*give_up),
                         .labels = *labels};
  settings.limits.nodes_per_pilot = flags.nodes_per_pilot;
  return settings;
}

Result<pilots::Limits> ParseNodes(const std::string& text) {
  const size_t dots = text.find("..");
  const auto whole = [](std::string_view word) -> std::optional<int> {
    int value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < 0) return std::nullopt;
    return value;
  };
  const auto low = dots == std::string::npos ? std::optional(0) : whole(text.substr(0, dots));
  const auto high = whole(dots == std::string::npos ? text : text.substr(dots + 2));
  if (!low || !high || *high < 1 || *low > *high)
    return Error{ErrorCode::kInvalid, "--nodes: `" + text + "` is not MIN..MAX; write 0..8"};
  return pilots::Limits{.nodes_min = *low, .nodes_max = *high};
}

void AddDataDir(CLI::App& command, std::filesystem::path& data_dir) {
  command.add_option("--data-dir", data_dir, "Server's data folder")
      ->type_name("DIR")
      ->capture_default_str();
}

void PilotFlags::AddSizeOptions(CLI::App& command) {
  command.add_option("--nodes", nodes, "Minimum and maximum number of nodes, such as 0..8")
      ->required()
      ->type_name("MIN..MAX");
  command
      .add_option("--nodes-per-pilot", nodes_per_pilot,
                  "Nodes per job, for gangs over several nodes")
      ->check(PositiveNumber())
      ->type_name("N")
      ->capture_default_str();
}

void PilotFlags::AddManagerOptions(CLI::App& command, const std::string& engine) {
  command.add_option("--idle", idle, "End a pilot that nothing needs for this time")
      ->type_name("DURATION")
      ->capture_default_str();
  command.add_option("--give-up", give_up, "End a pilot after this time without a server")
      ->type_name("DURATION")
      ->capture_default_str();
  command.add_option("--poll", poll, "Time between two checks of the server and " + engine)
      ->type_name("DURATION")
      ->capture_default_str();
  server.data_dir = "attune-data";
  AddDataDir(command, server.data_dir);
}

void PilotFlags::AddServerOptions(CLI::App& command) {
  command
      .add_option("--server", server.server,
                  "URL of a running server (default: the one on DATA-DIR, or a new one)")
      ->type_name("URL");
  command.add_option("--token-file", server.token_file, "File with the server's token")
      ->type_name("FILE");
  command.add_option("--executors", executors, "Address at which pilots reach the server")
      ->type_name("HOST:PORT");
  command.add_option("--rpc-host", rpc_host, "New server: address for executors")
      ->type_name("ADDRESS")
      ->capture_default_str();
  command.add_option("--port", port, "New server: port of the dashboard and REST API")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  command.add_option("--rpc-port", rpc_port, "New server: port for executors")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
}

}  // namespace attune::cli
