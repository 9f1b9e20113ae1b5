#include "trainable/driver/group_messages.h"

#include <cstring>
#include <utility>

#include "attune/error.h"

namespace attune::inline sdk::trainable {
namespace {

// Appends a value to a message, so that the offsets of the bytes before it stay the same.
template <typename T>
void PutLast(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T TakeLast(std::string& bytes) {
  T value{};
  if (bytes.size() < sizeof value) throw Error("driver: a malformed message");
  std::memcpy(&value, bytes.data() + bytes.size() - sizeof value, sizeof value);
  bytes.resize(bytes.size() - sizeof value);
  return value;
}

}  // namespace

Message ToMessage(std::uintptr_t function, Packer args) {
  Message call = args.Finish();
  PutLast(call.bytes, function);
  return call;
}

std::uintptr_t TakeFunction(Message& call) { return TakeLast<std::uintptr_t>(call.bytes); }

Message ResultMessage(Packer result) {
  Message answer = result.Finish();
  PutLast(answer.bytes, /*error=*/false);
  return answer;
}

Message ErrorMessage(std::string text) {
  Message answer{.bytes = std::move(text), .file = {}};
  PutLast(answer.bytes, /*error=*/true);
  return answer;
}

bool TakeError(Message& answer) { return TakeLast<bool>(answer.bytes); }

}  // namespace attune::inline sdk::trainable
