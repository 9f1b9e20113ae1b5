#include "cli/doctor/checks.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/version.h"
#include "cli/text/numbers.h"

namespace attune::cli {
namespace {

Finding Ok(std::string detail) { return {.detail = std::move(detail)}; }

Finding Warning(std::string detail, std::string remedy) {
  return {.health = Health::kWarning, .detail = std::move(detail), .remedy = std::move(remedy)};
}

Finding Missing(std::string detail, std::string remedy) {
  return {.health = Health::kMissing, .detail = std::move(detail), .remedy = std::move(remedy)};
}

std::string SizeText(uint64_t bytes) { return FormatBytes(static_cast<double>(bytes)); }

std::string ToText(Release release) {
  return std::to_string(release.major) + '.' + std::to_string(release.minor);
}

// Whether a version such as 5.4 or 5.4.0-150-generic is at least `least`.
bool IsAtLeast(std::string_view version, Release least) {
  int found_major = 0;
  int found_minor = 0;
  const char* const end = version.data() + version.size();
  const auto [dot, error] = std::from_chars(version.data(), end, found_major);
  if (error != std::errc()) return false;
  if (dot != end && *dot == '.') std::from_chars(dot + 1, end, found_minor);
  return std::pair(found_major, found_minor) >= std::pair(least.major, least.minor);
}

Finding CheckKernel(const std::string& release) {
  if (IsAtLeast(release, kKernelMin)) return Ok("Linux " + release);
  return Missing("Linux " + release + " is older than " + ToText(kKernelMin),
                 "install a newer kernel; `uname -r` shows the running one");
}

std::string RaiseLimit(uint64_t limit) {
  const std::string number = std::to_string(limit);
  return "raise the limit to " + number + ": `ulimit -n " + number +
         "` as root, LimitNOFILE=" + number +
         " in a unit of systemd, or `docker run --ulimit nofile=" + number + "`";
}

Finding CheckDescriptors(const DescriptorFacts& facts) {
  const std::string limits = "open files: soft limit " + std::to_string(facts.soft) +
                             ", hard limit " + std::to_string(facts.hard);
  if (facts.hard < facts.server_least)
    return Missing(limits + "; a server needs " + std::to_string(facts.server_least),
                   RaiseLimit(facts.server_full));
  if (facts.hard < facts.server_full)
    return Warning(
        limits + "; a server with many clients needs " + std::to_string(facts.server_full),
        RaiseLimit(facts.server_full));
  if (facts.soft < kWorkerDescriptors)
    return Warning(
        limits + "; workers with data loaders may need " + std::to_string(kWorkerDescriptors),
        "run `ulimit -Sn " + std::to_string(kWorkerDescriptors) +
            "` before you start an executor, or set LimitNOFILE in its unit of systemd");
  return Ok(limits);
}

Finding CheckMemory(const MemoryFacts& facts) {
  if (facts.bytes == 0) return Ok("the system does not report its memory");
  const std::string free_space =
      SizeText(facts.free_bytes) + " of " + SizeText(facts.bytes) + " free";
  if (facts.free_bytes >= facts.needed_bytes) return Ok(free_space);
  return Missing(
      free_space + "; an executor starts no trial below " + SizeText(facts.needed_bytes),
      "end other programs, raise the memory limit of the container or unit, or start the "
      "executor with a smaller --min-free-memory");
}

Finding CheckCgroups(const CgroupFacts& facts) {
  const std::string cpus = FormatCount(facts.cpus, "CPU") + " for trials";
  if (facts.fault.empty()) return Ok(cpus + "; each gang gets a cgroup");
  return Warning(
      facts.fault + "; an executor finds leftover processes by their environment instead",
      "run the executor as root, or under systemd with Delegate=yes; in a container, mount "
      "/sys/fs/cgroup for writing (`docker run --privileged --cgroupns=private`). If no "
      "trial hides processes, ignore this");
}

std::string FreeSpaceText(const FileSystemFacts& facts) {
  return facts.path.string() + ": " + SizeText(facts.free_bytes) + " of " + SizeText(facts.bytes) +
         " free";
}

Finding CheckSharedMemory(const FileSystemFacts& facts) {
  constexpr char kMore[] =
      "in a container: `docker run --shm-size=2g` or `--ipc=host`; elsewhere: `mount -o "
      "remount,size=2G /dev/shm` as root";
  if (!facts.fault.empty())
    return Missing(
        facts.path.string() + ": " + facts.fault + "; NCCL and the data loaders of PyTorch need it",
        "as root: `mkdir -p /dev/shm && mount -t tmpfs -o mode=1777,size=2G tmpfs /dev/shm`");
  const std::string free_space = FreeSpaceText(facts);
  if (facts.free_bytes >= kSharedMemoryBytesMin) return Ok(free_space);
  const std::string needs = "; NCCL and data loaders with workers may need " +
                            SizeText(kSharedMemoryBytesMin) + " and fail with a bus error";
  if (facts.bytes >= kSharedMemoryBytesMin)
    return Warning(free_space + needs, "delete files that nothing uses: `ls -l /dev/shm`");
  return Warning(free_space + needs, kMore);
}

Finding CheckNvml(const GpuFacts& facts) {
  const std::string found = FormatCount(facts.found, "NVIDIA GPU");
  const std::string driver = facts.driver.empty() ? "" : ", driver " + facts.driver;
  if (!facts.problems.empty()) {
    std::string problems;
    for (const std::string& problem : facts.problems)
      problems += (problems.empty() ? "" : "; ") + problem;
    return Missing(
        problems,
        "see `nvidia-smi -q` and `dmesg`; reset the GPU with `nvidia-smi --gpu-reset`, or "
        "restart the host");
  }
  if (facts.found == 0 && facts.is_selected)
    return Ok("CUDA_VISIBLE_DEVICES allows this process no GPU");
  if (!facts.is_selected && facts.found != facts.in_driver)
    return Warning("an executor finds " + FormatCount(facts.found, "GPU") +
                       ", but the driver lets this process use " + std::to_string(facts.in_driver),
                   "start executors with `--gpus " + std::to_string(facts.in_driver) + "`");
  return Ok((facts.found == 0 ? "no NVIDIA GPU" : found) + driver);
}

Finding CheckGpus(const GpuFacts& facts) {
  const bool is_there = facts.on_bus > 0 || facts.found > 0;
  if (facts.has_library && facts.fault.empty()) return CheckNvml(facts);
  if (!is_there) return Ok("no NVIDIA GPU");
  if (facts.has_library)
    return Missing("the NVIDIA driver does not work: " + facts.fault,
                   "run `nvidia-smi`, which should say the same. After an update of the driver, "
                   "restart the host or the container; otherwise install the driver again");
  if (facts.found > 0)
    return Warning(
        FormatCount(facts.found, "NVIDIA GPU") +
            ", but no NVML (libnvidia-ml.so.1): executors do not notice a broken GPU",
        "install NVML, which is part of the driver (Debian: libnvidia-ml1); in a container, "
        "set NVIDIA_DRIVER_CAPABILITIES=compute,utility");
  return Warning(
      FormatCount(facts.on_bus, "NVIDIA GPU") + " without a driver: trials cannot use it",
      "install NVIDIA's driver if trials should use the GPU");
}

Finding CheckPort(const PortFacts& facts, const std::string& use, const std::string& flag) {
  const std::string port = std::to_string(facts.port);
  const std::string other_port = "choose a port with `attune serve " + flag + " N`";
  if (!facts.fault.empty())
    return Warning(port + ", for " + use + ", cannot be opened: " + facts.fault, other_port);
  if (!facts.is_taken) return Ok(port + ", for " + use + ", is free");
  const std::string user = facts.program + " (process " + std::to_string(facts.pid) + ")";
  if (facts.program == "attune") return Ok(port + ", for " + use + ", is used by " + user);
  return Warning(port + ", for " + use + ", is used by " +
                     (facts.program.empty() ? "a process that you may not see" : user) +
                     "; a server would take any free port",
                 (facts.program.empty() ? "run `attune doctor` as root to see which, "
                                        : "end that process, ") +
                     std::string("or ") + other_port);
}

std::string SkewText(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::fabs(seconds));
  return text;
}

Finding CheckClock(const std::optional<bool>& is_synchronised, const ServerFacts& server) {
  constexpr char kSynchronise[] =
      "run `timedatectl set-ntp true`, or start chronyd or ntpd; in a container, on its host";
  std::string skew;
  if (server.clock_ahead_seconds) {
    const double ahead = *server.clock_ahead_seconds;
    if (std::fabs(ahead) > kClockSkewSecondsMax + server.clock_error_seconds)
      return Warning(SkewText(ahead) + (ahead < 0 ? " behind" : " ahead of") +
                         " the server's clock; this breaks HTTPS certificates and times in logs, "
                         "but not leases",
                     kSynchronise);
    skew = SkewText(ahead) + " from the server's clock";
  }
  if (is_synchronised == false)
    return Warning(
        "the kernel reports that the clock is not synchronised" + (skew.empty() ? "" : "; " + skew),
        kSynchronise);
  const std::string state = is_synchronised ? "synchronised"
                                            : "the kernel does not report whether "
                                              "it is synchronised";
  return Ok(state + (skew.empty() ? "" : "; " + skew));
}

Finding CheckDataFolder(const FileSystemFacts& facts) {
  constexpr char kOther[] = "free some space, or choose a folder on another disk with --data-dir";
  if (!facts.fault.empty())
    return Missing(facts.path.string() + ": " + facts.fault,
                   "make it writable for this user, or choose another folder with --data-dir");
  if (facts.free_bytes < facts.needed_bytes)
    return Missing(FreeSpaceText(facts) + "; an executor starts no trial below " +
                       SizeText(facts.needed_bytes),
                   kOther);
  if (facts.free_files < facts.needed_files)
    return Missing(facts.path.string() + ": space for " + std::to_string(facts.free_files) +
                       " more files; an executor starts no trial below " +
                       std::to_string(facts.needed_files),
                   "delete files, or choose a folder on another disk with --data-dir");
  if (facts.free_bytes < kDataBytesWarning)
    return Warning(FreeSpaceText(facts) + "; checkpoints may soon need more", kOther);
  return Ok(FreeSpaceText(facts));
}

Finding CheckTemporaryFolder(const FileSystemFacts& facts) {
  constexpr char kOther[] = "free some space, or set TMPDIR to a folder on another disk";
  if (!facts.fault.empty())
    return Missing(facts.path.string() + ": " + facts.fault,
                   "set TMPDIR to a folder that this user may write to");
  if (facts.free_bytes < kTemporaryBytesWarning)
    return Warning(FreeSpaceText(facts) + "; programs of trials may need more", kOther);
  return Ok(FreeSpaceText(facts));
}

Finding CheckPython(const PythonFacts& facts) {
  if (facts.path.empty()) return Ok("no python3 in PATH; only trials in Python need it");
  if (facts.version.empty())
    return Warning(facts.path + " does not run",
                   "run `python3 --version` to see why, and install Python again");
  const std::string python = facts.path + ' ' + facts.version;
  if (!IsAtLeast(facts.version, kPythonMin))
    return Warning(
        python + " is older than " + ToText(kPythonMin) + ", which the package attune needs",
        "install a newer Python, if trials are in Python");
  if (!facts.has_attune)
    return Warning(
        python + " has no package attune, which scripts need to report metrics",
        "install it with `pip install`, from Attune's wheel, into the environment of the "
        "trials, and run this there. If no trial is in Python, ignore this");
  if (!facts.attune_version.empty() && facts.attune_version != kVersion)
    return Warning(
        python + " has attune " + facts.attune_version + "; this program is " + kVersion,
        std::string("install version ") + kVersion + " of Attune's wheel with `pip install`");
  return Ok(python + " with attune" +
            (facts.attune_version.empty() ? "" : ' ' + facts.attune_version));
}

Finding CheckServer(const ServerFacts& facts, const std::filesystem::path& data_dir) {
  if (facts.url.empty() && facts.fault.empty()) return Ok("none runs on " + data_dir.string());
  if (!facts.fault.empty())
    return facts.is_named ? Missing(facts.fault, facts.remedy) : Warning(facts.fault, facts.remedy);
  if (facts.version != kVersion)
    return Missing(facts.url + " has version " + facts.version + "; this program is " + kVersion,
                   "install the same version on both: on this host " + facts.version +
                       ", or there " + kVersion);
  return Ok(facts.url + " has version " + facts.version);
}

}  // namespace

std::string_view ToText(Health health) {
  switch (health) {
    case Health::kOk:
      return "ok";
    case Health::kWarning:
      return "warning";
    case Health::kMissing:
      break;
  }
  return "missing";
}

std::vector<Finding> Examine(const HostFacts& host, const ServerFacts& server) {
  std::vector<Finding> findings;
  const auto add = [&findings](const char* name, Finding finding) {
    finding.name = name;
    findings.push_back(std::move(finding));
  };
  add("attune", Ok(std::string("version ") + kVersion));
  add("server", CheckServer(server, host.data_dir.path));
  add("kernel", CheckKernel(host.kernel));
  add("open-files", CheckDescriptors(host.descriptors));
  add("memory", CheckMemory(host.memory));
  add("cgroups", CheckCgroups(host.cgroups));
  add("shm", CheckSharedMemory(host.shared_memory));
  add("gpus", CheckGpus(host.gpus));
  add("http-port", CheckPort(host.http_port, "the dashboard and REST", "--port"));
  add("rpc-port", CheckPort(host.rpc_port, "executors", "--rpc-port"));
  add("clock", CheckClock(host.clock_is_synchronised, server));
  add("data-dir", CheckDataFolder(host.data_dir));
  add("tmp-dir", CheckTemporaryFolder(host.temporary_dir));
  add("python", CheckPython(host.python));
  return findings;
}

}  // namespace attune::cli
