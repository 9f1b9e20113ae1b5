#include "cli/commands/slurm/up.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <set>

#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/joining.h"
#include "cli/json.h"
#include "cli/page_link.h"
#include "cli/text/numbers.h"
#include "cli/views/slurm_view.h"
#include "server/folder/server_socket.h"
#include "slurm/fleet_folder.h"
#include "slurm/manager.h"
#include "slurm/pilot.h"
#include "slurm/tools.h"
#include "system/command.h"
#include "system/files.h"
#include "system/own_program.h"

namespace attune::cli {
namespace {

using Clock = std::chrono::steady_clock;

Result<std::chrono::milliseconds> DurationOf(const std::string& flag, const std::string& text) {
  const std::optional<double> seconds = ParseDuration(text);
  if (seconds.has_value() && *seconds > 0 && *seconds < 1e7)
    return std::chrono::milliseconds(static_cast<int64_t>(*seconds * 1000));
  return Error{ErrorCode::kInvalid,
               flag + ": `" + text + "` is not a duration; write 30s, 5m or 2h"};
}

std::string ThisHost() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// HOST:PORT at which pilots reach the server that listens on `rpc`. kInvalid if other hosts cannot
// reach it.
Result<std::string> AddressForPilots(const std::string& rpc) {
  const size_t colon = rpc.rfind(':');
  const std::string host = colon == std::string::npos ? "" : rpc.substr(0, colon);
  if (host.empty() || IsLoopback(host) || host == "[::1]")
    return Error{
        ErrorCode::kInvalid,
        "the running server accepts only executors of this host (" + (rpc.empty() ? "none" : rpc) +
            "), and pilots run on other hosts\nstop it and start again with `attune slurm up` or "
            "with `attune serve --rpc-host 0.0.0.0`"};
  if (host == "0.0.0.0" || host == "[::]") return ThisHost() + rpc.substr(colon);
  return rpc;
}

Result<std::string> AddressOfRunningServer(const std::filesystem::path& data_dir) {
  const Result<server::ServerAddress> running = server::AskServer(data_dir);
  if (!running.ok()) return running.error();
  return AddressForPilots(running->rpc);
}

// A running server and the address at which pilots reach it.
struct ReachableServer {
  std::unique_ptr<RunningServer> local;  // null if it runs in another process
  Endpoint endpoint;
  std::string for_pilots;
};

Result<ReachableServer> FindOrStartServer(const SlurmUpFlags& flags, Console& console) {
  ReachableServer reachable;
  Result<Endpoint> endpoint = ServerOf(flags.server);
  const bool answers = endpoint.ok() && Api(*endpoint).Version().ok();
  if (!answers && !flags.server.server.empty()) {
    return endpoint.ok() ? Api(*endpoint).Version().error() : endpoint.error();
  }
  if (answers) {
    reachable.endpoint = *std::move(endpoint);
    Result<std::string> rpc =
        flags.executors.empty() ? AddressOfRunningServer(flags.server.data_dir) : flags.executors;
    if (!rpc.ok()) return rpc.error();
    reachable.for_pilots = *std::move(rpc);
    return reachable;
  }
  auto started = console.host.start_server({.data_dir = flags.server.data_dir,
                                            .http_port = flags.port,
                                            .rpc_host = flags.rpc_host,
                                            .rpc_port = flags.rpc_port});
  if (!started.ok()) return started.error();
  reachable.local = *std::move(started);
  reachable.endpoint = reachable.local->endpoint();
  reachable.for_pilots = flags.executors.empty() ? reachable.local->rpc_target() : flags.executors;
  return reachable;
}

// Copies the text that pilots join with to a file that all nodes can read.
Status ShareJoin(const SlurmUpFlags& flags, const std::filesystem::path& to) {
  Result<std::string> word = ReadToken(flags.server.data_dir / "join");
  if (!word.ok())
    return Error{word.error().code,
                 word.error().message + "\npass --data-dir with the server's data folder"};
  return WriteWhole(to, *word + "\n", kPrivate);
}

Requirements RequirementsOf(const rest::Demand& demand) {
  Requirements required;
  for (const auto& [name, values] : demand.requires_.items()) {
    if (values.is_string()) required[name].insert(values.get<std::string>());
    if (!values.is_array()) continue;
    for (const Json& value : values)
      if (value.is_string()) required[name].insert(value.get<std::string>());
  }
  return required;
}

slurm::GangDemand MakeGangDemand(const rest::Demand& demand,
                                 const std::vector<rest::Executor>& executors,
                                 const Labels& labels) {
  const Requirements required = RequirementsOf(demand);
  std::set<std::string> unsuitable_executors;
  for (const rest::Executor& executor : executors) {
    if (!Matches(required, executor.labels)) unsuitable_executors.insert(executor.name);
  }
  // Gangs that need only a share of a GPU use one GPU together.
  const int64_t per_gpu = 100 / std::clamp<int64_t>(demand.gpu_percent.value_or(100), 1, 100);
  return {.sweep = demand.sweep,
          .gangs = static_cast<int>((demand.gangs + per_gpu - 1) / per_gpu),
          .workers = static_cast<int>(demand.workers),
          .min_workers = static_cast<int>(demand.min_workers),
          .worker = {.cpus = static_cast<int>(demand.cpus_per_worker),
                     .gpus = static_cast<int>(demand.gpus_per_worker),
                     .memory_bytes = demand.memory_per_worker},
          .missing_labels = Matches(required, labels) ? "" : ToString(required),
          .excluded_executors = std::move(unsuitable_executors)};
}

// What gangs need and what executors have now. `labels`: the labels of every pilot.
Result<slurm::Situation> ReadSituation(Api& api, const Labels& labels) {
  slurm::Situation situation;
  const auto demand = api.Demand();
  if (!demand.ok()) return demand.error();
  const auto executors = api.Executors();
  if (!executors.ok()) return executors.error();
  for (const rest::Demand& each : demand->demand)
    situation.demands.push_back(MakeGangDemand(each, executors->executors, labels));
  for (const rest::Executor& each : executors->executors) {
    if (each.state == "lost") continue;
    situation.hosts.push_back({.name = each.name,
                               .total = {.cpus = static_cast<int>(each.cpus),
                                         .gpus = static_cast<int>(each.gpus),
                                         .memory_bytes = each.memory_bytes},
                               .free = {.cpus = static_cast<int>(each.cpus_free),
                                        .gpus = static_cast<int>(each.gpus_free),
                                        .memory_bytes = each.memory_free_bytes},
                               .takes_gangs = each.state == "online"});
  }
  return situation;
}

// Runs the manager every `poll` until Ctrl-C or `attune slurm down`.
void RunManager(slurm::Manager& manager, const slurm::FleetFolder& folder,
                std::chrono::milliseconds poll, Console& console) {
  std::mutex mutex;
  std::condition_variable woken;
  const Interrupt::Subscription subscription(console.interrupt, [&] {
    const std::lock_guard lock(mutex);
    woken.notify_all();
  });
  Clock::time_point next = Clock::now();
  std::unique_lock lock(mutex);
  while (!console.interrupt.requested() && !folder.stop_requested()) {
    const Clock::time_point now = Clock::now();
    if (now >= next) {
      manager.Step(now);
      next = Clock::now() + poll;
    }
    woken.wait_until(lock, std::min(next, Clock::now() + kSlurmPollPeriod));
  }
}

struct CheckedFlags {
  slurm::Limits limits;
  slurm::Manager::Options manager;
  std::chrono::milliseconds poll;
  Labels labels;
};

// kInvalid if no number of pilots has a number of nodes within the limits.
Status CheckPilotSize(const SlurmUpFlags& flags, const slurm::Limits& limits) {
  const int max_nodes = limits.nodes_max / flags.nodes_per_pilot * flags.nodes_per_pilot;
  if (max_nodes > 0 && max_nodes >= limits.nodes_min) return {};
  return Error{ErrorCode::kInvalid, "--nodes " + flags.nodes + ": the range has no multiple of " +
                                        std::to_string(flags.nodes_per_pilot) +
                                        " nodes (--nodes-per-pilot); widen it"};
}

// Reports everything that can be wrong before anything starts.
Result<CheckedFlags> CheckFlags(const SlurmUpFlags& flags, slurm::Tools& tools) {
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
  CheckedFlags checked{.limits = *limits, .poll = *poll, .labels = *labels};
  slurm::Manager::Options& manager = checked.manager;
  manager.pilot = {.nodes = flags.nodes_per_pilot,
                   .partition = flags.partition,
                   .account = flags.account,
                   .qos = flags.qos,
                   .gres = flags.gres,
                   .time = flags.time,
                   .cpus = flags.cpus,
                   .memory = flags.memory,
                   .more = flags.more};
  const auto partition = tools.FindPartition(flags.partition);
  if (!partition.ok()) return partition.error();
  if (Status pilot = slurm::Check(manager.pilot, *partition); !pilot.ok()) return pilot.error();
  const Status allowed = tools.Check(slurm::SbatchOptions(manager.pilot, {}, "attune-check"));
  if (!allowed.ok())
    return Error{allowed.error().code,
                 "Slurm would refuse these pilots: " + allowed.error().message +
                     "\nnothing was submitted; `sinfo`, `sacctmgr show assoc user=$USER` and "
                     "`sbatch --test-only` show what it accepts"};
  manager.node_resources = slurm::NodeResources(manager.pilot, *partition);
  manager.limits = *limits;
  manager.limits.nodes_per_pilot = flags.nodes_per_pilot;
  // Pilots that use whole nodes cannot use more nodes than the partition has.
  if (!flags.cpus) manager.limits.nodes_max = std::min(limits->nodes_max, partition->nodes);
  manager.idle = *idle;
  manager.places.labels = flags.labels;
  manager.places.give_up = std::chrono::ceil<std::chrono::seconds>(*give_up);
  return checked;
}

Status Prepare(const SlurmUpFlags& flags, const std::string& for_pilots, slurm::FleetFolder& folder,
               slurm::Manager::Options& manager) {
  slurm::FleetFolder::Fleet fleet = folder.fleet();
  fleet.shared =
      std::filesystem::absolute(flags.shared.empty() ? flags.server.data_dir : flags.shared)
          .lexically_normal();
  const std::filesystem::path place = fleet.shared / "slurm";
  manager.places.program = flags.program.empty() ? OwnProgram() : flags.program;
  manager.places.server = for_pilots;
  manager.places.token_file = place / "join";
  manager.places.data_dir = fleet.shared;
  manager.places.logs = place / "logs";
  manager.script = place / "pilot.sh";
  std::error_code error;
  std::filesystem::create_directories(manager.places.logs, error);
  if (error)
    return Error{ErrorCode::kDenied,
                 "cannot create " + manager.places.logs.string() + ": " + error.message()};
  if (Status shared = ShareJoin(flags, manager.places.token_file); !shared.ok()) return shared;
  Status written =
      WriteWhole(manager.script, slurm::PilotScript(manager.places, manager.script), kPrivate);
  if (!written.ok()) return written;
  return folder.Save(std::move(fleet));
}

}  // namespace

Result<slurm::Limits> ParseNodes(const std::string& text) {
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
  return slurm::Limits{.nodes_min = *low, .nodes_max = *high};
}

ExitCode SlurmUp(const SlurmUpFlags& flags, Console& console) {
  SystemCommands commands;
  slurm::Tools tools(commands);
  Result<CheckedFlags> checked = CheckFlags(flags, tools);
  if (!checked.ok()) return Fail(console, checked.error());
  auto folder = slurm::FleetFolder::OpenOrCreate(flags.server.data_dir);
  if (!folder.ok()) return Fail(console, folder.error());
  if (Status locked = folder->Lock(); !locked.ok()) return Fail(console, locked.error());
  folder->ClearStopRequest();
  auto hours = slurm::HoursBook::Open(folder->path());
  if (!hours.ok()) return Fail(console, hours.error());

  const Interrupt::Subscription subscription(console.interrupt, [] {});
  console.host.log_to(console.err, LogLevel::kInfo);
  Result<ReachableServer> server = FindOrStartServer(flags, console);
  if (!server.ok()) return Fail(console, server.error());
  slurm::Manager::Options& options = checked->manager;
  if (Status ready = Prepare(flags, server->for_pilots, *folder, options); !ready.ok())
    return Fail(console, ready.error());
  console.err.Print("page       " +
                    PageLink(server->endpoint.url, flags.server.data_dir, console.err));
  const std::string node_text =
      flags.nodes_per_pilot == 1 ? " nodes, "
                                 : " nodes, " + std::to_string(flags.nodes_per_pilot) + " a job, ";
  console.err.Print("pilots     " + std::to_string(options.limits.nodes_min) + " to " +
                    std::to_string(options.limits.nodes_max) + node_text + "as jobs " +
                    slurm::PilotPrefix(folder->fleet().id) + "N in partition " + flags.partition +
                    ", which join " + server->for_pilots);
  if (options.limits.nodes_max < checked->limits.nodes_max)
    console.err.Print("the partition " + flags.partition + " has " +
                      std::to_string(options.limits.nodes_max) +
                      " nodes, so more pilots would only wait");

  Api api(server->endpoint);
  const FleetFacts facts{.fleet = folder->fleet().id,
                         .partition = flags.partition,
                         .poll_seconds = std::chrono::duration<double>(checked->poll).count(),
                         .limits = options.limits};
  const auto print = [&](const std::string& text) { console.err.Print(text); };
  std::string last_problem;
  const auto show = [&](const slurm::ManagerView& view) {
    const Status reported = api.ReportPilots(MakeReport(facts, view));
    const std::string text =
        reported.ok() ? "" : "the server refuses the report of pilots: " + reported.error().message;
    if (!text.empty() && text != last_problem) print(text);
    last_problem = text;
  };
  slurm::Manager manager(
      tools, *folder, *hours, options, [&] { return ReadSituation(api, checked->labels); }, print,
      show);
  RunManager(manager, *folder, checked->poll, console);
  if (const Status written = hours->Write(); !written.ok()) print(written.error().message);
  console.err.Print(folder->stop_requested()
                        ? "ended by `attune slurm down`"
                        : "ending; pilots continue until they have had no server for " +
                              flags.give_up +
                              ". `attune slurm up` takes them over, `attune slurm down` ends them");
  return ExitCode::kSuccess;
}

}  // namespace attune::cli
