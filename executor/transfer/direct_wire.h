#pragma once

#include <google/protobuf/message_lite.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "executor/gang/words.h"
#include "system/unique_fd.h"

namespace attune::agent {

// How executors speak with each other over TCP: "executor <-> executor" of executor.proto. All of
// this waits, for as long as the socket's timeouts say; false: those are over, the other end is
// gone or says what it should not. Shutting the socket down ends it.

inline constexpr size_t kDirectKeyBytes = 32;
inline constexpr size_t kDirectMessageBytesMax = 16 << 10;

// Whoever takes longer is let go.
struct DirectTimeouts {
  std::chrono::milliseconds connect{1'000};
  std::chrono::milliseconds greeting{2'000};
  std::chrono::milliseconds piece{10'000};   // of a file, to who fetches
  std::chrono::milliseconds taking{20'000};  // a part of a file, to who sends
  std::chrono::milliseconds idle{120'000};   // a slow disk takes long to sync a large file
};

std::string RandomKey();

// For each call on the socket from now on.
void SetTimeouts(int socket, std::chrono::milliseconds receive, std::chrono::milliseconds send);

// Listens at a free port of the address (IPv4), and says which.
struct Listener {
  UniqueFd socket;
  uint16_t port = 0;
};
Result<Listener> Listen(const std::string& address);

// Begins a connection; Connect() makes it.
UniqueFd NewSocket();
bool Connect(int socket, const std::string& address, uint16_t port);

// Each end shows the other that it has the key, and the key stays where it is.
bool GreetFetcher(int socket, std::string_view key);
bool GreetSender(int socket, std::string_view key);

bool SendMessage(int socket, const google::protobuf::MessageLite& message);
bool ReceiveMessage(int socket, google::protobuf::MessageLite& message);

bool Receive(int socket, char* bytes, size_t count);

}  // namespace attune::agent
