#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace attune::server {

// A client that sends any bytes and waits only when told to.
class RawClient {
 public:
  // receive_bytes: the size of the socket's buffer; 0: the system's choice.
  explicit RawClient(int port, int receive_bytes = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_bytes > 0)
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  }
  RawClient(RawClient&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  RawClient& operator=(RawClient&&) = delete;
  ~RawClient() {
    if (socket_ >= 0) ::close(socket_);
  }

  void Send(std::string_view bytes) {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  // Sends as much as the system takes at once; -1 if the connection is closed.
  ssize_t Push(std::string_view bytes) {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  int descriptor() const { return socket_; }

  void HalfClose() { ::shutdown(socket_, SHUT_WR); }

  // Reads until the text has arrived or the connection has ended.
  std::string ReadUntil(std::string_view end) {
    std::string answer;
    while (answer.find(end) == std::string::npos && ReadSome(answer)) {
    }
    return answer;
  }

  std::string ReadToEnd() {
    std::string answer;
    while (ReadSome(answer)) {
    }
    return answer;
  }

 private:
  static constexpr int kPatienceMs = 10'000;

  bool ReadSome(std::string& to) {
    pollfd wait{socket_, POLLIN, 0};
    if (::poll(&wait, 1, kPatienceMs) <= 0) {
      ADD_FAILURE() << "nothing came for too long, after: " << to;
      return false;
    }
    std::array<char, 4096> buffer;
    const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (count > 0) to.append(buffer.data(), static_cast<size_t>(count));
    return count > 0;
  }

  int socket_;
};

}  // namespace attune::server
