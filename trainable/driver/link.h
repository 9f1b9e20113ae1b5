#pragma once

#include <optional>
#include <string>
#include <utility>

#include "system/unique_fd.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk::trainable {

// What a driver and its workers say to each other.
struct Message {
  std::string bytes;  // of any length
  UniqueFd file;      // goes along: a file in memory, which lives as long as somebody holds it
};

// One end of the way between a driver and one of its workers: a seqpacket socket, for one thread at
// a time.
class Link {
 public:
  explicit Link(UniqueFd socket) : socket_(std::move(socket)) {}

  // Waits while the other end has much to read. False when it is gone; throws attune::Error for
  // what the system refuses.
  bool Send(const Message& message);

  // The next message; empty when the other end is gone. Throws attune::Error.
  std::optional<Message> Receive();

  // Of the socket: readable when a message is there, or the other end is gone.
  int fd() const { return socket_.get(); }

  // The other end sees the end.
  void Close() { socket_.reset(); }

 private:
  UniqueFd socket_;
};

// A file in memory, empty, that ends with the last who holds it.
UniqueFd MemoryFile();

// Another descriptor of the same open file.
UniqueFd DuplicateOf(const UniqueFd& fd);

// A path by which this process opens a descriptor anew.
std::string PathOf(const UniqueFd& fd);

}  // namespace attune::inline sdk::trainable
