#include "trainable/base/sockets.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "system/system_error.h"

namespace attune::inline sdk::trainable {
namespace {

using namespace std::chrono_literals;

// Returns 0 when connected, otherwise the errno.
int ConnectOnce(const UniqueFd& socket, const sockaddr* address, socklen_t size,
                Clock::time_point deadline) {
  if (connect(socket.get(), address, size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!Poll(socket, POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t error_size = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &error_size);
  return error;
}

}  // namespace

void ThrowSystemError(const std::string& what, int number) {
  const std::string message = what + ": " + std::strerror(number);
  if (IsStorageFull(number)) throw DiskFull(message);
  throw Error(message);
}

void ThrowErrno(const std::string& what) { ThrowSystemError(what, errno); }

bool Poll(const UniqueFd& socket, short events, Clock::time_point deadline) {
  using std::chrono::milliseconds;
  constexpr milliseconds kWaitMax = 24h;  // poll() takes an int, so longer waits are split
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    const auto wait = std::clamp(left, 0ms, kWaitMax);
    pollfd polled{socket.get(), events, 0};
    if (poll(&polled, 1, static_cast<int>(wait.count())) > 0) return true;
    if (Clock::now() >= deadline) return false;
  }
}

UniqueFd Connect(const sockaddr* address, socklen_t size, Clock::time_point deadline) {
  constexpr auto kRetryPause = 1s;
  const auto retry_until = std::min(deadline, Clock::now() + 2min);
  while (true) {
    UniqueFd socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) ThrowErrno("socket");
    const int error = ConnectOnce(socket, address, size, deadline);
    if (error == 0) return socket;
    const bool is_unreachable = error == EHOSTUNREACH || error == ENETUNREACH;
    if (!is_unreachable || Clock::now() + kRetryPause > retry_until) {
      socket.reset();
      errno = error;
      return socket;
    }
    std::this_thread::sleep_for(kRetryPause);
  }
}

}  // namespace attune::inline sdk::trainable
