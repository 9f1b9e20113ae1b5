#include "cli/commands/slurm/up.h"

#include <algorithm>

#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/commands/pilots/keep_pilots.h"
#include "cli/commands/pilots/pilot_commands.h"
#include "cli/commands/pilots/pilot_server.h"
#include "pilots/fleet_folder.h"
#include "pilots/hours.h"
#include "slurm/engine.h"
#include "slurm/pilot.h"
#include "slurm/tools.h"
#include "system/command.h"
#include "system/files.h"
#include "system/own_program.h"

namespace attune::cli {
namespace {

// The options of a fleet that were found correct.
struct SlurmSettings {
  PilotSettings pilots;
  slurm::PilotOptions job;
  pilots::Resources node_resources;
};

// Reports everything that can be wrong before anything starts.
Result<SlurmSettings> CheckFlags(const SlurmUpFlags& flags, slurm::Tools& tools) {
  Result<PilotSettings> settings = CheckPilotFlags(flags);
  if (!settings.ok()) return settings.error();
  const slurm::PilotOptions job = {.nodes = flags.nodes_per_pilot,
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
  if (Status pilot = slurm::Check(job, *partition); !pilot.ok()) return pilot.error();
  const Status allowed = tools.Check(slurm::SbatchOptions(job, {}, "attune-check"));
  if (!allowed.ok())
    return Error{allowed.error().code,
                 "Slurm would refuse these pilots: " + allowed.error().message +
                     "\nnothing was submitted; `sinfo`, `sacctmgr show assoc user=$USER` and "
                     "`sbatch --test-only` show what it accepts"};
  // Pilots that use whole nodes cannot use more nodes than the partition has.
  int& nodes_max = settings->limits.nodes_max;
  if (!flags.cpus) nodes_max = std::min(nodes_max, partition->nodes);
  return SlurmSettings{*std::move(settings), job, slurm::NodeResources(job, *partition)};
}

// Writes the files that pilots need to the shared folder.
Result<slurm::SlurmEngine::Submission> Prepare(const SlurmUpFlags& flags,
                                               const SlurmSettings& settings,
                                               const std::string& server,
                                               pilots::FleetFolder& folder) {
  const std::filesystem::path shared =
      std::filesystem::absolute(flags.shared.empty() ? flags.server.data_dir : flags.shared)
          .lexically_normal();
  const std::filesystem::path place = shared / "slurm";
  slurm::SlurmEngine::Submission submission{
      .options = settings.job,
      .places = {.program = flags.program.empty() ? OwnProgram() : flags.program,
                 .server = server,
                 .token_file = place / "join",
                 .data_dir = shared,
                 .logs = place / "logs",
                 .labels = flags.labels,
                 .give_up = settings.pilots.give_up},
      .script = place / "pilot.sh"};
  const std::filesystem::path& logs = submission.places.logs;
  std::error_code error;
  std::filesystem::create_directories(logs, error);
  if (error)
    return Error{ErrorCode::kDenied, "cannot create " + logs.string() + ": " + error.message()};
  const Result<std::string> join = ReadJoin(flags);
  if (!join.ok()) return join.error();
  Status written = WriteWhole(submission.places.token_file, *join + "\n", kPrivate);
  if (!written.ok()) return written.error();
  written = WriteWhole(submission.script, slurm::PilotScript(submission.places, submission.script),
                       kPrivate);
  if (!written.ok()) return written.error();
  pilots::FleetFolder::Fleet fleet = folder.fleet();
  fleet.settings[kSharedSetting] = shared.string();
  if (Status saved = folder.Save(std::move(fleet)); !saved.ok()) return saved.error();
  return submission;
}

}  // namespace

ExitCode SlurmUp(const SlurmUpFlags& flags, Console& console) {
  SystemCommands commands;
  slurm::Tools tools(commands);
  const Result<SlurmSettings> settings = CheckFlags(flags, tools);
  if (!settings.ok()) return Fail(console, settings.error());
  const pilots::EngineFacts& facts = slurm::SlurmEngine::Facts();
  auto folder = OpenForManager(flags.server.data_dir, facts);
  if (!folder.ok()) return Fail(console, folder.error());
  auto hours = pilots::HoursBook::Open(folder->path());
  if (!hours.ok()) return Fail(console, hours.error());

  const Interrupt::Subscription subscription(console.interrupt, [] {});
  console.host.log_to(console.err, LogLevel::kInfo);
  const Result<ReachableServer> server = FindOrStartServer(flags, facts, console);
  if (!server.ok()) return Fail(console, server.error());
  auto submission = Prepare(flags, *settings, server->for_pilots, *folder);
  if (!submission.ok()) return Fail(console, submission.error());
  slurm::SlurmEngine engine(tools, folder->fleet().id, *std::move(submission));
  const int nodes_max = settings->pilots.limits.nodes_max;
  if (nodes_max < ParseNodes(flags.nodes)->nodes_max)
    console.err.Print("the partition " + flags.partition + " has " + std::to_string(nodes_max) +
                      " nodes, so more pilots would only wait");
  return KeepPilots({.engine = engine,
                     .folder = *folder,
                     .hours = *hours,
                     .server = *server,
                     .flags = flags,
                     .settings = settings->pilots,
                     .node_resources = settings->node_resources,
                     .place = flags.partition},
                    console);
}

void SlurmUpFlags::AddTo(CLI::App& command) {
  AddJobOptions(command);
  AddManagerOptions(command, "Slurm");
  command
      .add_option("--shared", shared,
                  "Folder that all nodes see, for checkpoints and logs (default: DATA-DIR)")
      ->type_name("DIR");
  command.add_option("--program", program, "Path of attune on the nodes (default: this program)")
      ->type_name("FILE");
  AddServerOptions(command);
}

// Adds the options of the Slurm jobs.
void SlurmUpFlags::AddJobOptions(CLI::App& command) {
  command.add_option("--partition", partition, "Slurm partition")->required()->type_name("NAME");
  AddSizeOptions(command);
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

}  // namespace attune::cli
