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

// The read end and the write end of a new pipe, close-on-exec.
Result<std::pair<UniqueFd, UniqueFd>> MakePipe();

// Whether this machine's loopback interface is up. Without it no program can reach another at
// 127.0.0.1. Returns true if the system does not tell.
bool IsLoopbackUp();

// Sends as much as a stream socket takes without waiting, and removes it from `bytes`. Removes all
// bytes if the connection is broken.
void SendSome(int socket, std::string& bytes);

// ---- Packets on a SOCK_SEQPACKET socket.

inline constexpr size_t kPacketBytesMax = 64 * 1024;

struct Packet {
  std::string bytes;
  std::vector<UniqueFd> descriptors;
  bool lacks_descriptors = false;  // the process has reached its limit of descriptors
};

// Sends a packet with up to 4 descriptors, which the caller keeps. See sendmsg(2) for `flags`.
// Returns false and sets errno if it fails.
bool SendPacket(int socket, const std::string& bytes, const std::vector<int>& descriptors,
                int flags);

// Receives a packet; repeats the call after EINTR. See recvmsg(2) for `flags`. Returns nullopt
// and sets errno if it fails: 0 at the end of the stream, EMSGSIZE for a packet beyond
// kPacketBytesMax.
std::optional<Packet> ReceivePacket(int socket, int flags);

}  // namespace attune
