#include "core/log/joining.h"

#include <algorithm>
#include <string>

#include "base/result.h"
#include "core/log/labels.h"

namespace attune {
namespace {

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

Status CheckName(const std::string& name) {
  if (name.empty()) return Invalid("an executor must have a name; start it with --name NAME");
  const bool is_word =
      name[0] != '.' && name.find('/') == name.npos && std::ranges::none_of(name, IsControl);
  if (name.size() <= kExecutorNameBytesMax && is_word) return {};
  return Invalid("--name: an executor's name has at most " + std::to_string(kExecutorNameBytesMax) +
                 " bytes, does not begin with a dot, and has neither / nor control characters");
}

// Checks that 0 <= amount <= most; `what` names the resource.
Status CheckAmount(const char* what, int64_t amount, int64_t most) {
  if (amount >= 0 && amount <= most) return {};
  return Invalid(std::string("an executor has 0 to ") + std::to_string(most) + " " + what);
}

}  // namespace

Status CheckJoin(const JoinExecutor& join) {
  if (Status name = CheckName(join.name); !name.ok()) return name;
  if (join.instance.empty()) return Invalid("the executor sent no instance");
  for (const std::string& text : {join.instance, join.address, join.folder}) {
    if (text.size() > kExecutorTextBytesMax)
      return Invalid("the instance, address or folder of an executor is longer than " +
                     std::to_string(kExecutorTextBytesMax) + " bytes");
  }
  const Resources& has = join.resources;
  if (Status cpus = CheckAmount("CPUs", has.cpus, kExecutorCpusMax); !cpus.ok()) return cpus;
  if (Status gpus = CheckAmount("GPUs", has.gpus, kExecutorGpusMax); !gpus.ok()) return gpus;
  if (Status memory = CheckAmount("bytes of memory", has.memory_bytes, kExecutorMemoryMax);
      !memory.ok())
    return memory;
  if (const Status labels = CheckLabels(join.labels); !labels.ok())
    return Invalid("--label: " + labels.error().message);
  return {};
}

}  // namespace attune
