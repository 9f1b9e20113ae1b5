#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "base/result.h"
#include "cli/json.h"
#include "cli/text/table.h"
#include "cli/text/width.h"
#include "cli/verbs/slurm_up.h"
#include "cli/verbs/verb.h"
#include "cli/views/slurm_view.h"
#include "slurm/command.h"
#include "slurm/fleet_folder.h"
#include "slurm/hours.h"
#include "slurm/manager.h"
#include "slurm/tools.h"

namespace attune::cli {
namespace {

using Clock = std::chrono::steady_clock;

// For the manager to notice that it is to end, in the middle of a call of Slurm's tools.
constexpr std::chrono::seconds kManagerEnds{60};
constexpr std::chrono::seconds kAskedFirst{15};  // then pilots are cancelled
constexpr std::chrono::seconds kPilotsEnd{120};

void AddDataDir(CLI::App& verb, std::filesystem::path& data_dir) {
  verb.add_option("--data-dir", data_dir, "the server's data folder")
      ->type_name("DIR")
      ->capture_default_str();
}

struct SlurmDownFlags {
  std::filesystem::path data_dir = "attune-data";

  void AddTo(CLI::App& verb) { AddDataDir(verb, data_dir); }
};

struct SlurmLogsFlags {
  std::filesystem::path data_dir = "attune-data";
  std::string pilot;

  void AddTo(CLI::App& verb) {
    verb.add_option("PILOT", pilot, "its number, or its name; 3.1: what its second node has")
        ->required();
    AddDataDir(verb, data_dir);
  }
};

// The manager, if one runs, ends; nobody submits from then on.
Status TakeOver(slurm::FleetFolder& folder) {
  if (Status asked = folder.AskToEnd(); !asked.ok()) return asked;
  for (const Clock::time_point until = Clock::now() + kManagerEnds;;) {
    const Status locked = folder.Lock();
    if (locked.ok() || locked.error().code != ErrorCode::kConflict || Clock::now() > until)
      return locked;
    std::this_thread::sleep_for(kSlurmPollPeriod);
  }
}

// What pilots had between their manager's last look and their end.
Status CountLast(slurm::Tools& tools, const slurm::FleetFolder& folder) {
  auto hours = slurm::HoursBook::Open(folder.path());
  if (!hours.ok()) return hours.error();
  const auto jobs = tools.Jobs(slurm::PilotPrefix(folder.fleet().id));
  if (!jobs.ok()) return jobs.error();
  if (Status counted = hours->Count(*jobs, {}, {}); !counted.ok()) return counted;
  return hours->Write();
}

ExitCode Down(const SlurmDownFlags& flags, Console& console) {
  auto folder = slurm::FleetFolder::Open(flags.data_dir);
  if (!folder.ok()) return Fail(console, folder.error());
  if (const Status taken = TakeOver(*folder); !taken.ok()) return Fail(console, taken.error());
  slurm::SystemCommands commands;
  slurm::Tools tools(commands);
  const Clock::time_point began = Clock::now();
  int most = 0;
  bool at_once = false;
  std::set<std::string> told;
  for (int rounds_without = 0; rounds_without < 2;) {
    if (!at_once && Clock::now() - began > kAskedFirst) {
      at_once = true;
      told.clear();
    }
    const auto left = slurm::EndAll(tools, *folder, at_once, told);
    if (!left.ok() && left.error().code != ErrorCode::kInvalid) return Fail(console, left.error());
    if (Clock::now() - began > kPilotsEnd)
      return Fail(console,
                  {ErrorCode::kUnavailable, "Slurm has not ended all pilots within two minutes" +
                                                (left.ok() ? "" : ": " + left.error().message) +
                                                "; `attune slurm status` shows them"});
    most = std::max(most, left.ok() ? *left : 0);
    rounds_without = left.ok() && *left == 0 ? rounds_without + 1 : 0;
    if (rounds_without < 2) std::this_thread::sleep_for(kSlurmPollPeriod);
  }
  folder->ForgetAsked();
  if (const Status counted = CountLast(tools, *folder); !counted.ok())
    console.err.Print("their last seconds are not counted: " + counted.error().message);
  console.err.Print(most == 0 ? "there were no pilots"
                              : std::to_string(most) + (most == 1 ? " pilot has" : " pilots have") +
                                    " ended");
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

std::string InUse(const slurm::Job& job, const Executors& executors) {
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
  const auto there = static_cast<int>(executors.size());
  if (there < job.nodes)
    text += "; " + std::to_string(there) + " of " + std::to_string(job.nodes) + " nodes joined";
  return text;
}

// The server's facts about a fleet.
struct Seen {
  Executors executors;
  std::optional<rest::Fleet> manager;  // the manager's last report; nullopt: it has made none
};

Result<Seen> AskServer(const ServerChoice& server, const std::string& fleet) {
  const Result<Endpoint> endpoint = ServerOf(server);
  if (!endpoint.ok()) return endpoint.error();
  Api api(*endpoint);
  auto executors = api.Executors();
  if (!executors.ok()) return executors.error();
  Seen seen{.executors = std::move(executors->executors), .manager = std::nullopt};
  const auto pilots = api.Pilots();
  if (!pilots.ok()) return pilots.error();
  for (const rest::Fleet& each : pilots->fleets)
    if (each.fleet == fleet) seen.manager = each;
  return seen;
}

// Who keeps the pilots, and why waiting gangs get none.
void PrintManager(const std::optional<rest::Fleet>& manager, Console& console) {
  if (!manager.has_value()) return console.err.Print("no manager has reported to this server");
  if (manager->stale) {
    const auto silent = static_cast<int64_t>(manager->seconds_since_report);
    return console.err.Print("the manager on " + Clean(manager->host) + " has been silent for " +
                             std::to_string(silent) +
                             " s: nobody submits pilots; `attune slurm up` does");
  }
  for (const rest::Blocker& each : manager->blockers) {
    console.err.Print((each.sweep.empty() ? "" : "sweep " + each.sweep + ": ") + Clean(each.text));
  }
}

// A pilot with its executors instead of their names.
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
  slurm::SystemCommands commands;
  const auto jobs = slurm::Tools(commands).Jobs(slurm::PilotPrefix(fleet));
  if (!jobs.ok()) return Fail(console, jobs.error());
  const Result<Seen> answer = AskServer(flags.server, fleet);
  if (!answer.ok()) console.err.Print("the server cannot be asked: " + answer.error().message);
  const Seen seen = answer.ok() ? *answer : Seen();

  Json pilots = Json::array();
  Table table({{"PILOT"}, {"JOB", true}, {"STATE"}, {"NODE"}, {"ENDS"}, {"IN USE"}, {"REASON"}});
  for (const slurm::Job& job : *jobs) {
    const Executors executors = ExecutorsOf(seen.executors, fleet, job.name);
    pilots.push_back(PilotWithExecutors(job, executors));
    const bool ended = job.phase() == slurm::Phase::kEnded;
    table.Add({Clean(job.name), job.id, Clean(job.state), Clean(job.node), Clean(job.ends),
               ended ? "" : InUse(job, executors), Clean(job.reason)});
  }
  if (flags.output.json()) {
    console.out.Print(Dump({{"fleet", fleet},
                            {"pilots", std::move(pilots)},
                            {"hours", rest::ToJson(MakeHours(hours->hours()))},
                            {"manager", rest::ToJson(seen.manager)}},
                           2));
    return ExitCode::kSuccess;
  }
  if (table.empty()) {
    console.err.Print("Slurm has no pilots of this fleet, " + fleet);
  } else {
    console.out.PrintLines(table.Lines(console.out.style(), console.out.width()));
  }
  for (const std::string& line : HoursLines(hours->hours())) console.out.Print(line);
  if (answer.ok()) PrintManager(seen.manager, console);
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

// Of a pilot of several nodes: what the job said, and then each executor.
ExitCode ShowLogs(const SlurmLogsFlags& flags, Console& console) {
  const auto folder = slurm::FleetFolder::Open(flags.data_dir);
  if (!folder.ok()) return Fail(console, folder.error());
  const std::string& id = folder->fleet().id;
  const std::string prefix = slurm::PilotPrefix(id);
  const std::string name = flags.pilot.starts_with(prefix) ? flags.pilot : prefix + flags.pilot;
  if (slurm::PilotOf(id, name).empty() || name.find('/') != std::string::npos)
    return Fail(console,
                {ErrorCode::kInvalid, "`" + flags.pilot +
                                          "` is no pilot of this fleet: give its number, "
                                          "or its name as `attune slurm status` shows it"});
  const std::filesystem::path logs = folder->fleet().shared / "slurm/logs";
  const std::filesystem::path file = logs / (name + ".log");
  if (!PrintFile(file, console))
    return Fail(console, {ErrorCode::kNotFound,
                          file.string() + " is not there: the pilot has not started, or Slurm "
                                          "could not write it"});
  for (int node = 0; slurm::PilotOf(id, name) == name; ++node)
    if (!PrintFile(logs / (name + "." + std::to_string(node) + ".log"), console)) break;
  return ExitCode::kSuccess;
}

}  // namespace

void SlurmUpFlags::AddTo(CLI::App& verb) {
  server.data_dir = "attune-data";
  AddPilotOptions(verb);
  verb.add_option("--idle", idle, "without need, then a pilot is let go")
      ->type_name("DURATION")
      ->capture_default_str();
  verb.add_option("--give-up", give_up, "without a server, then a pilot ends by itself")
      ->type_name("DURATION")
      ->capture_default_str();
  verb.add_option("--poll", poll, "between two looks at the server and at Slurm")
      ->type_name("DURATION")
      ->capture_default_str();
  AddDataDir(verb, server.data_dir);
  verb.add_option("--shared", shared,
                  "folder that all nodes see: checkpoints, logs; DATA-DIR when absent")
      ->type_name("DIR");
  verb.add_option("--program", program, "attune as the nodes see it; this one when absent")
      ->type_name("FILE");
  verb.add_option("--server", server.server,
                  "REST of a server that runs; the one on DATA-DIR when absent, or a new one here")
      ->type_name("URL");
  verb.add_option("--token-file", server.token_file, "file with that server's token")
      ->type_name("FILE");
  verb.add_option("--executors", executors, "where pilots reach the server")
      ->type_name("HOST:PORT");
  verb.add_option("--rpc-host", rpc_host, "of a new server: its address for executors")
      ->capture_default_str();
  verb.add_option("--port", port, "of a new server: the page and REST")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  verb.add_option("--rpc-port", rpc_port, "of a new server: for executors")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
}

// What pilots ask of Slurm.
void SlurmUpFlags::AddPilotOptions(CLI::App& verb) {
  verb.add_option("--partition", partition, "that pilots run in")->required()->type_name("NAME");
  verb.add_option("--nodes", nodes, "so many nodes at least and at most, such as 0..8")
      ->required()
      ->type_name("MIN..MAX");
  verb.add_option("--nodes-per-pilot", nodes_per_pilot,
                  "so many nodes in one job, for gangs over several: they start and end as one")
      ->check(PositiveNumber())
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--gres", gres, "of each node, such as gpu:8, for gangs with GPUs")
      ->type_name("GRES");
  verb.add_option("--time", time, "of each pilot, as sbatch takes it, such as 4:00:00")
      ->type_name("TIME");
  verb.add_option("--cpus", cpus, "of each node; a whole one when absent")
      ->check(PositiveNumber())
      ->type_name("N");
  verb.add_option("--mem", memory, "of each node, as sbatch takes it, such as 64G")
      ->type_name("SIZE");
  AddLabels(verb, labels);
  verb.add_option("--account", account, "that pays")->type_name("NAME");
  verb.add_option("--qos", qos, "quality of service")->type_name("NAME");
  verb.add_option("OPTIONS", more, "more options of sbatch, behind --");
}

void AddSlurmVerbs(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand("slurm", "executors as jobs of a Slurm cluster");
  noun.require_subcommand(1);
  AddVerb<SlurmUpFlags>(noun, chosen, "up", "keep as many pilots as gangs need, until Ctrl-C",
                        SlurmUp);
  AddVerb<SlurmDownFlags>(noun, chosen, "down", "end all pilots, and who keeps them", Down);
  AddVerb<ClientFlags>(noun, chosen, "status", "pilots, their jobs, states and reasons",
                       ShowStatus);
  AddVerb<SlurmLogsFlags>(noun, chosen, "logs", "what a pilot has printed", ShowLogs);
}

}  // namespace attune::cli
