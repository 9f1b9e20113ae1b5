#include <filesystem>
#include <fstream>

#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/commands/pilots/pilot_commands.h"
#include "cli/commands/slurm/up.h"
#include "pilots/fleet_folder.h"
#include "pilots/names.h"
#include "slurm/engine.h"
#include "slurm/tools.h"
#include "system/command.h"

namespace attune::cli {
namespace {

Result<pilots::FleetFolder> OpenFolder(const std::filesystem::path& data_dir) {
  return pilots::FleetFolder::Open(data_dir, slurm::SlurmEngine::Facts());
}

std::filesystem::path LogsFolder(const pilots::FleetFolder& folder) {
  const auto shared = folder.fleet().settings.find(kSharedSetting);
  return shared == folder.fleet().settings.end()
             ? ""
             : std::filesystem::path(shared->second) / "slurm/logs";
}

ExitCode EndSlurmPilots(const PilotDownFlags& flags, Console& console) {
  auto folder = OpenFolder(flags.data_dir);
  if (!folder.ok()) return Fail(console, folder.error());
  SystemCommands commands;
  slurm::Tools tools(commands);
  slurm::SlurmEngine engine(tools, folder->fleet().id);
  return EndPilots(engine, *folder, console);
}

ExitCode ShowSlurmPilots(const ClientFlags& flags, Console& console) {
  const auto folder = OpenFolder(flags.server.data_dir);
  if (!folder.ok()) return Fail(console, folder.error());
  SystemCommands commands;
  slurm::Tools tools(commands);
  slurm::SlurmEngine engine(tools, folder->fleet().id);
  return ShowPilots(engine, *folder, flags, console);
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
ExitCode ShowLogs(const PilotLogsFlags& flags, Console& console) {
  const auto folder = OpenFolder(flags.data_dir);
  if (!folder.ok()) return Fail(console, folder.error());
  const Result<std::string> name = FindPilotName(*folder, flags.pilot, slurm::SlurmEngine::Facts());
  if (!name.ok()) return Fail(console, name.error());
  const std::filesystem::path logs = LogsFolder(*folder);
  const std::filesystem::path file = logs / (*name + ".log");
  if (!PrintFile(file, console))
    return Fail(console, {ErrorCode::kNotFound,
                          file.string() + " does not exist: the pilot has not started, or Slurm "
                                          "could not write it"});
  for (int node = 0; pilots::PilotOf(folder->fleet().id, *name) == *name; ++node)
    if (!PrintFile(logs / (*name + "." + std::to_string(node) + ".log"), console)) break;
  return ExitCode::kSuccess;
}

}  // namespace

void AddSlurmCommands(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand("slurm", "Run executors as Slurm jobs");
  noun.require_subcommand(1);
  AddCommand<SlurmUpFlags>(noun, chosen, "up", "Start and stop pilots as gangs need them", SlurmUp);
  AddCommand<PilotDownFlags>(noun, chosen, "down", "End all pilots and their manager",
                             EndSlurmPilots);
  AddCommand<ClientFlags>(noun, chosen, "status", "Show pilots and their jobs", ShowSlurmPilots);
  AddCommand<PilotLogsFlags>(noun, chosen, "logs", "Print the output of a pilot", ShowLogs);
}

}  // namespace attune::cli
