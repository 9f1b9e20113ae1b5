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

// A message between a driver and its workers.
struct Message {
  std::string bytes;  // any number of bytes
  UniqueFd file;      // optional file in memory; it exists while a descriptor of it is open
};

// One end of the seqpacket socket between a driver and one of its workers. Use it from one thread
// at a time.
class MessageSocket {
 public:
  explicit MessageSocket(UniqueFd socket) : socket_(std::move(socket)) {}

  // Blocks while the socket is full. Returns false if the other end is gone. Throws attune::Error
  // if the system refuses.
  bool Send(const Message& message);

  // Waits for the next message. Returns nullopt if the other end is gone. Throws attune::Error.
  std::optional<Message> Receive();

  // The descriptor. It is readable if a message has arrived, or the other end is gone.
  int fd() const { return socket_.get(); }

  // Closes this end; the other end notices that.
  void Close() { socket_.reset(); }

 private:
  UniqueFd socket_;
};

// Creates an empty file in memory. It exists until the last descriptor of it is closed.
UniqueFd MemoryFile();

// Another descriptor of the same open file.
UniqueFd DuplicateOf(const UniqueFd& fd);

// A path with which this process can open a descriptor again.
std::string PathOf(const UniqueFd& fd);

// The task of a worker, in its first message. Functions have the same addresses in every fork of
// the program.
struct Task {
  // Serves the driver until it is gone. An exception fails the gang.
  void (*serve)(Context& context, MessageSocket& driver, const Task& task) = nullptr;
  std::string settings;
  void (*initialization_hook)(const RankInfo&) = nullptr;  // see MainOptions; may be null
  int worker = 0;                                          // index of the worker, from 0
  int workers = 1;                                         // number of workers of the driver
};

// Reading throws attune::Error if this process has no code at an address. The function is then in a
// library that was loaded after attune::Init().
std::string ToBytes(const Task& task);
Task ReadTask(std::string_view bytes);

// Whether this process has code at the address.
bool IsCode(std::uintptr_t address);

template <typename Function>
Function* FunctionAt(std::uintptr_t address) {
  if (!IsCode(address)) {
    throw Error(
        "a worker does not have this function; load its library before "
        "attune::Init()");
  }
  return reinterpret_cast<Function*>(address);
}

template <typename Function>
std::uintptr_t AddressOf(Function* function) {
  return reinterpret_cast<std::uintptr_t>(function);
}

}  // namespace attune::inline sdk::trainable
