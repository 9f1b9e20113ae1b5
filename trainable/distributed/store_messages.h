#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attune::inline sdk::trainable {

// Limits in bytes for a key, a value, and a whole message of the gang's store.
inline constexpr std::size_t kStoreKeyBytesMax = 4 * 1024;
inline constexpr std::size_t kStoreValueBytesMax = 1024 * 1024;
inline constexpr std::size_t kStoreMessageBytesMax = 16 * 1024 * 1024;

// Maximum number of bytes in one read from a socket of the store.
inline constexpr std::size_t kStoreReadBytes = 64 * 1024;

// A message between the gang's store and its clients, over TCP. On the wire: "ATS1", the number of
// bytes that follow (4 bytes), and the fields in their order. A list is its length (4 bytes) and
// its items; an item is its length (4 bytes) and its bytes. Integers are little-endian.
struct StoreMessage {
  enum class Kind : std::uint8_t {
    // Requests, with their fields and the answer. Each has one key unless stated otherwise.
    kSet,     // keys, with one value each
    kWait,    // keys; answered after each has existed
    kGet,     // keys; answered when all exist; answer: their values
    kAdd,     // amount to add to a decimal number, initially 0; answer: the new amount
    kAppend,  // 1 value to append to the current value, or to nothing
    kDelete,  // answer: amount 1 if it existed
    kCheck,   // keys; answer: amount 1 if all exist
    // 2 values, expected and new. Sets the new value if the current value equals the expected one,
    // or if there is no value and the expected one is empty. Answer: the value afterwards, or the
    // expected one if there is none.
    kCompareSet,
    kCount,  // no key; answer: amount is the number of keys
    // Answers.
    kDone,
    kRefused,  // 1 value: the reason
  };

  std::uint32_t number = 0;  // identifies the request; its answer has the same number
  Kind kind = Kind::kDone;
  std::int64_t amount = 0;
  std::vector<std::string> keys;
  std::vector<std::string> values;
};

// The result may exceed kStoreMessageBytesMax; a reader then refuses it.
std::string ToBytes(const StoreMessage& message);

// Splits a byte stream into messages.
class StoreMessageReader {
 public:
  void Append(std::string_view bytes);

  // Returns the next message, or nullopt if it is incomplete. Throws attune::Error for an invalid
  // message; the rest of the stream is then unusable.
  std::optional<StoreMessage> Next();

 private:
  std::string buffer_;
  std::size_t begin_ = 0;  // start of the next message in buffer_
};

}  // namespace attune::inline sdk::trainable
