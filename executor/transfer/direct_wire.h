#pragma once

#include <google/protobuf/message_lite.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "executor/gang/channel_types.h"
#include "system/unique_fd.h"

namespace attune::agent {

// The protocol between executors over TCP: "executor <-> executor" in executor.proto. All functions
// block, up to the timeouts of the socket. They return false if a timeout expires, or if the peer
// is gone or breaks the protocol. Shutting the socket down cancels them.

inline constexpr size_t kDirectKeyBytes = 32;
inline constexpr size_t kDirectMessageBytesMax = 16 << 10;

// A peer that takes longer is disconnected.
struct DirectTimeouts {
  std::chrono::milliseconds connect{1'000};
  std::chrono::milliseconds greeting{2'000};
  std::chrono::milliseconds piece{10'000};   // for the fetcher: to receive a piece of a file
  std::chrono::milliseconds taking{20'000};  // for the sender: until the peer accepts more data
  // Long, because a slow disk takes long to sync a large file.
  std::chrono::milliseconds idle{120'000};
};

std::string RandomKey();

// Sets the timeouts of all later calls on the socket.
void SetTimeouts(int socket, std::chrono::milliseconds receive, std::chrono::milliseconds send);

// A listening socket and its port.
struct Listener {
  UniqueFd socket;
  uint16_t port = 0;
};
Result<Listener> Listen(const std::string& address);

// Makes a socket for Connect().
UniqueFd NewSocket();
bool Connect(int socket, const std::string& address, uint16_t port);

// Mutual authentication: each end proves that it knows the key without sending it.
bool AuthenticateFetcher(int socket, std::string_view key);
bool AuthenticateSender(int socket, std::string_view key);

bool SendMessage(int socket, const google::protobuf::MessageLite& message);
bool ReceiveMessage(int socket, google::protobuf::MessageLite& message);

bool Receive(int socket, char* bytes, size_t count);

}  // namespace attune::agent
