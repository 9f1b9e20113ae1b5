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
#include "slurm/keeper.h"
#include "slurm/tools.h"

namespace attune::cli {
namespace {

using Clock = std::chrono::steady_clock;

// For the keeper to notice that it is to end, in the middle of a call of Slurm's tools.
constexpr std::chrono::seconds kKeeperEnds{60};
constexpr std::chrono::seconds kAskedFirst{15};  // then pilots are cancelled
constexpr std::chrono::seconds kPilotsEnd{120};

struct StatusFlags : ClientFlags {};

struct LogsFlags {
  std::filesystem::path data_dir = "attune-data";
  std::string pilot;
};

// The keeper, if one runs, ends; nobody submits from then on.
Status TakeOver(slurm::FleetFolder& folder) {
  if (Status asked = folder.AskToEnd(); !asked.ok()) return asked;
  for (const Clock::time_point until = Clock::now() + kKeeperEnds;;) {
    const Status locked = folder.Lock();
    if (locked.ok() || locked.error().code != ErrorCode::kConflict || Clock::now() > until)
      return locked;
    std::this_thread::sleep_for(kSlurmPollPeriod);
  }
}

// What pilots had between their keeper's last look and their end.
Status CountLast(slurm::Tools& tools, const slurm::FleetFolder& folder) {
  auto hours = slurm::HoursBook::Open(folder.path());
  if (!hours.ok()) return hours.error();
  const auto jobs = tools.Jobs(slurm::PilotPrefix(folder.fleet().id));
  if (!jobs.ok()) return jobs.error();
  if (Status counted = hours->Count(*jobs, {}, {}); !counted.ok()) return counted;
  return hours->Write();
}

ExitCode Down(const std::filesystem::path& data_dir, Console& console) {
  auto folder = slurm::FleetFolder::Open(data_dir);
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

// The executors of a pilot that are connected, as the server says it.
Json ExecutorsOf(const Json& executors, const std::string& fleet, const std::string& pilot) {
  Json its = Json::array();
  for (const Json& each : executors) {
    if (TextAt(each, "state") == "lost") continue;
    if (slurm::PilotOf(fleet, TextAt(each, "name")) == pilot) its.push_back(each);
  }
  return its;
}

std::string InUse(const slurm::Job& job, const Json& executors) {
  if (executors.empty()) return "not joined";
  const auto used = [&](const char* all, const char* left) {
    int64_t total = 0;
    int64_t free = 0;
    for (const Json& executor : executors) {
      total += WholeAt(executor, all);
      free += WholeAt(executor, left);
    }
    return total == 0 ? "" : std::to_string(total - free) + " of " + std::to_string(total);
  };
  std::string text = used("cpus", "cpus_free") + " CPUs";
  if (const std::string gpus = used("gpus", "gpus_free"); !gpus.empty())
    text += ", " + gpus + " GPUs";
  const auto there = static_cast<int>(executors.size());
  if (there < job.nodes)
    text += "; " + std::to_string(there) + " of " + std::to_string(job.nodes) + " nodes joined";
  return text;
}

// What the keeper of this fleet has told the server last; null: nothing, or nobody can be asked.
Json SaidOf(const Json& fleets, const std::string& fleet) {
  for (const Json& each : fleets)
    if (TextAt(each, "fleet") == fleet) return each;
  return nullptr;
}

// Who keeps the pilots, and why gangs that wait get none.
void PrintKeeper(const Json& said, Console& console) {
  if (said.is_null()) return console.err.Print("no keeper has told this server anything");
  if (At(said, "stale") == Json(true)) {
    const auto silent = static_cast<int64_t>(said.value("silent_seconds", 0.0));
    return console.err.Print("the keeper on " + Clean(TextAt(said, "host")) +
                             " has been silent for " + std::to_string(silent) +
                             " s: nobody submits pilots; `attune slurm up` does");
  }
  for (const Json& each : At(said, "hindrances")) {
    const std::string sweep = TextAt(each, "sweep");
    console.err.Print((sweep.empty() ? "" : "sweep " + sweep + ": ") + Clean(TextAt(each, "text")));
  }
}

ExitCode ShowStatus(const StatusFlags& flags, Console& console) {
  flags.output.Apply(console);
  const auto folder = slurm::FleetFolder::Open(flags.server.data_dir);
  if (!folder.ok()) return Fail(console, folder.error());
  const std::string& fleet = folder->fleet().id;
  const auto hours = slurm::HoursBook::Open(folder->path());
  if (!hours.ok()) return Fail(console, hours.error());
  slurm::SystemCommands commands;
  const auto jobs = slurm::Tools(commands).Jobs(slurm::PilotPrefix(fleet));
  if (!jobs.ok()) return Fail(console, jobs.error());

  Json executors = Json::array();
  Json said;
  const Result<Endpoint> endpoint = ServerOf(flags.server);
  Result<Json> answer = endpoint.ok() ? Api(*endpoint).Executors() : endpoint.error();
  if (answer.ok()) {
    executors = *std::move(answer);
    answer = Api(*endpoint).Pilots();
    if (answer.ok()) said = SaidOf(*answer, fleet);
  }
  if (!answer.ok()) console.err.Print("the server cannot be asked: " + answer.error().message);

  Json pilots = Json::array();
  Table table({{"PILOT"}, {"JOB", true}, {"STATE"}, {"NODE"}, {"ENDS"}, {"IN USE"}, {"REASON"}});
  for (const slurm::Job& job : *jobs) {
    const Json its = ExecutorsOf(executors, fleet, job.name);
    pilots.push_back(PilotJson(job, its));
    const bool ended = job.phase() == slurm::Phase::kEnded;
    table.Add({Clean(job.name), job.id, Clean(job.state), Clean(job.node), Clean(job.ends),
               ended ? "" : InUse(job, its), Clean(job.reason)});
  }
  if (flags.output.json()) {
    console.out.Print(Dump({{"fleet", fleet},
                            {"pilots", std::move(pilots)},
                            {"hours", HoursJson(hours->hours())},
                            {"keeper", std::move(said)}},
                           2));
    return ExitCode::kSuccess;
  }
  if (table.empty()) {
    console.err.Print("Slurm has no pilots of this fleet, " + fleet);
  } else {
    console.out.PrintLines(table.Lines(console.out.style(), console.out.width()));
  }
  for (const std::string& line : HoursLines(hours->hours())) console.out.Print(line);
  if (answer.ok()) PrintKeeper(said, console);
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
ExitCode ShowLogs(const LogsFlags& flags, Console& console) {
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

void AddDataDir(CLI::App& verb, std::filesystem::path& data_dir) {
  verb.add_option("--data-dir", data_dir, "the server's data folder")
      ->type_name("DIR")
      ->capture_default_str();
}

void AddWhatPilotsAsk(CLI::App& verb, SlurmUpFlags& flags) {
  verb.add_option("--partition", flags.partition, "that pilots run in")
      ->required()
      ->type_name("NAME");
  verb.add_option("--nodes", flags.nodes, "so many nodes at least and at most, such as 0..8")
      ->required()
      ->type_name("MIN..MAX");
  verb.add_option("--nodes-per-pilot", flags.nodes_per_pilot,
                  "so many nodes in one job, for gangs over several: they start and end as one")
      ->check(PositiveNumber())
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--gres", flags.gres, "of each node, such as gpu:8, for gangs with GPUs")
      ->type_name("GRES");
  verb.add_option("--time", flags.time, "of each pilot, as sbatch takes it, such as 4:00:00")
      ->type_name("TIME");
  verb.add_option("--cpus", flags.cpus, "of each node; a whole one when absent")
      ->check(PositiveNumber())
      ->type_name("N");
  verb.add_option("--mem", flags.memory, "of each node, as sbatch takes it, such as 64G")
      ->type_name("SIZE");
  AddLabels(verb, flags.labels);
  verb.add_option("--account", flags.account, "that pays")->type_name("NAME");
  verb.add_option("--qos", flags.qos, "quality of service")->type_name("NAME");
  verb.add_option("OPTIONS", flags.more, "more options of sbatch, behind --");
}

void AddUp(CLI::App& noun, Action& chosen) {
  CLI::App* const verb =
      noun.add_subcommand("up", "keep as many pilots as gangs need, until Ctrl-C");
  auto flags = std::make_shared<SlurmUpFlags>();
  flags->server.data_dir = "attune-data";
  AddWhatPilotsAsk(*verb, *flags);
  verb->add_option("--idle", flags->idle, "without need, then a pilot is let go")
      ->type_name("DURATION")
      ->capture_default_str();
  verb->add_option("--give-up", flags->give_up, "without a server, then a pilot ends by itself")
      ->type_name("DURATION")
      ->capture_default_str();
  verb->add_option("--poll", flags->poll, "between two looks at the server and at Slurm")
      ->type_name("DURATION")
      ->capture_default_str();
  AddDataDir(*verb, flags->server.data_dir);
  verb->add_option("--shared", flags->shared,
                   "folder that all nodes see: checkpoints, logs; DATA-DIR when absent")
      ->type_name("DIR");
  verb->add_option("--program", flags->program, "attune as the nodes see it; this one when absent")
      ->type_name("FILE");
  verb->add_option("--server", flags->server.server,
                   "REST of a server that runs; the one on DATA-DIR when absent, or a new one here")
      ->type_name("URL");
  verb->add_option("--token-file", flags->server.token_file, "file with that server's token")
      ->type_name("FILE");
  verb->add_option("--executors", flags->executors, "where pilots reach the server")
      ->type_name("HOST:PORT");
  verb->add_option("--rpc-host", flags->rpc_host, "of a new server: its address for executors")
      ->capture_default_str();
  verb->add_option("--port", flags->port, "of a new server: the page and REST")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  verb->add_option("--rpc-port", flags->rpc_port, "of a new server: for executors")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  verb->callback([flags, &chosen] {
    chosen = [flags](Console& console) { return SlurmUp(*flags, console); };
  });
}

}  // namespace

void AddSlurmVerbs(CLI::App& app, Action& chosen) {
  CLI::App* const noun = app.add_subcommand("slurm", "executors as jobs of a Slurm cluster");
  noun->require_subcommand(1);
  AddUp(*noun, chosen);

  CLI::App* const down = noun->add_subcommand("down", "end all pilots, and who keeps them");
  auto data_dir = std::make_shared<std::filesystem::path>("attune-data");
  AddDataDir(*down, *data_dir);
  down->callback([data_dir, &chosen] {
    chosen = [data_dir](Console& console) { return Down(*data_dir, console); };
  });

  CLI::App* const status = noun->add_subcommand("status", "pilots, their jobs, states and reasons");
  auto status_flags = std::make_shared<StatusFlags>();
  status_flags->AddTo(*status);
  status->callback([status_flags, &chosen] {
    chosen = [status_flags](Console& console) { return ShowStatus(*status_flags, console); };
  });

  CLI::App* const logs = noun->add_subcommand("logs", "what a pilot has printed");
  auto logs_flags = std::make_shared<LogsFlags>();
  logs->add_option("PILOT", logs_flags->pilot,
                   "its number, or its name; 3.1: what its second node has")
      ->required();
  AddDataDir(*logs, logs_flags->data_dir);
  logs->callback([logs_flags, &chosen] {
    chosen = [logs_flags](Console& console) { return ShowLogs(*logs_flags, console); };
  });
}

}  // namespace attune::cli
