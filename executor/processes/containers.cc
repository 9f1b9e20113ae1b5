#include "executor/processes/containers.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string_view>

#include "system/spawn.h"

namespace attune::gang {
namespace {

namespace fs = std::filesystem;
using Kind = ContainerEngine::Kind;

constexpr std::array kKinds{Kind::kPodman, Kind::kDocker, Kind::kApptainer};
constexpr size_t kImageBytesMax = 512;

// Variables that engines, their helpers or the loader of the host read. None is a secret.
constexpr std::array<std::string_view, 16> kEngineVariables{"CONTAINERS_CONF",
                                                            "CONTAINERS_STORAGE_CONF",
                                                            "CONTAINER_HOST",
                                                            "DOCKER_CONFIG",
                                                            "DOCKER_CONTEXT",
                                                            "DOCKER_HOST",
                                                            "HOME",
                                                            "LD_LIBRARY_PATH",
                                                            "LD_PRELOAD",
                                                            "PATH",
                                                            "SHELL",
                                                            "TMPDIR",
                                                            "USER",
                                                            "XDG_CONFIG_HOME",
                                                            "XDG_DATA_HOME",
                                                            "XDG_RUNTIME_DIR"};
// Variables that RankEnvironment() leaves to the environment of this process if they are there.
constexpr std::array<std::string_view, 7> kSharedVariables{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                                                           "GLOO_SOCKET_IFNAME",
                                                           "NCCL_SOCKET_IFNAME",
                                                           "OMP_NUM_THREADS",
                                                           "PET_MASTER_PORT",
                                                           "PET_STANDALONE",
                                                           "PYTHONUNBUFFERED"};

std::string OwnPath() {
  const char* path = std::getenv("PATH");
  return path == nullptr ? "/usr/bin:/bin" : path;
}

std::map<std::string, std::string> VariablesOf(const ContainerRun& run) {
  std::map<std::string, std::string> variables;
  for (const std::string_view name : kSharedVariables) {
    if (const char* value = std::getenv(std::string(name).c_str())) variables.emplace(name, value);
  }
  // An image has no home of this user. Root has one in each image.
  if (geteuid() != 0) variables.emplace("HOME", "/tmp");
  for (const auto& [name, value] : run.environment) variables[name] = value;
  return variables;
}

bool IsOnCommandLine(std::string_view name) {
  return name.starts_with("ATTUNE_") ||
         std::ranges::find(kEngineVariables, name) != kEngineVariables.end();
}

// A field of the engines' comma-separated lists.
std::string Field(const std::string& text) {
  if (text.find_first_of(",\"") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

void AddMounts(const ContainerRun& run, std::vector<std::string>& arguments) {
  for (const ContainerMount& mount : run.mounts) {
    const std::string path = mount.path.string();
    arguments.push_back("--mount");
    arguments.push_back("type=bind," + Field("source=" + path) + "," + Field("target=" + path) +
                        (mount.read_only ? ",ro" : ""));
  }
}

// In a container a program would be process 1, which ignores SIGTERM unless it handles it.
void AddInit(Kind kind, std::vector<std::string>& arguments) {
  if (kind == Kind::kDocker) return arguments.push_back("--init");
  const Result<fs::path> init = FindProgram(
      "catatonit", {},
      OwnPath() +
          ":/usr/libexec/podman:/usr/local/libexec/podman:/usr/lib/podman:/usr/local/lib/podman");
  if (init.ok()) arguments.insert(arguments.end(), {"--init", "--init-path=" + init->string()});
}

// A program that writes to mounted folders, and whose connection to the executor is accepted.
std::string UserOption(Kind kind) {
  if (kind == Kind::kPodman && geteuid() != 0) return "--userns=keep-id";
  return "--user=" + std::to_string(geteuid()) + ":" + std::to_string(getegid());
}

EngineCommand NamedRunCommand(const ContainerRun& run) {
  const Kind kind = run.image.engine.kind;
  EngineCommand command{.program = run.image.engine.program,
                        .arguments = {"run", "--name=" + run.name, "--label=attune=" + run.label,
                                      "--network=host", "--ipc=host", "--log-driver=none",
                                      // Without this, SELinux denies access to mounted folders.
                                      "--security-opt=label=disable", UserOption(kind)}};
  std::vector<std::string>& arguments = command.arguments;
  // When it is removed, Podman kills it at once, as Docker does.
  if (kind == Kind::kPodman) arguments.push_back("--stop-timeout=0");
  AddInit(kind, arguments);
  if (run.uses_gpus)
    arguments.push_back(kind == Kind::kPodman ? "--device=nvidia.com/gpu=all" : "--gpus=all");
  AddMounts(run, arguments);
  arguments.push_back("--workdir=" + run.folder.string());
  for (const auto& [name, value] : VariablesOf(run)) {
    if (IsOnCommandLine(name)) {
      arguments.push_back("--env=" + name + "=" + value);
    } else {
      arguments.push_back("--env=" + name);
      command.environment.emplace_back(name, value);
    }
  }
  arguments.push_back("--entrypoint=" + run.argv.front());
  arguments.push_back(run.image.id);
  arguments.insert(arguments.end(), run.argv.begin() + 1, run.argv.end());
  return command;
}

EngineCommand ApptainerRunCommand(const ContainerRun& run) {
  EngineCommand command{.program = run.image.engine.program,
                        .arguments = {"exec", "--cleanenv", "--no-home"}};
  std::vector<std::string>& arguments = command.arguments;
  if (run.uses_gpus) arguments.push_back("--nv");
  AddMounts(run, arguments);
  arguments.insert(arguments.end(), {"--pwd", run.folder.string(), run.image.id});
  arguments.insert(arguments.end(), run.argv.begin(), run.argv.end());
  for (const auto& [name, value] : VariablesOf(run)) {
    command.environment.emplace_back("APPTAINERENV_" + name, value);
    // These show to which attempt its processes belong.
    if (name.starts_with("ATTUNE_")) command.environment.emplace_back(name, value);
  }
  return command;
}

}  // namespace

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kPodman:
      return "podman";
    case Kind::kDocker:
      return "docker";
    case Kind::kApptainer:
      return "apptainer";
  }
  return "";
}

Result<ContainerEngine> FindContainerEngine(const std::string& name) {
  std::string searched;
  for (const Kind kind : kKinds) {
    if (name != "any" && name != Name(kind)) continue;
    const std::string program(Name(kind));
    if (const Result<fs::path> found = FindProgram(program, {}, OwnPath()); found.ok())
      return ContainerEngine{kind, *found};
    searched += (searched.empty() ? "" : ", ") + program;
  }
  if (searched.empty())
    return Invalid("the engine " + name +
                   " is not known; install the version of the server on this host");
  return Error{ErrorCode::kUnavailable, "this host cannot run containers: PATH of its executor (" +
                                            OwnPath() + ") does not have " + searched +
                                            "; install it, or add its folder to PATH"};
}

Status CheckImageName(const std::string& image) {
  const bool has_blank = std::ranges::any_of(
      image, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; });
  if (image.empty() || image.starts_with('-') || has_blank || image.size() > kImageBytesMax)
    return Invalid("\"" + image.substr(0, kImageBytesMax) +
                   "\" is not the name of an image; write a name such as "
                   "docker.io/library/python:3.12");
  return {};
}

bool IsImageFile(const std::string& image) { return image.starts_with('/'); }

EngineCommand RunCommand(const ContainerRun& run) {
  return run.image.engine.has_named_containers() ? NamedRunCommand(run) : ApptainerRunCommand(run);
}

EngineCommand InspectCommand(const ContainerEngine& engine, const std::string& image) {
  return {.program = engine.program,
          .arguments = {"image", "inspect", "--format",
                        "{{.Id}} {{range .RepoDigests}}{{.}} {{end}}", image}};
}

Result<ContainerImage> ReadInspection(const ContainerEngine& engine, const std::string& line) {
  std::istringstream words(line);
  ContainerImage image{.engine = engine};
  std::string name;
  words >> image.id >> name;
  const std::string_view hash =
      std::string_view(image.id).substr(image.id.starts_with("sha256:") ? 7 : 0);
  if (hash.empty() || hash.find_first_not_of("0123456789abcdef") != hash.npos)
    return Invalid("`" + std::string(Name(engine.kind)) + " image inspect` printed \"" + line +
                   "\", which does not begin with the id of an image");
  if (const size_t at = name.find('@'); at != name.npos) image.digest = name.substr(at + 1);
  return image;
}

EngineCommand PullCommand(const ContainerEngine& engine, const std::string& image,
                          const fs::path& file) {
  if (engine.has_named_containers())
    return {.program = engine.program, .arguments = {"pull", image}};
  const bool names_source = image.find("://") != image.npos;
  return {
      .program = engine.program,
      .arguments = {"pull", "--force", file.string(), names_source ? image : "docker://" + image}};
}

EngineCommand CheckCommand(const ContainerEngine& engine) {
  return {.program = engine.program,
          .arguments = {engine.has_named_containers() ? "info" : "version"}};
}

std::vector<std::string> RemoveArguments(const std::vector<std::string>& names) {
  std::vector<std::string> arguments{"rm", "--force", "--volumes"};
  arguments.insert(arguments.end(), names.begin(), names.end());
  return arguments;
}

}  // namespace attune::gang
