#include "executor/processes/container_list.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "executor/processes/environment.h"
#include "executor/processes/process_group.h"
#include "logging/log.h"
#include "system/files.h"
#include "system/spawn.h"
#include "system/system_error.h"

namespace attune::gang {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kRemoveWithin{30'000};

// Runs `program rm …`. Returns whether it has removed all containers in time.
bool Remove(const fs::path& program, const std::vector<std::string>& names) {
  const UniqueFd output(open("/dev/null", O_WRONLY | O_CLOEXEC));
  std::vector<std::string> argv{program.string()};
  for (std::string& argument : RemoveArguments(names)) argv.push_back(std::move(argument));
  const Result<Child> child = Spawn({.program = program,
                                     .argv = std::move(argv),
                                     .environment = ProgramEnvironment({}),
                                     .output_fd = output.get()});
  if (!child.ok()) return false;
  pollfd exit{child->pidfd.get(), POLLIN, 0};
  if (poll(&exit, 1, kRemoveWithin.count()) != 1) {
    KillGroup(child->pid);
    poll(&exit, 1, kRemoveWithin.count());
  }
  const std::optional<ExitStatus> status = Reap(child->pidfd.get());
  return status && status->ok();
}

}  // namespace

void ContainerList::RemoveLeft() const {
  std::map<std::string, std::vector<std::string>> left;  // by the engine's program
  std::error_code failed;
  for (auto entry = fs::directory_iterator(folder_, failed);
       !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    const Result<std::string> program = ReadWord(entry->path());
    if (program.ok() && program->starts_with('/'))
      left[*program].push_back(entry->path().filename());
  }
  for (const auto& [program, names] : left) {
    // The follow-up of a killed executor has probably removed them, which some engines call an
    // error.
    if (!Remove(program, names))
      logging::Info("{} could not remove all of {} containers of an earlier executor", program,
                    names.size());
    for (const std::string& name : names) Forget(name);
  }
}

Status ContainerList::Add(const std::string& name, const ContainerEngine& engine) const {
  std::error_code failed;
  fs::create_directories(folder_, failed);
  if (failed) return SystemError("cannot make " + folder_.string(), failed.value());
  return WriteWhole(folder_ / name, engine.program.string() + "\n", kReadableByAll);
}

void ContainerList::Forget(const std::string& name) const {
  std::error_code ignored;
  fs::remove(folder_ / name, ignored);
}

}  // namespace attune::gang
