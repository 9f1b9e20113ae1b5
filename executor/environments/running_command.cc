#include "executor/environments/running_command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "executor/processes/process_group.h"
#include "logging/log.h"
#include "system/sockets.h"
#include "system/system_error.h"

namespace attune::agent {
namespace {

// A killed process is gone after a moment, unless the kernel waits for a broken disk.
constexpr std::chrono::seconds kKilledWithin{5};
constexpr std::chrono::milliseconds kLookEvery{1};
// Reads without a pause, so that a program that prints much does not stop other work. It is enough
// for a full pipe.
constexpr int kReadsMax = 16;

}  // namespace

void CommandProcesses::Add(pid_t pid) {
  const std::lock_guard lock(mutex_);
  pids_.insert(pid);
}

void CommandProcesses::Remove(pid_t pid) {
  const std::lock_guard lock(mutex_);
  pids_.erase(pid);
}

bool CommandProcesses::Contains(pid_t pid) const {
  const std::lock_guard lock(mutex_);
  return pids_.contains(pid);
}

Result<std::unique_ptr<RunningCommand>> RunningCommand::Start(Services services,
                                                              const Request& request,
                                                              Events events) {
  auto pipe = MakePipe();
  if (!pipe.ok()) return pipe.error();
  auto& [reader, writer] = *pipe;
  if (fcntl(reader.get(), F_SETFL, O_NONBLOCK) != 0)
    return SystemError("cannot read the output of a program", errno);
  std::vector<std::string> argv{request.program.string()};
  argv.insert(argv.end(), request.arguments.begin(), request.arguments.end());
  Result<Child> child = Spawn({.program = request.program,
                               .argv = std::move(argv),
                               .environment = request.environment,
                               .working_directory = request.folder,
                               .output_fd = writer.get(),
                               .announce_fd = services.guard.announce_fd()});
  if (!child.ok()) return child.error();
  services.processes.Add(child->pid);
  services.guard.Add(child->pid);
  std::unique_ptr<RunningCommand> command(new RunningCommand(services, std::move(events)));
  RunningCommand* self = command.get();
  self->child_ = std::move(*child);
  self->output_ = std::move(reader);
  self->output_watch_ =
      services.loop.Watch(self->output_.get(), EPOLLIN, [self](uint32_t) { self->ReadOutput(); });
  self->exit_watch_ =
      services.loop.Watch(self->child_.pidfd.get(), EPOLLIN, [self](uint32_t) { self->OnExit(); });
  return command;
}

RunningCommand::~RunningCommand() {
  if (child_.pidfd) EndGroup();
}

void RunningCommand::ReadOutput() {
  std::array<char, 16384> bytes;
  for (int reads = 0; reads < kReadsMax; ++reads) {
    const ssize_t count = read(output_.get(), bytes.data(), bytes.size());
    if (count > 0) {
      AddOutput({bytes.data(), static_cast<size_t>(count)});
    } else {
      if (count == 0) output_watch_.Reset();
      return;
    }
  }
}

void RunningCommand::AddOutput(std::string_view bytes) {
  for (const char byte : bytes) {
    if (byte == '\n' || byte == '\r')
      PassLine();
    else if (line_.size() < kLineBytesMax)
      line_ += byte;
  }
}

void RunningCommand::PassLine() {
  if (!line_.empty()) events_.line(std::exchange(line_, {}));
}

void RunningCommand::OnExit() {
  // Processes that the program leaves behind could write for ever.
  const std::optional<ExitStatus> status = EndGroup();
  ReadOutput();
  PassLine();
  const auto ended = std::move(events_.ended);
  ended(status);
}

std::optional<ExitStatus> RunningCommand::EndGroup() {
  output_watch_.Reset();
  exit_watch_.Reset();
  gang::KillGroup(child_.pid);
  pollfd exit{child_.pidfd.get(), POLLIN, 0};
  poll(&exit, 1, std::chrono::milliseconds(kKilledWithin).count());
  const std::optional<ExitStatus> status = Reap(child_.pidfd.get());
  const auto deadline = gang::Loop::Clock::now() + kKilledWithin;
  for (;;) {
    gang::ReapGroup(child_.pid);
    if (gang::LiveMembers(child_.pid).empty()) break;
    if (gang::Loop::Clock::now() >= deadline) {
      logging::Warn("processes of group {} do not end although they were killed", child_.pid);
      break;
    }
    std::this_thread::sleep_for(kLookEvery);
  }
  services_.guard.Remove(child_.pid);
  services_.processes.Remove(child_.pid);
  child_.pidfd.reset();
  return status;
}

}  // namespace attune::agent
