#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "attune/context.h"
#include "attune/error.h"
#include "attune/main.h"
#include "system/unique_fd.h"
#include "trainable/base/sockets.h"

namespace attune::inline sdk::trainable {

// What a driver and its workers send to each other.
struct Message {
  std::string bytes;  // of any length
  UniqueFd file;      // goes along: a file in memory, which lives as long as somebody holds it
};

// One end of the seqpacket socket between a driver and one of its workers. For one thread at a
// time.
class MessageSocket {
 public:
  explicit MessageSocket(UniqueFd socket) : socket_(std::move(socket)) {}

  // Waits while the other end has much to read. False when it is gone. Throws attune::Error if the
  // system refuses.
  bool Send(const Message& message);

  // The next message; empty when the other end is gone. Throws attune::Error.
  std::optional<Message> Receive();

  // The descriptor, which is readable when a message is there, or the other end is gone.
  int fd() const { return socket_.get(); }

  // The other end sees the end.
  void Close() { socket_.reset(); }

 private:
  UniqueFd socket_;
};

// An empty file in memory that ends with the last process that holds it.
UniqueFd MemoryFile();

// Another descriptor of the same open file.
UniqueFd DuplicateOf(const UniqueFd& fd);

// A path by which this process opens a descriptor anew.
std::string PathOf(const UniqueFd& fd);

// What a worker is to run, in its first message: functions of this program, which have the same
// addresses in every fork.
struct Task {
  // Serves the driver until it is gone. An exception out of it fails the gang.
  void (*serve)(Context& context, MessageSocket& driver, const Task& task) = nullptr;
  std::string settings;
  void (*initialization_hook)(const RankInfo&) = nullptr;  // as MainOptions'; may be null
  int worker = 0;                                          // from 0
  int workers = 1;                                         // of the driver's
};

// Reading throws attune::Error if this process has no code at an address: the function is one of a
// library that was loaded after attune::Init().
std::string ToBytes(const Task& task);
Task ReadTask(std::string_view bytes);

// Whether this process has code at the address.
bool IsCode(std::uintptr_t address);

template <typename Function>
Function* FunctionAt(std::uintptr_t address) {
  if (!IsCode(address)) {
    throw Error(
        "a worker has no such function: it is of a library that was loaded after "
        "attune::Init()");
  }
  return reinterpret_cast<Function*>(address);
}

template <typename Function>
std::uintptr_t AddressOf(Function* function) {
  return reinterpret_cast<std::uintptr_t>(function);
}

}  // namespace attune::inline sdk::trainable
