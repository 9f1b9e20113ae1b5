#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "executor/processes/environment.h"

namespace attune::gang {

// A program of this host that runs containers.
struct ContainerEngine {
  enum class Kind { kPodman, kDocker, kApptainer };

  Kind kind = Kind::kPodman;
  std::filesystem::path program;  // absolute

  // Whether processes of a container have another parent than the program that was started, so that
  // the container must be removed by its name.
  bool has_named_containers() const { return kind != Kind::kApptainer; }
};

std::string_view Name(ContainerEngine::Kind kind);

// An image that is on this host.
struct ContainerImage {
  ContainerEngine engine;
  std::string id;      // by which the engine finds it: its hash, or the path of a file
  std::string digest;  // in its registry; empty: not known
};

// Finds the engine `name` in PATH; `any`: the first of podman, docker and apptainer. kUnavailable:
// this host has none. kInvalid: the name is not known.
Result<ContainerEngine> FindContainerEngine(const std::string& name);

// Refuses names of images that an engine could take for an option, and those with blanks.
Status CheckImageName(const std::string& image);

// Whether the image of Apptainer is a file or folder of this host.
bool IsImageFile(const std::string& image);

// A command of an engine. It runs in the environment of this process with the changes.
struct EngineCommand {
  std::filesystem::path program;
  std::vector<std::string> arguments;  // without the program
  EnvironmentChanges environment = {};
};

// A file or folder that a container has at the same path as the host.
struct ContainerMount {
  std::filesystem::path path;
  bool read_only = false;

  bool operator==(const ContainerMount&) const = default;
};

struct ContainerRun {
  ContainerImage image;
  std::string name;                    // unique on this host
  std::string label;                   // for people who list the containers
  std::vector<std::string> argv;       // of the program
  std::filesystem::path folder;        // in which the program starts
  std::vector<ContainerMount> mounts;  // outer folders first
  EnvironmentChanges environment;      // of the program; the last value of a name counts
  bool uses_gpus = false;
};

// The command that runs a program in a new container and ends with the program's exit code. The
// program has the network, the shared memory and all GPUs of the host, because the ranks of a gang
// are in separate containers; CUDA_VISIBLE_DEVICES selects GPUs. It runs as this process's user.
//
// Values of variables are not in the arguments, which all users can read. Exceptions are variables
// that would change the engine itself, such as PATH, and those of Attune.
EngineCommand RunCommand(const ContainerRun& run);

// The command that prints the id of an image and its names in registries, if it is on this host.
EngineCommand InspectCommand(const ContainerEngine& engine, const std::string& image);

// Reads the output of this command. kInvalid: it is something else.
Result<ContainerImage> ReadInspection(const ContainerEngine& engine, const std::string& line);

// `file`: where Apptainer writes the image.
EngineCommand PullCommand(const ContainerEngine& engine, const std::string& image,
                          const std::filesystem::path& file);

// A command that fails if the engine does not work on this host, whatever the image.
EngineCommand CheckCommand(const ContainerEngine& engine);

// The arguments that kill containers and delete them.
std::vector<std::string> RemoveArguments(const std::vector<std::string>& names);

}  // namespace attune::gang
