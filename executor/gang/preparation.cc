#include "executor/gang/preparation.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "channel/line_reader.h"
#include "executor/gang/command_line.h"
#include "executor/gang/folders.h"
#include "executor/gang/set_aside.h"
#include "system/system_error.h"

namespace attune::gang {
namespace {

Status CheckSlots(const GangSpec& spec) {
  if (spec.ranks.empty()) return Invalid("the assignment has no ranks for this host");
  if (!std::ranges::is_sorted(spec.ranks, {}, &RankSlot::rank))
    return Invalid("the assignment's ranks are not in order");
  for (const RankSlot& slot : spec.ranks) {
    const auto same = [&](const RankSlot& other) { return other.rank == slot.rank; };
    if (slot.rank < 0 || slot.rank >= spec.world_size ||
        std::ranges::count_if(spec.ranks, same) != 1) {
      return Invalid("rank " + std::to_string(slot.rank) +
                     " is assigned twice or is not below the world size " +
                     std::to_string(spec.world_size));
    }
  }
  return {};
}

Status WriteConfig(const std::filesystem::path& path, const std::vector<NamedValue>& config) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << channel::ToJson(config) << std::flush;
  if (!file) return SystemError("cannot write " + path.string(), errno);
  return {};
}

std::filesystem::path ConfigFile(const GangSpec& spec) { return spec.attempt_dir / "config.json"; }

std::string CommaSeparated(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += ',';
    text += name;
  }
  return text;
}

// GPUs of the gang on this host: the first GPU of each rank, in the order of the ranks, then the
// second GPU of each rank, and so on. So `cuda:LOCAL_RANK` is a rank's first GPU, as scripts for
// torchrun expect.
std::vector<int> VisibleGpus(const GangSpec& spec) {
  std::vector<int> visible;
  bool has_more = true;
  for (size_t turn = 0; std::exchange(has_more, false); ++turn) {
    for (const RankSlot& slot : spec.ranks) {
      if (turn >= slot.gpus.size()) continue;
      has_more = true;
      const int gpu = slot.gpus[turn];
      if (std::ranges::find(visible, gpu) == visible.end()) visible.push_back(gpu);
    }
  }
  return visible;
}

// The devices of a rank, by their index in VisibleGpus().
std::vector<std::string> DevicesOf(const GangSpec& spec, const RankSlot& slot) {
  if (slot.gpus.empty()) return {"cpu"};
  const std::vector<int> visible = VisibleGpus(spec);
  std::vector<std::string> devices;
  for (const int gpu : slot.gpus) {
    const auto place = std::ranges::find(visible, gpu) - visible.begin();
    devices.push_back("cuda:" + std::to_string(place));
  }
  return devices;
}

// The GPUs of the gang by CUDA's names. If this process may use only some GPUs of the host, an
// index counts among these.
Result<std::vector<std::string>> GpuNames(const GangSpec& spec) {
  const std::optional<std::vector<std::string>> given = AllowedGpus();
  std::vector<std::string> names;
  for (const int gpu : VisibleGpus(spec)) {
    if (!given) {
      names.push_back(std::to_string(gpu));
    } else if (gpu >= 0 && gpu < std::ssize(*given)) {
      names.push_back((*given)[gpu]);
    } else {
      return Invalid(
          "GPU " + std::to_string(gpu) + " was assigned, but this executor may use only " +
          std::to_string(given->size()) + " (CUDA_VISIBLE_DEVICES=" + CommaSeparated(*given) +
          "); restart it to update the server");
    }
  }
  return names;
}

}  // namespace

Status MakeFolders(const GangSpec& spec) {
  if (Status claimed = ClaimSweepFolder(spec); !claimed.ok()) return claimed;
  if (Status claimed = ClaimTrialFolder(spec); !claimed.ok()) return claimed;
  for (const std::filesystem::path& folder :
       {spec.attempt_dir, spec.checkpoint_dir, spec.files_dir}) {
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) return SystemError("cannot make " + folder.string(), failed.value());
  }
  return {};
}

Status MakeFoldersAndConfig(const GangSpec& spec) {
  if (Status made = MakeFolders(spec); !made.ok()) return made;
  return UsesConfigFile(spec.program.command) ? WriteConfig(ConfigFile(spec), spec.config)
                                              : Status();
}

Result<Preparation> Prepare(const GangSpec& spec) {
  if (Status sound = CheckSlots(spec); !sound.ok()) return sound.error();
  Result<std::vector<std::string>> argv =
      ExpandCommand(spec.program.command, spec.config, ConfigFile(spec));
  if (!argv.ok()) return argv.error();
  if (ToLine(MakeStartLine(spec, spec.ranks[0])).size() > channel::kLineBytesMax) {
    return Invalid("the configuration is larger than a line of the worker channel, " +
                   std::to_string(channel::kLineBytesMax) + " bytes");
  }
  if (auto names = GpuNames(spec); !names.ok()) return names.error();
  if (spec.container) {
    const std::filesystem::path& folder = spec.RankDirectory();
    std::error_code failed;
    if (!folder.empty() && !std::filesystem::is_directory(folder, failed))
      return Invalid("the working directory " + folder.string() +
                     " does not exist or is not a folder");
    return Preparation{{}, std::move(argv.value())};  // the engine finds the program
  }
  Result<std::filesystem::path> program = LocateProgram(spec.program, argv.value()[0]);
  if (!program.ok()) return program.error();
  return Preparation{std::move(program.value()), std::move(argv.value())};
}

channel::Start MakeStartLine(const GangSpec& spec, const RankSlot& slot) {
  channel::Start start{.sweep = "s" + std::to_string(spec.attempt.sweep),
                       .trial = spec.attempt.trial,
                       .attempt = static_cast<int>(spec.attempt.attempt),
                       .rank = slot.rank,
                       .world_size = spec.world_size,
                       .local_rank = slot.local_rank,
                       .local_world_size = static_cast<int>(spec.ranks.size()),
                       .cpus = slot.cpus,
                       .seed = spec.seed,
                       .parameters = spec.config,
                       .time_attr = spec.time_attr,
                       .milestone = spec.milestone,
                       .max_step = spec.max_step,
                       .checkpoint_every = spec.checkpoint_every,
                       .checkpoint_dir = spec.checkpoint_dir.string(),
                       .resume = spec.resume};
  if (spec.SpansHosts()) start.address = spec.host.address;
  start.devices = DevicesOf(spec, slot);
  start.device = start.devices.front();
  return start;
}

EnvironmentChanges RankEnvironment(const GangSpec& spec, const RankSlot& slot,
                                   const std::string& master_address, int master_port) {
  EnvironmentChanges environment = spec.program.environment;
  const auto add = [&](const char* name, std::string value) {
    std::erase_if(environment, [&](const auto& change) { return change.first == name; });
    environment.emplace_back(name, std::move(value));
  };
  add("ATTUNE_SWEEP", "s" + std::to_string(spec.attempt.sweep));
  add("ATTUNE_TRIAL", std::to_string(spec.attempt.trial));
  add("ATTUNE_TRIAL_DIR", spec.files_dir.string());
  add("ATTUNE_ATTEMPT", std::to_string(spec.attempt.attempt));
  add("ATTUNE_RANK", std::to_string(slot.rank));
  add("ATTUNE_WORLD_SIZE", std::to_string(spec.world_size));
  add("ATTUNE_LOCAL_RANK", std::to_string(slot.local_rank));
  add("CUDA_VISIBLE_DEVICES", CommaSeparated(GpuNames(spec).value()));  // Prepare() has checked it
  // Variables that torchrun sets, so that programs written for torchrun run unchanged.
  add("RANK", std::to_string(slot.rank));
  add("WORLD_SIZE", std::to_string(spec.world_size));
  add("LOCAL_RANK", std::to_string(slot.local_rank));
  add("LOCAL_WORLD_SIZE", std::to_string(spec.ranks.size()));
  add("GROUP_RANK", std::to_string(spec.node_rank));
  add("GROUP_WORLD_SIZE", std::to_string(spec.nodes));
  add("ROLE_NAME", "default");
  add("ROLE_RANK", std::to_string(slot.rank));
  add("ROLE_WORLD_SIZE", std::to_string(spec.world_size));
  add("MASTER_ADDR", master_address);
  add("MASTER_PORT", std::to_string(master_port));
  add("TORCHELASTIC_RUN_ID",
      "s" + std::to_string(spec.attempt.sweep) + "-" + std::to_string(spec.attempt.trial));
  add("TORCHELASTIC_RESTART_COUNT", std::to_string(spec.attempt.attempt - 1));
  add("TORCHELASTIC_MAX_RESTARTS", std::to_string(spec.max_restarts));
  add("NODE_RANK", std::to_string(spec.node_rank));  // not set by torchrun, but Lightning reads it

  const auto add_unless_set = [&](const char* name, std::string value) {
    const auto same = [&](const auto& change) { return change.first == name; };
    if (!std::getenv(name) && std::ranges::none_of(environment, same)) add(name, std::move(value));
  };
  // Options for a torchrun that the program starts. Two of them on a host must not share torchrun's
  // default port. A gang of several workers does not support torchrun; there each torchrun takes a
  // free port, so that its ranks start and the executor can refuse them with a message.
  if (spec.world_size == 1)
    add_unless_set("PET_MASTER_PORT", std::to_string(master_port));
  else
    add_unless_set("PET_STANDALONE", "1");
  add_unless_set("OMP_NUM_THREADS", std::to_string(std::max(1, slot.cpus)));
  // With NVIDIA's MPS, the rank gets only its share of the GPU's threads.
  if (slot.gpu_percent < 100)
    add_unless_set("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", std::to_string(slot.gpu_percent));
  // Python's output reaches the log immediately, even if the rank is killed.
  add_unless_set("PYTHONUNBUFFERED", "1");
  // Within one host, NCCL needs no network card and must not wait for one.
  if (spec.SpansHosts()) {
    add_unless_set("GLOO_SOCKET_IFNAME", spec.host.interface);
    add_unless_set("NCCL_SOCKET_IFNAME",
                   "=" + spec.host.interface);  // `=`: an exact match, not a prefix
  } else if (!VisibleGpus(spec).empty()) {
    add_unless_set("NCCL_SOCKET_IFNAME", "lo");
  }
  return environment;
}

std::optional<std::vector<std::string>> AllowedGpus() {
  const char* variable = std::getenv("CUDA_VISIBLE_DEVICES");
  if (variable == nullptr) return std::nullopt;
  std::vector<std::string> names;
  std::istringstream text(variable);
  // Like CUDA, ignores everything after the first invalid name.
  for (std::string name; std::getline(text, name, ',') && !name.empty() && name != "-1";) {
    names.push_back(name);
  }
  return names;
}

bool HasNameOfPython(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  for (const std::string_view prefix : {"python", "pypy"}) {
    if (name.starts_with(prefix) &&
        name.find_first_not_of("0123456789.t", prefix.size()) == name.npos)
      return true;
  }
  return false;
}

Result<std::filesystem::path> LocateProgram(const Program& program, const std::string& name) {
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
