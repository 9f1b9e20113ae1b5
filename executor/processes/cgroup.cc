#include "executor/processes/cgroup.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <ranges>
#include <set>
#include <sstream>
#include <utility>

#include "logging/log.h"
#include "system/processes.h"
#include "system/sockets.h"
#include "system/spawn.h"
#include "system/system_error.h"

namespace attune::gang {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kEndPatience{5};
// The supervision thread is blocked meanwhile. One pass takes less than a millisecond, and two or
// three passes find all remaining processes.
constexpr std::chrono::milliseconds kKillPatience{500};

bool Write(const fs::path& file, std::string_view text) {
  const UniqueFd fd(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && write(fd.get(), text.data(), text.size()) == std::ssize(text);
}

// Returns an empty string if the file cannot be read, for example because it is gone.
std::string Read(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The value of `key` in text with "key value" lines.
std::string ValueOf(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const size_t value = line.find_first_not_of(" \t", key.size());
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

std::vector<fs::path> FoldersIn(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.is_directory(ignored)) folders.push_back(entry.path());
  }
  return folders;
}

// The cgroup and all cgroups below it, which ranks may have made; parents come first.
std::vector<fs::path> TreeOf(const fs::path& folder) {
  std::vector<fs::path> tree{folder};
  for (size_t i = 0; i < tree.size(); ++i) {
    const std::vector<fs::path> below = FoldersIn(tree[i]);
    tree.insert(tree.end(), below.begin(), below.end());
  }
  return tree;
}

// Returns true if the tree is gone; other processes may remove it at the same time.
bool RemoveTree(const fs::path& folder) {
  if (rmdir(folder.c_str()) == 0 || errno == ENOENT) return true;
  for (const fs::path& each : std::views::reverse(TreeOf(folder))) rmdir(each.c_str());
  return !fs::exists(folder);
}

// Processes with a thread in the cgroup or below it. A threaded cgroup lists only threads.
std::set<pid_t> ProcessesIn(const fs::path& folder) {
  std::set<pid_t> processes;
  for (const fs::path& each : TreeOf(folder)) {
    std::istringstream threads(Read(each / "cgroup.threads"));
    for (std::string thread; threads >> thread;) {
      const std::string process = ValueOf(Read("/proc/" + thread + "/status"), "Tgid:");
      if (!process.empty()) processes.insert(std::stoi(process));
    }
  }
  return processes;
}

// The mount point of the cgroup v2 hierarchy and the folder of the hierarchy that is visible there.
struct Mount {
  fs::path point;
  std::string root;
};

Result<Mount> FindMount(const fs::path& proc) {
  std::ifstream mounts(proc / "self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    // `id parent device root point options [tags] - type source super`
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos || !line.substr(dash + 3).starts_with("cgroup2 ")) continue;
    std::istringstream fields(line);
    std::string skipped;
    Mount mount;
    fields >> skipped >> skipped >> skipped >> mount.root >> mount.point;
    return mount;
  }
  return Error{ErrorCode::kUnavailable, "no cgroup2 filesystem is mounted"};
}

// FNV-1a. An identity contains a path, which cannot be part of a folder's name.
std::string Hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  std::ostringstream hex;
  hex << std::hex << hash;
  return hex.str();
}

// Ends processes in folders with this prefix, which earlier executors have left.
void EndEarlierCgroups(const fs::path& parent, const std::string& prefix) {
  for (const fs::path& folder : FoldersIn(parent)) {
    if (!folder.filename().string().starts_with(prefix)) continue;
    logging::Warn("ending processes that an earlier executor has left in {}", folder.string());
    if (EndCgroups(folder)) continue;
    logging::Error("cannot end processes that an earlier executor has left in {}", folder.string());
  }
}

// Tests whether a process can start in the cgroup; the kernel, a container or a parent cgroup may
// forbid it.
Status TestStart(const Cgroup& cgroup) {
  const pid_t pid = ForkInto(cgroup.descriptor());
  if (pid == 0) _exit(0);
  if (pid < 0) {
    return SystemError("cannot start a process in " + cgroup.folder().string(), errno);
  }
  waitpid(pid, nullptr, 0);
  return {};
}

}  // namespace

void WarnWithoutCgroup(const Child& child) {
  static std::atomic_flag warned;
  if (child.cgroup_error == 0 || warned.test_and_set()) return;
  logging::Warn(
      "cannot start processes in their cgroup ({}), so they start without it; processes that leave "
      "their session and clear their environment may be left behind",
      std::strerror(child.cgroup_error));
}

Result<OwnCgroup> FindOwnCgroup(const fs::path& proc) {
  Result<Mount> mount = FindMount(proc);
  if (!mount.ok()) return mount.error();
  const std::string own = ValueOf(Read(proc / "self/cgroup"), "0::");
  const std::string& root = mount.value().root;
  const std::string below = root == "/"                   ? own
                            : own.starts_with(root + "/") ? own.substr(root.size())
                                                          : "";
  if (own.empty() || own.find("/..") != std::string::npos || (below.empty() && own != root)) {
    return Error{ErrorCode::kUnavailable, "the cgroup of this process, '" + own + "', is not in " +
                                              mount.value().point.string()};
  }
  return OwnCgroup{mount.value().point, fs::path(below).relative_path().lexically_normal()};
}

Cgroup::Cgroup(Cgroups& all, fs::path folder, UniqueFd descriptor)
    : all_(all), folder_(std::move(folder)), descriptor_(std::move(descriptor)) {}

Cgroup::~Cgroup() { all_.Remove(folder_); }

bool Cgroup::Contains(pid_t pid) const {
  // Compares the end of the path, because the path is relative to the cgroup namespace.
  const std::string end = folder_.parent_path().filename() / folder_.filename();
  const std::string path = ValueOf(Read("/proc/" + std::to_string(pid) + "/cgroup"), "0::");
  return (path + "/").find("/" + end + "/") != std::string::npos;
}

std::set<pid_t> Cgroup::Processes() const { return ProcessesIn(folder_); }

std::vector<UniqueFd> Cgroup::Kill() {
  std::vector<UniqueFd> ending;
  const auto deadline = std::chrono::steady_clock::now() + kKillPatience;
  for (;;) {
    const std::set<pid_t> members = ProcessesIn(folder_);
    if (members.empty()) return ending;
    // Freezing stops a process that forks faster than the list is read.
    if (!std::exchange(frozen_, true)) Write(folder_ / "cgroup.freeze", "1");
    for (const pid_t pid : members) {
      UniqueFd pidfd = OpenPidfd(pid);
      // The pidfd pins the pid; check that the pid was not reused before.
      if (!pidfd || !Contains(pid)) continue;
      syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
      ending.push_back(std::move(pidfd));
    }
    if (!ending.empty()) return ending;
    if (std::chrono::steady_clock::now() > deadline) {
      logging::Error("{}: cannot kill process {}; it is left behind", folder_.string(),
                     *members.begin());
      return ending;
    }
  }
}

Result<std::unique_ptr<Cgroups>> Cgroups::Make(const Options& options) {
  const Result<OwnCgroup> found = FindOwnCgroup(options.proc);
  if (!found.ok()) return found.error();
  const fs::path own = found.value().folder();
  const std::string prefix = "attune-" + Hash(options.identity) + "-";
  EndEarlierCgroups(own, prefix);
  std::string folder = own / (prefix + "XXXXXX");
  if (!mkdtemp(folder.data())) {
    return SystemError("cannot make " + (own / prefix).string() + "…", errno);
  }
  std::unique_ptr<Cgroups> all(new Cgroups(folder));
  Result<std::unique_ptr<Cgroup>> first = all->AddOne();
  if (!first.ok()) return first.error();
  if (Status usable = TestStart(*first.value()); !usable.ok()) return usable.error();
  return all;
}

Cgroups::~Cgroups() {
  RetryRemovals();
  rmdir(folder_.c_str());  // if it is not empty, the guard removes it
}

std::unique_ptr<Cgroup> Cgroups::Add() {
  RetryRemovals();
  Result<std::unique_ptr<Cgroup>> cgroup = AddOne();
  if (cgroup.ok()) return std::move(cgroup.value());
  logging::Warn(
      "{}; processes that leave their session and clear their environment may be left behind",
      cgroup.error().message);
  return nullptr;
}

Result<std::unique_ptr<Cgroup>> Cgroups::AddOne() {
  const fs::path folder = folder_ / std::to_string(next_++);
  if (mkdir(folder.c_str(), 0755) != 0) {
    return SystemError("cannot make " + folder.string(), errno);
  }
  UniqueFd descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor || !Write(folder / "cgroup.type", "threaded")) {
    const Error error =
        SystemError("cannot use " + folder.string() + " as a threaded cgroup", errno);
    rmdir(folder.c_str());
    return error;
  }
  return std::make_unique<Cgroup>(*this, folder, std::move(descriptor));
}

// A cgroup may not be empty until a moment after its last process was reaped.
void Cgroups::Remove(const fs::path& folder) {
  if (!RemoveTree(folder)) not_removed_.push_back(folder);
}

void Cgroups::RetryRemovals() { std::erase_if(not_removed_, RemoveTree); }

void KillCgroups(const fs::path& folder) {
  if (Write(folder / "cgroup.kill", "1")) return;
  // Kernels before 5.14 have no cgroup.kill. A frozen process cannot fork between two passes.
  Write(folder / "cgroup.freeze", "1");
  const auto deadline = std::chrono::steady_clock::now() + kKillPatience;
  do {
    const std::set<pid_t> members = ProcessesIn(folder);
    if (members.empty()) break;
    for (const pid_t pid : members) kill(pid, SIGKILL);
  } while (std::chrono::steady_clock::now() < deadline);
  Write(folder / "cgroup.freeze", "0");
}

bool EndCgroups(const fs::path& folder) {
  const UniqueFd events(open((folder / "cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
  if (!events) return !fs::exists(folder);
  const auto deadline = std::chrono::steady_clock::now() + kEndPatience;
  for (;;) {
    char text[256] = {};
    if (pread(events.get(), text, sizeof text - 1, 0) < 0) break;
    if (ValueOf(text, "populated") == "0") break;
    if (!Write(folder / "cgroup.kill", "1")) {  // kernels before 5.14
      Write(folder / "cgroup.freeze", "1");
      for (const pid_t pid : ProcessesIn(folder)) kill(pid, SIGKILL);
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd changed{events.get(), POLLPRI, 0};
    if (left.count() <= 0 || poll(&changed, 1, static_cast<int>(left.count())) == 0) return false;
  }
  return RemoveTree(folder);
}

}  // namespace attune::gang
