#include "cli/host/probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/result.h"
#include "cli/host.h"
#include "cli/host/listener.h"
#include "executor/gang/preparation.h"
#include "executor/health/gpu_health.h"
#include "executor/health/host_health.h"
#include "executor/health/host_resources.h"
#include "executor/processes/cgroup.h"
#include "server/network/connection_limits.h"
#include "system/command.h"

namespace attune::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPythonPatience{10};
constexpr char kNvidiaVendor[] = "0x10de";
constexpr char kDisplayClass[] =
    "0x03";  // PCI base class of display controllers, which includes GPUs without screens

// Prints the path and version of Python, and the version of the package attune (distribution
// attune-hpo): empty without the package, ? without a version.
constexpr char kAskPython[] = R"(
import importlib.util, sys
print(sys.executable)
print("%d.%d.%d" % sys.version_info[:3])
try:
    from importlib.metadata import version
    print(version("attune-hpo"))
except Exception:
    print("?" if importlib.util.find_spec("attune") else "")
)";

std::string KernelRelease() {
  utsname name{};
  return uname(&name) == 0 ? name.release : "";
}

DescriptorFacts Descriptors() {
  DescriptorFacts facts;
  rlimit allowed{};
  if (getrlimit(RLIMIT_NOFILE, &allowed) == 0) {
    facts.soft = allowed.rlim_cur;
    facts.hard = allowed.rlim_max;
  }
  facts.server_full = server::DescriptorsOf({});
  facts.server_least = server::DescriptorsOf(server::LimitsWithin(0));
  return facts;
}

MemoryFacts Memory() {
  const agent::HostMemory memory = agent::DetectMemory();
  if (!memory.free_bytes) return {};
  return {.bytes = memory.bytes,
          .free_bytes = *memory.free_bytes,
          .needed_bytes = agent::MemoryFreeMin({}, memory)};
}

CgroupFacts CgroupsOfHost() {
  CgroupFacts facts{.cpus = agent::DetectResources().cpus};
  const auto cgroups = gang::Cgroups::Make({.identity = "doctor " + std::to_string(getpid())});
  if (!cgroups.ok()) facts.fault = cgroups.error().message;
  return facts;
}

std::string FirstWord(const fs::path& file) {
  std::ifstream stream(file);
  std::string word;
  stream >> word;
  return word;
}

uint32_t GpusOnBus() {
  uint32_t gpus = 0;
  std::error_code failed;
  for (const auto& device : fs::directory_iterator("/sys/bus/pci/devices", failed)) {
    gpus += FirstWord(device.path() / "vendor") == kNvidiaVendor &&
            FirstWord(device.path() / "class").starts_with(kDisplayClass);
  }
  return gpus;
}

GpuFacts Gpus() {
  const agent::GpuDriver driver = agent::ReadGpuDriver();
  const auto given = gang::AllowedGpus();
  GpuFacts facts{.on_bus = GpusOnBus(),
                 .found = agent::DetectResources().gpus,
                 .is_selected = given.has_value(),
                 .has_library = driver.has_library,
                 .fault = driver.fault,
                 .driver = driver.version,
                 .in_driver = driver.gpus};
  if (!driver.fault.empty()) return facts;
  agent::GpuHealth health(facts.found, given);
  for (int look = 0; look < agent::GpuHealth::kSilentChecks; ++look)
    facts.problems = health.Check();
  return facts;
}

// The folder or, if it does not exist yet, its nearest ancestor that does.
fs::path NearestExistingFolder(fs::path path) {
  std::error_code failed;
  while (!fs::exists(path, failed) && path != path.parent_path()) path = path.parent_path();
  return path;
}

FileSystemFacts FileSystemOf(const fs::path& path) {
  FileSystemFacts facts{.path = path};
  const fs::path folder = NearestExistingFolder(path);
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) {
    facts.fault = folder == path ? "is not a folder" : folder.string() + " is not a folder";
    return facts;
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    facts.fault =
        (folder == path ? "is not writable: " : "cannot be created in " + folder.string() + ": ") +
        std::string(std::strerror(errno));
    return facts;
  }
  const Result<agent::FileSystem> disk = agent::ReadFileSystem(folder);
  if (!disk.ok()) {
    facts.fault = disk.error().message;
    return facts;
  }
  facts.bytes = disk.value().bytes;
  facts.free_bytes = disk.value().free_bytes;
  facts.needed_bytes = agent::DiskFreeMin({}, disk.value());
  if (disk.value().files > 0) {
    facts.free_files = disk.value().free_files;
    facts.needed_files = agent::FilesFreeMin(disk.value());
  }
  return facts;
}

// Attune does not create /dev/shm if it is not mounted, so it must exist.
FileSystemFacts SharedMemory() {
  const fs::path path = "/dev/shm";
  std::error_code failed;
  if (!fs::exists(path, failed)) return {.path = path, .fault = "does not exist"};
  return FileSystemOf(path);
}

FileSystemFacts TemporaryFolder() {
  const char* const named = std::getenv("TMPDIR");
  const fs::path path = named != nullptr && *named != '\0' ? named : "/tmp";
  std::error_code failed;
  if (!fs::exists(path, failed)) return {.path = path, .fault = "does not exist"};
  return FileSystemOf(path);
}

PortFacts Port(int port) {
  PortFacts facts{.port = port};
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;  // like a server, so that the connections of an ended one do not block it
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool is_free = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                       bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                       listen(fd, 1) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (is_free) return facts;
  facts.is_taken = error == EADDRINUSE;
  if (!facts.is_taken) facts.fault = std::strerror(error);
  if (const auto listener = FindListener(port)) {
    facts.program = listener->program;
    facts.pid = listener->pid;
  }
  return facts;
}

std::optional<bool> ClockIsSynchronised() {
  // systemd-timesyncd creates this file. Some other time services do not report to the kernel.
  std::error_code failed;
  if (fs::exists("/run/systemd/timesync/synchronized", failed)) return true;
  timex state{};
  const int clock = adjtimex(&state);
  if (clock == -1) return std::nullopt;
  return clock != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}

PythonFacts Python() {
  SystemCommands commands(kPythonPatience);
  const Result<CommandResult> ran = commands.Run({"python3", "-c", kAskPython});
  if (!ran.ok() && ran.error().code == ErrorCode::kNotFound) return {};
  PythonFacts facts{.path = "python3"};
  if (!ran.ok() || ran->exit_code != 0) return facts;
  std::istringstream lines(ran->out);
  std::getline(lines, facts.path);
  std::string attune;
  std::getline(lines, facts.version);
  std::getline(lines, attune);
  facts.has_attune = !attune.empty();
  if (attune != "?") facts.attune_version = attune;
  return facts;
}

}  // namespace

HostFacts InspectHost(const fs::path& data_dir) {
  return {.kernel = KernelRelease(),
          .descriptors = Descriptors(),
          .memory = Memory(),
          .cgroups = CgroupsOfHost(),
          .shared_memory = SharedMemory(),
          .gpus = Gpus(),
          .http_port = Port(kHttpPort),
          .rpc_port = Port(kRpcPort),
          .clock_is_synchronised = ClockIsSynchronised(),
          .data_dir = FileSystemOf(fs::absolute(data_dir).lexically_normal()),
          .temporary_dir = TemporaryFolder(),
          .python = Python()};
}

}  // namespace attune::cli
