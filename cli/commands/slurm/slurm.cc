#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/commands/slurm/up.h"
#include "cli/json.h"
#include "cli/text/table.h"
#include "cli/text/width.h"
#include "cli/views/slurm_view.h"
#include "slurm/fleet_folder.h"
#include "slurm/hours.h"
#include "slurm/manager.h"
#include "slurm/tools.h"
#include "system/command.h"

namespace attune::cli {
namespace {

using Clock = std::chrono::steady_clock;

// The manager may be waiting for a Slurm command when it is asked to end.
constexpr std::chrono::seconds kManagerTimeout{60};
// Pilots that have not ended by themselves after this time are cancelled.
constexpr std::chrono::seconds kPilotGrace{15};
constexpr std::chrono::seconds kPilotTimeout{120};

void AddDataDir(CLI::App& command, std::filesystem::path& data_dir) {
  command.add_option("--data-dir", data_dir, "Server's data folder")
      ->type_name("DIR")
      ->capture_default_str();
}

struct SlurmDownFlags {
  std::filesystem::path data_dir = "attune-data";

  void AddTo(CLI::App& command) { AddDataDir(command, data_dir); }
};

struct SlurmLogsFlags {
  std::filesystem::path data_dir = "attune-data";
  std::string pilot;

  void AddTo(CLI::App& command) {
    command.add_option("PILOT", pilot, "Number or name of the pilot; 3.1: second node of pilot 3")
        ->required();
    AddDataDir(command, data_dir);
  }
};

// Ends the manager, if one runs, and locks the folder, so that no other one submits pilots.
Status EndManager(slurm::FleetFolder& folder) {
  if (Status asked = folder.RequestStop(); !asked.ok()) return asked;
  for (const Clock::time_point until = Clock::now() + kManagerTimeout;;) {
    const Status locked = folder.Lock();
    if (locked.ok() || locked.error().code != ErrorCode::kConflict || Clock::now() > until)
      return locked;
    std::this_thread::sleep_for(kSlurmPollPeriod);
  }
}

// Counts the hours that pilots used between the manager's last check and their end.
Status CountRemainingHours(slurm::Tools& tools, const slurm::FleetFolder& folder) {
  auto hours = slurm::HoursBook::Open(folder.path());
  if (!hours.ok()) return hours.error();
  const auto jobs = tools.Jobs(slurm::PilotPrefix(folder.fleet().id));
  if (!jobs.ok()) return jobs.error();
  if (Status counted = hours->Count(*jobs, {}, {}); !counted.ok()) return counted;
  return hours->Write();
}

ExitCode EndPilots(const SlurmDownFlags& flags, Console& console) {
  auto folder = slurm::FleetFolder::Open(flags.data_dir);
  if (!folder.ok()) return Fail(console, folder.error());
  if (const Status ended = EndManager(*folder); !ended.ok()) return Fail(console, ended.error());
  SystemCommands commands;
  slurm::Tools tools(commands);
  const Clock::time_point start = Clock::now();
  int pilot_count = 0;
  bool cancel = false;
  std::set<std::string> already_told;
  for (int rounds_without_pilots = 0; rounds_without_pilots < 2;) {
    if (!cancel && Clock::now() - start > kPilotGrace) {
      cancel = true;
      already_told.clear();
    }
    const auto remaining = slurm::EndAll(tools, *folder, cancel, already_told);
    if (!remaining.ok() && remaining.error().code != ErrorCode::kInvalid)
      return Fail(console, remaining.error());
    if (Clock::now() - start > kPilotTimeout)
      return Fail(console, {ErrorCode::kUnavailable,
                            "Slurm has not ended all pilots within two minutes" +
                                (remaining.ok() ? "" : ": " + remaining.error().message) +
                                "; `attune slurm status` shows them"});
    pilot_count = std::max(pilot_count, remaining.ok() ? *remaining : 0);
    rounds_without_pilots = remaining.ok() && *remaining == 0 ? rounds_without_pilots + 1 : 0;
    if (rounds_without_pilots < 2) std::this_thread::sleep_for(kSlurmPollPeriod);
  }
  folder->ClearStopRequest();
  if (const Status counted = CountRemainingHours(tools, *folder); !counted.ok())
    console.err.Print("the last seconds of pilots are not counted: " + counted.error().message);
  console.err.Print(pilot_count == 0
                        ? "no pilots to end"
                        : std::to_string(pilot_count) +
                              (pilot_count == 1 ? " pilot has" : " pilots have") + " ended");
  return ExitCode::kSuccess;
}

using Executors = std::vector<rest::Executor>;

// The connected executors of a pilot.
Executors ExecutorsOf(const Executors& executors, const std::string& fleet,
                      const std::string& pilot) {
  Executors found;
  for (const rest::Executor& each : executors) {
    if (each.state != "lost" && slurm::PilotOf(fleet, each.name) == pilot) found.push_back(each);
  }
  return found;
}

// "3 of 4 CPUs, 1 of 2 GPUs"
std::string DescribeUse(const slurm::Job& job, const Executors& executors) {
  if (executors.empty()) return "not joined";
  const auto used = [&](int64_t rest::Executor::*all, int64_t rest::Executor::*free) {
    int64_t total = 0;
    int64_t in_use = 0;
    for (const rest::Executor& executor : executors) {
      total += executor.*all;
      in_use += executor.*all - executor.*free;
    }
    return total == 0 ? "" : std::to_string(in_use) + " of " + std::to_string(total);
  };
  std::string text = used(&rest::Executor::cpus, &rest::Executor::cpus_free) + " CPUs";
  const std::string gpus = used(&rest::Executor::gpus, &rest::Executor::gpus_free);
  if (!gpus.empty()) text += ", " + gpus + " GPUs";
  const auto joined = static_cast<int>(executors.size());
  if (joined < job.nodes)
    text += "; " + std::to_string(joined) + " of " + std::to_string(job.nodes) + " nodes joined";
  return text;
}

// The server's facts about a fleet.
struct ServerView {
  Executors executors;
  std::optional<rest::Fleet> manager;  // the manager's last report; nullopt if there is none
};

Result<ServerView> AskServer(const ServerChoice& server, const std::string& fleet) {
  const Result<Endpoint> endpoint = ServerOf(server);
  if (!endpoint.ok()) return endpoint.error();
  Api api(*endpoint);
  auto executors = api.Executors();
  if (!executors.ok()) return executors.error();
  ServerView view{.executors = std::move(executors->executors), .manager = std::nullopt};
  const auto pilots = api.Pilots();
  if (!pilots.ok()) return pilots.error();
  for (const rest::Fleet& each : pilots->fleets)
    if (each.fleet == fleet) view.manager = each;
  return view;
}

// Prints whether a manager runs, and why waiting gangs get no pilot.
void PrintManager(const std::optional<rest::Fleet>& manager, Console& console) {
  if (!manager.has_value()) return console.err.Print("no manager has reported to this server");
  if (manager->stale) {
    const auto silent = static_cast<int64_t>(manager->seconds_since_report);
    return console.err.Print("the manager on " + Clean(manager->host) + " has been silent for " +
                             std::to_string(silent) +
                             " s, so no pilots are submitted; run `attune slurm up`");
  }
  for (const rest::Blocker& each : manager->blockers) {
    console.err.Print((each.sweep.empty() ? "" : "sweep " + each.sweep + ": ") + Clean(each.text));
  }
}

// JSON of a pilot with its executors themselves instead of their names.
Json PilotWithExecutors(const slurm::Job& job, const Executors& executors) {
  Json pilot = rest::ToJson(MakePilot(job));
  pilot.update(rest::ToJson(rest::ExecutorList{executors}));
  return pilot;
}

ExitCode ShowStatus(const ClientFlags& flags, Console& console) {
  flags.output.Apply(console);
  const auto folder = slurm::FleetFolder::Open(flags.server.data_dir);
  if (!folder.ok()) return Fail(console, folder.error());
  const std::string& fleet = folder->fleet().id;
  const auto hours = slurm::HoursBook::Open(folder->path());
  if (!hours.ok()) return Fail(console, hours.error());
  SystemCommands commands;
  const auto jobs = slurm::Tools(commands).Jobs(slurm::PilotPrefix(fleet));
  if (!jobs.ok()) return Fail(console, jobs.error());
  const Result<ServerView> answer = AskServer(flags.server, fleet);
  if (!answer.ok()) console.err.Print("cannot ask the server: " + answer.error().message);
  const ServerView view = answer.ok() ? *answer : ServerView();

  Json pilots = Json::array();
  Table table({{"PILOT"}, {"JOB", true}, {"STATE"}, {"NODE"}, {"ENDS"}, {"IN USE"}, {"REASON"}});
  for (const slurm::Job& job : *jobs) {
    const Executors executors = ExecutorsOf(view.executors, fleet, job.name);
    pilots.push_back(PilotWithExecutors(job, executors));
    const bool ended = job.phase() == slurm::Phase::kEnded;
    table.Add({Clean(job.name), job.id, Clean(job.state), Clean(job.node), Clean(job.ends),
               ended ? "" : DescribeUse(job, executors), Clean(job.reason)});
  }
  if (flags.output.json()) {
    console.out.Print(Dump({{"fleet", fleet},
                            {"pilots", std::move(pilots)},
                            {"hours", rest::ToJson(MakeHours(hours->hours()))},
                            {"manager", rest::ToJson(view.manager)}},
                           2));
    return ExitCode::kSuccess;
  }
  if (table.empty()) {
    console.err.Print(
        "fleet " + fleet +
        " has no pilots in Slurm; `attune slurm up` starts them when gangs need them");
  } else {
    console.out.PrintLines(table.Lines(console.out.style(), console.out.width()));
  }
  for (const std::string& line : HoursLines(hours->hours())) console.out.Print(line);
  if (answer.ok()) PrintManager(view.manager, console);
  return ExitCode::kSuccess;
}

bool PrintFile(const std::filesystem::path& file, Console& console) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return false;
  std::string bytes(1 << 16, '\0');
  while (in.read(bytes.data(), static_cast<std::streamsize>(bytes.size())), in.gcount() > 0)
    console.out.Write(std::string_view(bytes).substr(0, static_cast<size_t>(in.gcount())));
  return true;
}

// Prints the log of the job. For a pilot with several nodes, then prints the log of each executor.
ExitCode ShowLogs(const SlurmLogsFlags& flags, Console& console) {
  const auto folder = slurm::FleetFolder::Open(flags.data_dir);
  if (!folder.ok()) return Fail(console, folder.error());
  const std::string& id = folder->fleet().id;
  const std::string prefix = slurm::PilotPrefix(id);
  const std::string name = flags.pilot.starts_with(prefix) ? flags.pilot : prefix + flags.pilot;
  if (slurm::PilotOf(id, name).empty() || name.find('/') != std::string::npos)
    return Fail(console, {ErrorCode::kInvalid, "`" + flags.pilot +
                                                   "` is not a pilot of this fleet; use a number "
                                                   "or name from `attune slurm status`"});
  const std::filesystem::path logs = folder->fleet().shared / "slurm/logs";
  const std::filesystem::path file = logs / (name + ".log");
  if (!PrintFile(file, console))
    return Fail(console, {ErrorCode::kNotFound,
                          file.string() + " does not exist: the pilot has not started, or Slurm "
                                          "could not write it"});
  for (int node = 0; slurm::PilotOf(id, name) == name; ++node)
    if (!PrintFile(logs / (name + "." + std::to_string(node) + ".log"), console)) break;
  return ExitCode::kSuccess;
}

}  // namespace

void SlurmUpFlags::AddTo(CLI::App& command) {
  server.data_dir = "attune-data";
  AddPilotOptions(command);
  command.add_option("--idle", idle, "End a pilot that nothing needs for this time")
      ->type_name("DURATION")
      ->capture_default_str();
  command.add_option("--give-up", give_up, "End a pilot after this time without a server")
      ->type_name("DURATION")
      ->capture_default_str();
  command.add_option("--poll", poll, "Time between two checks of the server and Slurm")
      ->type_name("DURATION")
      ->capture_default_str();
  AddDataDir(command, server.data_dir);
  command
      .add_option("--shared", shared,
                  "Folder that all nodes see, for checkpoints and logs (default: DATA-DIR)")
      ->type_name("DIR");
  command.add_option("--program", program, "Path of attune on the nodes (default: this program)")
      ->type_name("FILE");
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

// Adds the options of the Slurm jobs.
void SlurmUpFlags::AddPilotOptions(CLI::App& command) {
  command.add_option("--partition", partition, "Slurm partition")->required()->type_name("NAME");
  command.add_option("--nodes", nodes, "Minimum and maximum number of nodes, such as 0..8")
      ->required()
      ->type_name("MIN..MAX");
  command
      .add_option("--nodes-per-pilot", nodes_per_pilot,
                  "Nodes per job, for gangs over several nodes")
      ->check(PositiveNumber())
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--gres", gres, "GPUs of each node, such as gpu:8")->type_name("GRES");
  command.add_option("--time", time, "Time limit of each pilot, such as 4:00:00")
      ->type_name("TIME");
  command.add_option("--cpus", cpus, "CPUs of each node (default: all)")
      ->check(PositiveNumber())
      ->type_name("N");
  command.add_option("--mem", memory, "Memory of each node, such as 64G")->type_name("SIZE");
  AddLabels(command, labels);
  command.add_option("--account", account, "Slurm account")->type_name("NAME");
  command.add_option("--qos", qos, "Slurm quality of service")->type_name("NAME");
  command.add_option("OPTIONS", more, "Other options for sbatch, after --");
}

void AddSlurmCommands(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand("slurm", "Run executors as Slurm jobs");
  noun.require_subcommand(1);
  AddCommand<SlurmUpFlags>(noun, chosen, "up", "Start and stop pilots as gangs need them", SlurmUp);
  AddCommand<SlurmDownFlags>(noun, chosen, "down", "End all pilots and their manager", EndPilots);
  AddCommand<ClientFlags>(noun, chosen, "status", "Show pilots and their jobs", ShowStatus);
  AddCommand<SlurmLogsFlags>(noun, chosen, "logs", "Print the output of a pilot", ShowLogs);
}

}  // namespace attune::cli
