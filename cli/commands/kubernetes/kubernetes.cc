#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/commands/kubernetes/fleet.h"
#include "cli/commands/kubernetes/up.h"
#include "cli/commands/pilots/pilot_commands.h"
#include "kubernetes/engine.h"
#include "kubernetes/jobs.h"
#include "kubernetes/pilot.h"
#include "kubernetes/tools.h"
#include "pilots/fleet_folder.h"
#include "pilots/names.h"
#include "system/command.h"

namespace attune::cli {
namespace {

// A fleet that runs, and its engine.
struct KubernetesFleet {
  KubernetesFleet(pilots::FleetFolder opened, const KubernetesSettings& settings)
      : folder(std::move(opened)),
        tools(commands, settings.location, DraftFile(folder)),
        engine(tools, folder.fleet().id, settings.grace) {}

  const std::string& id() const { return folder.fleet().id; }

  pilots::FleetFolder folder;
  SystemCommands commands;
  kubernetes::Tools tools;
  kubernetes::KubernetesEngine engine;
};

Result<pilots::FleetFolder> OpenKubernetesFolder(const std::filesystem::path& data_dir) {
  return pilots::FleetFolder::Open(data_dir, kubernetes::KubernetesEngine::Facts());
}

Result<std::unique_ptr<KubernetesFleet>> OpenFleet(const std::filesystem::path& data_dir) {
  auto folder = OpenKubernetesFolder(data_dir);
  if (!folder.ok()) return folder.error();
  const Result<KubernetesSettings> settings = ReadSettings(*folder);
  if (!settings.ok()) return settings.error();
  return std::make_unique<KubernetesFleet>(*std::move(folder), *settings);
}

// Ends the pilots, and deletes what is left of the fleet in the cluster.
ExitCode EndKubernetesPilots(const PilotDownFlags& flags, Console& console) {
  if (const auto folder = OpenKubernetesFolder(flags.data_dir);
      folder.ok() && !ReadSettings(*folder).ok()) {
    console.err.Print("no pilots to end");  // `down` has run before
    return ExitCode::kSuccess;
  }
  const auto opened = OpenFleet(flags.data_dir);
  if (!opened.ok()) return Fail(console, opened.error());
  KubernetesFleet& fleet = **opened;
  const ExitCode ended = EndPilots(fleet.engine, fleet.folder, console);
  if (ended != ExitCode::kSuccess) return ended;
  Status deleted = fleet.tools.DeleteAllJobs(kubernetes::Selector(fleet.id()));
  if (deleted.ok()) deleted = fleet.tools.DeleteSecret(kubernetes::SecretName(fleet.id()));
  if (deleted.ok()) deleted = ForgetSettings(fleet.folder);
  return deleted.ok() ? ExitCode::kSuccess : Fail(console, deleted.error());
}

ExitCode ShowKubernetesPilots(const ClientFlags& flags, Console& console) {
  const auto fleet = OpenFleet(flags.server.data_dir);
  if (!fleet.ok()) return Fail(console, fleet.error());
  return ShowPilots((*fleet)->engine, (*fleet)->folder, flags, console);
}

// Prints the output of the pods of a pilot, or of one of them.
ExitCode ShowKubernetesLogs(const PilotLogsFlags& flags, Console& console) {
  const auto opened = OpenFleet(flags.data_dir);
  if (!opened.ok()) return Fail(console, opened.error());
  KubernetesFleet& fleet = **opened;
  const Result<std::string> name =
      FindPilotName(fleet.folder, flags.pilot, kubernetes::KubernetesEngine::Facts());
  if (!name.ok()) return Fail(console, name.error());
  const std::string pilot = pilots::PilotOf(fleet.id(), *name);
  const std::string number = std::to_string(*pilots::PilotNumber(fleet.id(), pilot));
  const auto list = fleet.tools.ListJobsAndPods(kubernetes::Selector(fleet.id(), number));
  if (!list.ok()) return Fail(console, list.error());
  Error error{ErrorCode::kNotFound,
              *name + " has no pod: it waits, or Kubernetes has deleted its pods"};
  bool has_output = false;
  for (const kubernetes::PodName& pod : kubernetes::ReadPodNames(*list)) {
    if (pilot != *name && pilot + "." + pod.index != *name) continue;
    const Result<std::string> logs = fleet.tools.Logs(pod.name);
    if (!logs.ok()) {
      error = logs.error();  // it may wait, while others run
      continue;
    }
    has_output = true;
    console.out.Write(*logs);
  }
  return has_output ? ExitCode::kSuccess : Fail(console, error);
}

}  // namespace

void AddKubernetesCommands(CLI::App& app, Action& chosen) {
  CLI::App& noun = *app.add_subcommand("kubernetes", "Run executors as Jobs of Kubernetes");
  noun.require_subcommand(1);
  AddCommand<KubernetesUpFlags>(noun, chosen, "up", "Start and stop pilots as gangs need them",
                                KubernetesUp);
  AddCommand<PilotDownFlags>(noun, chosen, "down", "End all pilots and their manager",
                             EndKubernetesPilots);
  AddCommand<ClientFlags>(noun, chosen, "status", "Show pilots and their jobs",
                          ShowKubernetesPilots);
  AddCommand<PilotLogsFlags>(noun, chosen, "logs", "Print the output of a pilot",
                             ShowKubernetesLogs);
}

}  // namespace attune::cli
