#include "system/sockets.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/result.h"
#include "system/system_error.h"

namespace attune {
namespace {

constexpr size_t kDescriptorsMax = 4;

}  // namespace

Result<std::pair<UniqueFd, UniqueFd>> SocketPair(int type) {
  std::array<int, 2> ends;
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return SystemError("cannot create a pair of sockets", errno);
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

bool IsLoopbackUp() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return true;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> interfaces(list, &freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if ((each->ifa_flags & IFF_LOOPBACK) != 0) return (each->ifa_flags & IFF_UP) != 0;
  }
  return true;
}

Result<std::pair<UniqueFd, UniqueFd>> MakePipe() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return SystemError("cannot create a pipe", errno);
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

void SendSome(int socket, std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count =
        send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += count;
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      sent = bytes.size();
    }
  }
  bytes.erase(0, sent);
}

bool SendPacket(int socket, const std::string& bytes, const std::vector<int>& descriptors,
                int flags) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control{};
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const size_t size = descriptors.size() * sizeof(int);
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(header), descriptors.data(), size);
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

std::optional<Packet> ReceivePacket(int socket, int flags) {
  Packet packet;
  packet.bytes.resize(kPacketBytesMax);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control{};
  iovec data{packet.bytes.data(), packet.bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t count;
  do {
    count = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return std::nullopt;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t descriptors = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < descriptors; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      packet.descriptors.emplace_back(fd);
    }
  }
  packet.lacks_descriptors = (message.msg_flags & MSG_CTRUNC) != 0;
  errno = (message.msg_flags & MSG_TRUNC) != 0 ? EMSGSIZE : 0;
  if (count == 0 || errno != 0) return std::nullopt;
  packet.bytes.resize(count);
  return packet;
}

}  // namespace attune
