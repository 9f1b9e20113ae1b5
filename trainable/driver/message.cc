#include "trainable/driver/message.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "system/sockets.h"
#include "trainable/checkpoints/files.h"

namespace attune::inline sdk::trainable {
namespace {

// The first byte of a packet says where the bytes of the message are.
constexpr char kInPacket = 'h';
constexpr char kInFile = 'f';  // in the file of the first descriptor

// The start of a task's message.
struct TaskHeader {
  std::uintptr_t serve = 0;
  std::uintptr_t initialization_hook = 0;
  int worker = 0;
  int workers = 0;
};

}  // namespace

bool MessageSocket::Send(const Message& message) {
  std::string packet(1, kInPacket);
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

std::optional<Message> MessageSocket::Receive() {
  std::optional<Packet> packet = ReceivePacket(socket_.get(), 0);
  if (!packet) {
    if (errno == 0 || errno == ECONNRESET) return std::nullopt;
    ThrowErrno("driver");
  }
  if (packet->lacks_descriptors) {
    throw Error("driver: too many open files in this process; raise the limit with `ulimit -n`");
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

std::string ToBytes(const Task& task) {
  const TaskHeader header{AddressOf(task.serve), AddressOf(task.initialization_hook), task.worker,
                          task.workers};
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + task.settings;
}

Task ReadTask(std::string_view bytes) {
  TaskHeader header;
  if (bytes.size() < sizeof header) throw Error("driver: a malformed task");
  std::memcpy(&header, bytes.data(), sizeof header);
  Task task{.settings = std::string(bytes.substr(sizeof header)),
            .worker = header.worker,
            .workers = header.workers};
  task.serve = FunctionAt<void(Context&, MessageSocket&, const Task&)>(header.serve);
  if (header.initialization_hook != 0) {
    task.initialization_hook = FunctionAt<void(const RankInfo&)>(header.initialization_hook);
  }
  return task;
}

bool IsCode(std::uintptr_t address) {
  return dl_iterate_phdr(
             [](dl_phdr_info* object, std::size_t, void* address_pointer) {
               const auto wanted_address = *static_cast<std::uintptr_t*>(address_pointer);
               for (int i = 0; i < object->dlpi_phnum; ++i) {
                 const auto& segment = object->dlpi_phdr[i];
                 if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
                 const auto begin = object->dlpi_addr + segment.p_vaddr;
                 if (wanted_address >= begin && wanted_address - begin < segment.p_memsz) return 1;
               }
               return 0;
             },
             &address) == 1;
}

}  // namespace attune::inline sdk::trainable
