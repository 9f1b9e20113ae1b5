#include "trainable/driver/task.h"

#include <link.h>

#include <cstring>

#include "attune/error.h"

namespace attune::inline sdk::trainable {
namespace {

struct Addresses {
  std::uintptr_t serve = 0;
  std::uintptr_t initialization_hook = 0;
};

}  // namespace

bool IsCode(std::uintptr_t address) {
  return dl_iterate_phdr(
             [](dl_phdr_info* object, std::size_t, void* wanted) {
               const auto at = *static_cast<std::uintptr_t*>(wanted);
               for (int i = 0; i < object->dlpi_phnum; ++i) {
                 const auto& segment = object->dlpi_phdr[i];
                 if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
                 const auto begin = object->dlpi_addr + segment.p_vaddr;
                 if (at >= begin && at - begin < segment.p_memsz) return 1;
               }
               return 0;
             },
             &address) == 1;
}

std::string ToBytes(const Task& task) {
  const Addresses addresses{AddressOf(task.serve), AddressOf(task.initialization_hook)};
  std::string bytes(reinterpret_cast<const char*>(&addresses), sizeof addresses);
  return bytes + task.settings;
}

Task ReadTask(std::string_view bytes) {
  Addresses addresses;
  if (bytes.size() < sizeof addresses) throw Error("driver: a malformed task");
  std::memcpy(&addresses, bytes.data(), sizeof addresses);
  Task task;
  task.serve = FunctionAt<void(Context&, Link&, const std::string&)>(addresses.serve);
  if (addresses.initialization_hook != 0) {
    task.initialization_hook = FunctionAt<void(const RankInfo&)>(addresses.initialization_hook);
  }
  task.settings = bytes.substr(sizeof addresses);
  return task;
}

}  // namespace attune::inline sdk::trainable
