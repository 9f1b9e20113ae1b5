#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "system/unique_fd.h"

namespace attune {

// A connected pair of Unix sockets, close-on-exec: SOCK_STREAM or SOCK_SEQPACKET.
Result<std::pair<UniqueFd, UniqueFd>> SocketPair(int type);

// The end to read and the end to write of a new pipe, close-on-exec.
Result<std::pair<UniqueFd, UniqueFd>> MakePipe();

// Whether this machine's loopback interface is up; without it no program reaches another by
// 127.0.0.1. True if the system does not tell.
bool IsLoopbackUp();

// On a stream socket of any mode. Does not wait. Sends what the socket takes now, and removes it
// from `bytes`: all of it when nobody listens any more, which then makes no difference.
void SendSome(int socket, std::string& bytes);

// ---- packets, on a seqpacket socket

inline constexpr size_t kPacketBytesMax = 64 * 1024;

struct Packet {
  std::string bytes;
  std::vector<UniqueFd> descriptors;
  bool lacks_descriptors = false;  // this process could hold no more of them
};

// With up to 4 descriptors, which stay the caller's. `flags` as for sendmsg. False with errno set.
bool SendPacket(int socket, const std::string& bytes, const std::vector<int>& descriptors,
                int flags);

// `flags` as for recvmsg; EINTR is tried again. Empty with errno set, 0 at the end of the stream,
// EMSGSIZE for a packet beyond kPacketBytesMax.
std::optional<Packet> ReceivePacket(int socket, int flags);

}  // namespace attune
