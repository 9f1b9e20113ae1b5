#include "executor/gang/preparation.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "executor/gang/channel.h"
#include "executor/gang/command_line.h"

namespace attune::gang {
namespace {

std::optional<Error> CheckSlots(const GangSpec& spec) {
  if (spec.ranks.empty()) return Error{"the assignment has no ranks for this host"};
  for (const RankSlot& slot : spec.ranks) {
    const auto same = [&](const RankSlot& other) { return other.rank == slot.rank; };
    if (slot.rank < 0 || slot.rank >= spec.world_size ||
        std::ranges::count_if(spec.ranks, same) != 1) {
      return Error{"rank " + std::to_string(slot.rank) + " is not one of " +
                   std::to_string(spec.world_size) + ", or is assigned twice"};
    }
  }
  return std::nullopt;
}

std::optional<Error> MakeFolders(const GangSpec& spec) {
  for (const std::filesystem::path& folder : {spec.attempt_dir, spec.checkpoint_dir}) {
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) return Error{"cannot make " + folder.string() + ": " + failed.message()};
  }
  return std::nullopt;
}

std::optional<Error> WriteConfig(const std::filesystem::path& path,
                                 const std::vector<NamedValue>& config) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << ConfigJson(config) << std::flush;
  if (!file) return Error{"cannot write " + path.string()};
  return std::nullopt;
}

std::string CommaSeparated(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) {
    if (!text.empty()) text += ',';
    text += std::to_string(number);
  }
  return text;
}

}  // namespace

OrError<Preparation> Prepare(const GangSpec& spec) {
  if (auto error = CheckSlots(spec)) return *std::move(error);
  if (auto error = MakeFolders(spec)) return *std::move(error);

  const std::filesystem::path config_file = spec.attempt_dir / "config.json";
  OrError<std::vector<std::string>> argv =
      ExpandCommand(spec.program.command, spec.config, config_file);
  if (!argv.ok()) return Error{argv.error()};
  if (UsesConfigFile(spec.program.command)) {
    if (auto error = WriteConfig(config_file, spec.config)) return *std::move(error);
  }
  if (StartLine(spec, spec.ranks[0]).size() > kLineBytesMax) {
    return Error{"the configuration is larger than a line of the worker channel, " +
                 std::to_string(kLineBytesMax) + " bytes"};
  }
  OrError<std::filesystem::path> program = LocateProgram(spec.program, argv.value()[0]);
  if (!program.ok()) return Error{program.error()};
  return Preparation{std::move(program.value()), std::move(argv.value())};
}

EnvironmentChanges RankEnvironment(const GangSpec& spec, const RankSlot& slot) {
  EnvironmentChanges environment = spec.program.environment;
  const auto add = [&](const char* name, std::string value) {
    std::erase_if(environment, [&](const auto& change) { return change.first == name; });
    environment.emplace_back(name, std::move(value));
  };
  add("ATTUNE_SWEEP", "s" + std::to_string(spec.attempt.sweep));
  add("ATTUNE_TRIAL", std::to_string(spec.attempt.trial));
  add("ATTUNE_ATTEMPT", std::to_string(spec.attempt.attempt));
  add("ATTUNE_RANK", std::to_string(slot.rank));
  add("ATTUNE_WORLD_SIZE", std::to_string(spec.world_size));
  add("ATTUNE_LOCAL_RANK", std::to_string(slot.local_rank));
  add("CUDA_VISIBLE_DEVICES", CommaSeparated(VisibleGpus(spec)));
  return environment;
}

OrError<std::filesystem::path> LocateProgram(const Program& program, const std::string& name) {
  const auto& environment = program.environment;
  const auto path = std::find_if(environment.rbegin(), environment.rend(),
                                 [](const auto& change) { return change.first == "PATH"; });
  const char* own = std::getenv("PATH");
  return FindProgram(name, program.working_directory,
                     path != environment.rend() ? path->second
                     : own                      ? own
                                                : "/usr/bin:/bin");
}

}  // namespace attune::gang
