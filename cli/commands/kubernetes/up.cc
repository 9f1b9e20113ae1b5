#include "cli/commands/kubernetes/up.h"

#include <unistd.h>

#include <utility>

#include "base/result.h"
#include "cli/commands/command.h"
#include "cli/commands/kubernetes/fleet.h"
#include "cli/commands/pilots/keep_pilots.h"
#include "cli/commands/pilots/pilot_commands.h"
#include "cli/commands/pilots/pilot_server.h"
#include "kubernetes/engine.h"
#include "kubernetes/pilot.h"
#include "kubernetes/tools.h"
#include "pilots/fleet_folder.h"
#include "pilots/hours.h"
#include "pilots/names.h"
#include "system/command.h"

namespace attune::cli {
namespace {

Status CheckServerVersion(kubernetes::Tools& tools) {
  const Result<int> minor = tools.ServerMinorVersion();
  if (!minor.ok()) return minor.error();
  if (*minor >= kubernetes::kMinorMin) return {};
  return Error{ErrorCode::kInvalid, "the API server is Kubernetes 1." + std::to_string(*minor) +
                                        "; pilots need 1." + std::to_string(kubernetes::kMinorMin) +
                                        " or later"};
}

// Reports everything that can be wrong with the template or the cluster. Creates nothing.
Result<kubernetes::KubernetesEngine::Submission> CheckSubmission(const KubernetesUpFlags& flags,
                                                                 const PilotSettings& settings,
                                                                 const std::string& fleet,
                                                                 kubernetes::Tools& tools) {
  if (Status version = CheckServerVersion(tools); !version.ok()) return version.error();
  if (access(flags.template_file.c_str(), R_OK) != 0)
    return Error{ErrorCode::kNotFound,
                 "--template " + flags.template_file.string() + ": cannot be read"};
  Result<kubernetes::Json> job = tools.ReadObject(flags.template_file);
  if (!job.ok())
    return Error{job.error().code, flags.template_file.string() + ": " + job.error().message};
  auto base = kubernetes::CheckTemplate(*std::move(job), flags.template_file);
  if (!base.ok()) return base.error();
  kubernetes::KubernetesEngine::Submission submission{
      .base = *std::move(base),
      .options = {.fleet = fleet,
                  .nodes = settings.limits.nodes_per_pilot,
                  .labels = flags.labels,
                  .give_up = settings.give_up}};
  const std::string name = pilots::PilotName(fleet, 0);
  const Status allowed =
      tools.CheckCreate(kubernetes::BuildJob(submission.base, submission.options, name));
  if (!allowed.ok())
    return Error{allowed.error().code,
                 "Kubernetes would refuse these pilots: " + allowed.error().message};
  const auto list = tools.ListJobsAndPods(kubernetes::Selector(fleet));
  if (!list.ok()) return list.error();
  return submission;
}

// The object that --owner names; null without it.
Result<kubernetes::Json> FindOwner(const KubernetesUpFlags& flags, kubernetes::Tools& tools) {
  if (flags.owner.empty()) return kubernetes::Json();
  Result<kubernetes::Json> owner = tools.Get(flags.owner);
  if (owner.ok()) return owner;
  return Error{owner.error().code, "--owner " + flags.owner + ": " + owner.error().message};
}

// Creates the Secret that owns the pilots. Returns its uid.
Result<std::string> CreateSecret(const kubernetes::Json& secret, kubernetes::Tools& tools) {
  if (const Status created = tools.CreateOrReplace(secret); !created.ok()) return created.error();
  const std::string name = kubernetes::TextAt(secret, {"metadata", "name"});
  const Result<kubernetes::Json> found = tools.Get("secret/" + name);
  if (!found.ok()) return found.error();
  return kubernetes::TextAt(*found, {"metadata", "uid"});
}

}  // namespace

ExitCode KubernetesUp(const KubernetesUpFlags& flags, Console& console) {
  const Result<PilotSettings> settings = CheckPilotFlags(flags);
  if (!settings.ok()) return Fail(console, settings.error());
  const pilots::EngineFacts& facts = kubernetes::KubernetesEngine::Facts();
  auto folder = OpenForManager(flags.server.data_dir, facts);
  if (!folder.ok()) return Fail(console, folder.error());
  const std::string fleet = folder->fleet().id;

  SystemCommands commands;
  kubernetes::Location location{.context = flags.context, .name_space = flags.name_space};
  const Result<std::string> context =
      kubernetes::Tools(commands, location, DraftFile(*folder)).CurrentContext();
  if (!context.ok()) return Fail(console, context.error());
  location.context = *context;
  kubernetes::Tools tools(commands, location, DraftFile(*folder));
  auto submission = CheckSubmission(flags, *settings, fleet, tools);
  if (!submission.ok()) return Fail(console, submission.error());
  const Result<kubernetes::Json> owner = FindOwner(flags, tools);
  if (!owner.ok()) return Fail(console, owner.error());
  auto hours = pilots::HoursBook::Open(folder->path());
  if (!hours.ok()) return Fail(console, hours.error());

  const Interrupt::Subscription subscription(console.interrupt, [] {});
  console.host.log_to(console.err, LogLevel::kInfo);
  const Result<ReachableServer> server = FindOrStartServer(flags, facts, console);
  if (!server.ok()) return Fail(console, server.error());
  submission->options.server = server->for_pilots;
  const Result<std::string> join = ReadJoin(flags);
  if (!join.ok()) return Fail(console, join.error());
  // From now on, `down` can end the fleet.
  const std::chrono::seconds grace = submission->base.grace;
  if (Status saved = SaveSettings({location, grace}, *folder); !saved.ok())
    return Fail(console, saved.error());
  Result<std::string> uid = CreateSecret(kubernetes::BuildSecret(fleet, *join, *owner), tools);
  if (!uid.ok()) return Fail(console, uid.error());
  submission->options.owner_uid = *std::move(uid);

  const pilots::Resources resources = submission->base.resources;
  kubernetes::KubernetesEngine engine(tools, fleet, grace, *std::move(submission));
  return KeepPilots({.engine = engine,
                     .folder = *folder,
                     .hours = *hours,
                     .server = *server,
                     .flags = flags,
                     .settings = *settings,
                     .node_resources = resources,
                     .place = flags.name_space},
                    console);
}

void KubernetesUpFlags::AddTo(CLI::App& command) {
  command.add_option("--namespace", name_space, "Namespace of the pilots")
      ->required()
      ->type_name("NAME");
  command
      .add_option("--template", template_file,
                  "Job with the image and the resources of an executor")
      ->required()
      ->type_name("FILE");
  AddSizeOptions(command);
  AddLabels(command, labels);
  AddManagerOptions(command, "Kubernetes");
  command.add_option("--context", context, "Context of kubectl (default: the current one)")
      ->type_name("NAME");
  command.add_option("--owner", owner, "Object that owns the pilots, such as statefulset/attune")
      ->type_name("KIND/NAME");
  AddServerOptions(command);
}

}  // namespace attune::cli
