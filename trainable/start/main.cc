#include "attune/main.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>

#include "channel/messages.h"
#include "system/sockets.h"
#include "system/unique_fd.h"
#include "system/unix_sockets.h"
#include "trainable/gang/launcher.h"
#include "trainable/start/standalone.h"
#include "trainable/start/standalone_options.h"
#include "trainable/worker/worker.h"

// This ELF note tells an executor that the program can be a launcher
// (docs/reference/worker-channel.md). The note is in the file that every Main() needs, so the
// linker takes it from the static library whenever Main() is used.
asm(R"(
  .pushsection .note.attune, "a", @note
  .balign 4
  .long 7               # bytes of the owner's name
  .long 4               # bytes of the descriptor
  .long 1               # type
  .asciz "Attune"
  .balign 4
  .long 1               # version of the launcher protocol
  .popsection
)");

namespace attune::inline sdk {
namespace trainable {
namespace {

// The descriptor in an environment variable; nullopt if it is not set.
std::optional<UniqueFd> InheritedFd(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  int fd = -1;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), fd);
  struct stat status {};
  if (error != std::errc() || *end != '\0' || fd < 0 || fstat(fd, &status) != 0 ||
      !S_ISSOCK(status.st_mode)) {
    throw Error(std::string(variable) + ": \"" + text +
                "\" is not the number of an open socket; an executor sets it for its ranks, so "
                "unset it for a program that is run by hand");
  }
  // Programs that this process starts must not inherit it.
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  unsetenv(variable);
  return UniqueFd(fd);
}

int NumberFromEnvironment(const char* variable, int fallback) {
  const char* text = std::getenv(variable);
  int number = fallback;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

// Connects to the executor's socket. It is for a program started by a child process of the
// executor, and requests to be the rank in its place. Returns nullopt without such a socket.
std::optional<UniqueFd> JoinThroughSocketPath() {
  const char* path = std::getenv("ATTUNE_CHANNEL");
  if (path == nullptr) return std::nullopt;
  Result<UniqueFd> connected = ConnectToPath(path);
  if (!connected.ok()) {
    throw Error(
        "the channel to the executor is lost: " + connected.error().message +
        "; if this program runs in a container, mount the folder of ATTUNE_CHANNEL into it");
  }
  const int world_size = NumberFromEnvironment("WORLD_SIZE", 1);
  std::string lines = ToLine(channel::Join{NumberFromEnvironment("RANK", 0), world_size,
                                           NumberFromEnvironment("LOCAL_RANK", 0),
                                           NumberFromEnvironment("LOCAL_WORLD_SIZE", world_size)}) +
                      ToLine(channel::Claim{});
  SendSome(connected.value().get(), lines);
  return std::move(connected.value());
}

// Whether the executor or its launcher started this process directly. Descendants may inherit the
// descriptor too.
bool IsStartedByExecutor() {
  const char* parent = std::getenv("ATTUNE_CHANNEL_PARENT");
  return parent == nullptr || parent == std::to_string(getppid());
}

std::optional<UniqueFd> ChannelToExecutor() {
  if (!IsStartedByExecutor()) {
    if (auto channel = JoinThroughSocketPath()) return channel;
  }
  return InheritedFd("ATTUNE_CHANNEL_FD");
}

int Run(int argc, char** argv, const Program& program) {
  if (auto channel = ChannelToExecutor()) {
    return RunWorker(std::move(*channel), {argv + std::min(argc, 1), argv + argc}, program);
  }
  std::optional<ForkedWorker> worker;
  if (auto launcher = InheritedFd("ATTUNE_LAUNCHER_FD")) {
    worker = ServeLauncher(std::move(*launcher));
    if (!worker) return 0;
  } else {
    auto options = ParseStandaloneOptions(argc, argv, program.max_step);
    if (const int* exit_code = std::get_if<int>(&options)) return *exit_code;
    auto outcome = RunStandalone(std::get<StandaloneOptions>(options));
    if (const int* exit_code = std::get_if<int>(&outcome)) return *exit_code;
    worker = std::get<ForkedWorker>(std::move(outcome));
  }
  return RunWorker(std::move(worker->channel), std::move(worker->args), program);
}

}  // namespace

int RunMain(int argc, char** argv, const Program& program) {
  try {
    return Run(argc, argv, program);
  } catch (const std::exception& error) {
    std::cerr << "attune: " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace trainable

int Main(int argc, char** argv, std::function<void(Context&)> train, MainOptions options) {
  return trainable::RunMain(argc, argv, {.train = std::move(train), .options = std::move(options)});
}

}  // namespace attune::inline sdk
