#include "trainable/driver/link.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <vector>

#include "attune/error.h"
#include "system/sockets.h"
#include "trainable/checkpoints/files.h"

namespace attune::inline sdk::trainable {
namespace {

// The first byte of a packet: where the message's bytes are.
constexpr char kHere = 'h';
constexpr char kInFile = 'f';  // in the first descriptor

}  // namespace

bool Link::Send(const Message& message) {
  std::string packet(1, kHere);
  std::vector<int> descriptors;
  UniqueFd overflow;
  if (message.bytes.size() < kPacketBytesMax) {
    packet += message.bytes;
  } else {
    packet[0] = kInFile;
    overflow = MemoryFile();
    NewFile("driver", DuplicateOf(overflow)).Append(message.bytes);
    descriptors.push_back(overflow.get());
  }
  if (message.file) descriptors.push_back(message.file.get());
  if (SendPacket(socket_.get(), packet, descriptors, 0)) return true;
  if (errno == EPIPE || errno == ECONNRESET) return false;
  ThrowErrno("driver");
}

std::optional<Message> Link::Receive() {
  std::optional<Packet> packet = ReceivePacket(socket_.get(), 0);
  if (!packet) {
    if (errno == 0 || errno == ECONNRESET) return std::nullopt;
    ThrowErrno("driver");
  }
  if (packet->lacks_descriptors) {
    throw Error("driver: too many open files in this process (see `ulimit -n`)");
  }
  auto& descriptors = packet->descriptors;
  Message message;
  std::size_t next = 0;
  if (packet->bytes[0] == kInFile && !descriptors.empty()) {
    message.bytes = ReadFile(PathOf(descriptors[next++]));
  } else {
    message.bytes = packet->bytes.substr(1);
  }
  if (next < descriptors.size()) message.file = std::move(descriptors[next]);
  return message;
}

UniqueFd MemoryFile() {
  UniqueFd file(memfd_create("attune", MFD_CLOEXEC));
  if (!file) ThrowErrno("memfd_create");
  return file;
}

UniqueFd DuplicateOf(const UniqueFd& fd) {
  UniqueFd duplicate(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!duplicate) ThrowErrno("dup");
  return duplicate;
}

std::string PathOf(const UniqueFd& fd) { return "/proc/self/fd/" + std::to_string(fd.get()); }

}  // namespace attune::inline sdk::trainable
