#include "executor/record/child_programs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/result.h"
#include "system/processes.h"
#include "system/sockets.h"

namespace attune::agent {
namespace {

// A killed process is gone after a moment, unless the kernel waits for a broken disk.
constexpr std::chrono::milliseconds kDeathTimeout{1'000};

// Reads the bytes that have arrived. Closes `reader` at their end, or after an error.
void ReadAvailable(UniqueFd& reader, std::string& output) {
  std::array<char, 65536> bytes;
  for (;;) {
    const ssize_t count = read(reader.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return reader.reset();
    const size_t free_bytes = ChildPrograms::kOutputBytesMax - output.size();
    output.append(bytes.data(), std::min(static_cast<size_t>(count), free_bytes));
  }
}

}  // namespace

ChildPrograms::ChildPrograms() : end_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void ChildPrograms::End() {
  const uint64_t one = 1;
  (void)!write(end_.get(), &one, sizeof one);
}

std::optional<std::string> ChildPrograms::Output(SpawnRequest request,
                                                 std::chrono::milliseconds timeout) {
  std::erase_if(unreaped_, [](const UniqueFd& pidfd) { return Reap(pidfd.get()).has_value(); });
  const Clock::time_point deadline = Clock::now() + timeout;
  auto pipe = MakePipe();
  if (!pipe.ok()) return std::nullopt;
  auto& [reader, writer] = *pipe;
  const UniqueFd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!null || !end_ || fcntl(reader.get(), F_SETFL, O_NONBLOCK) != 0) return std::nullopt;
  request.output_fd = writer.get();
  request.error_fd = null.get();
  request.process_group = getpgrp();
  Result<Child> child = Spawn(request);
  if (!child.ok()) return std::nullopt;
  writer.reset();

  std::string output;
  if (!ReadUntilExit(*child, reader, deadline, output)) {
    Kill(*std::move(child));
    return std::nullopt;
  }
  const std::optional<ExitStatus> status = Reap(child->pidfd.get());
  return status && status->ok() ? std::optional(std::move(output)) : std::nullopt;
}

// Does not wait for the end of the output, because a child of the program may keep it open.
bool ChildPrograms::ReadUntilExit(const Child& child, UniqueFd& reader, Clock::time_point deadline,
                                  std::string& output) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 3> polled{pollfd{reader.get(), POLLIN, 0},
                                 pollfd{child.pidfd.get(), POLLIN, 0},
                                 pollfd{end_.get(), POLLIN, 0}};
    if (poll(polled.data(), polled.size(), static_cast<int>(left.count())) <= 0) continue;
    if (polled[2].revents != 0) return false;
    if (reader) ReadAvailable(reader, output);
    if (polled[1].revents != 0) return true;
  }
}

void ChildPrograms::Kill(Child child) {
  for (const Descendant& descendant : DescendantsOf(child.pid)) kill(descendant.pid, SIGKILL);
  kill(child.pid, SIGKILL);
  pollfd exit{child.pidfd.get(), POLLIN, 0};
  poll(&exit, 1, static_cast<int>(kDeathTimeout.count()));
  if (!Reap(child.pidfd.get())) unreaped_.push_back(std::move(child.pidfd));
}

}  // namespace attune::agent
