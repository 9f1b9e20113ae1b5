#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attune::inline sdk::trainable {

// Bytes of one key, one value, and one whole message of the gang's store.
inline constexpr std::size_t kStoreKeyBytesMax = 4 * 1024;
inline constexpr std::size_t kStoreValueBytesMax = 1024 * 1024;
inline constexpr std::size_t kStoreMessageBytesMax = 16 * 1024 * 1024;

// Bytes that one read from a socket of the store takes at most.
inline constexpr std::size_t kStoreReadBytes = 64 * 1024;

// What the gang's store and those who use it say to each other, over TCP. On the wire: "ATS1", the
// number of bytes that follow (4 bytes), and the fields in their order, a list as its length (4
// bytes) and its items, an item as its length (4 bytes) and its bytes; integers are little-endian.
struct StoreMessage {
  enum class Kind : std::uint8_t {
    // A request, and what its answer holds. All take a key, except where several are said.
    kSet,         // keys, as many values
    kWait,        // keys; answered once each was there
    kGet,         // keys; answered once all are there: values
    kAdd,         // amount, to a decimal number, which was 0 if it was not there: its new amount
    kAppend,      // 1 value, to the one that is there or else to nothing
    kDelete,      // amount: 1 if it was there
    kCheck,       // keys; amount: 1 if all are there
    kCompareSet,  // 2 values, expected and new; set if the former is there, or is empty and nothing
                  // is: the value that is there then, or if nothing is the expected one
    kCount,       // no key; amount: how many keys there are
    // An answer.
    kDone,
    kRefused,  // 1 value: why
  };

  std::uint32_t number = 0;  // of the request, for its answer to be known by
  Kind kind = Kind::kDone;
  std::int64_t amount = 0;
  std::vector<std::string> keys;
  std::vector<std::string> values;
};

// May be longer than kStoreMessageBytesMax, which a reader then refuses.
std::string ToBytes(const StoreMessage& message);

// Cuts a stream into messages.
class StoreMessageReader {
 public:
  void Append(std::string_view bytes);

  // The next message, or nothing when it is not complete yet. Throws attune::Error when what came
  // is none: nothing that follows can be understood then.
  std::optional<StoreMessage> Next();

 private:
  std::string buffer_;
  std::size_t begin_ = 0;  // of the message at hand
};

}  // namespace attune::inline sdk::trainable
