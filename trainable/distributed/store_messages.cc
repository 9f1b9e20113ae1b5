#include "trainable/distributed/store_messages.h"

#include <utility>

#include "attune/error.h"

namespace attune::inline sdk::trainable {
namespace {

constexpr std::string_view kMagic = "ATS1";
constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kItemsMax =
    64 * 1024;  // an item needs more bytes in memory than in a message
constexpr std::size_t kHeaderBytes = kMagic.size() + kLengthBytes;

template <typename Unsigned>
void AppendInteger(std::string& bytes, Unsigned value) {
  for (std::size_t i = 0; i < sizeof(value); ++i) {
    bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
}

void AppendList(std::string& bytes, const std::vector<std::string>& items) {
  AppendInteger(bytes, static_cast<std::uint32_t>(items.size()));
  for (const std::string& item : items) {
    AppendInteger(bytes, static_cast<std::uint32_t>(item.size()));
    bytes += item;
  }
}

// Takes fields off the front of a message.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : bytes_(bytes) {}

  std::string_view Bytes(std::size_t count) {
    if (count > bytes_.size()) throw Error("the gang's store: a message ends too early");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

  template <typename Unsigned>
  Unsigned Integer() {
    Unsigned value = 0;
    int shift = 0;
    for (const char byte : Bytes(sizeof(value))) {
      value |= static_cast<Unsigned>(static_cast<unsigned char>(byte)) << shift;
      shift += 8;
    }
    return value;
  }

  std::vector<std::string> List() {
    std::vector<std::string> items;
    for (auto left = Integer<std::uint32_t>(); left > 0; --left) {
      if (items.size() == kItemsMax) {
        throw Error("the gang's store: a list of more than " + std::to_string(kItemsMax) +
                    " items");
      }
      items.emplace_back(Bytes(Integer<std::uint32_t>()));
    }
    return items;
  }

  bool empty() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

}  // namespace

std::string ToBytes(const StoreMessage& message) {
  std::string fields;
  AppendInteger(fields, message.number);
  AppendInteger(fields, static_cast<std::uint8_t>(message.kind));
  AppendInteger(fields, static_cast<std::uint64_t>(message.amount));
  AppendList(fields, message.keys);
  AppendList(fields, message.values);
  std::string bytes(kMagic);
  AppendInteger(bytes, static_cast<std::uint32_t>(fields.size()));
  return bytes + fields;
}

void StoreMessageReader::Append(std::string_view bytes) {
  buffer_.erase(0, begin_);
  begin_ = 0;
  buffer_.append(bytes);
}

std::optional<StoreMessage> StoreMessageReader::Next() {
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  if (rest.substr(0, kMagic.size()) != kMagic.substr(0, rest.size())) {
    throw Error("the gang's store: received bytes that are not one of its messages");
  }
  if (rest.size() < kHeaderBytes) return std::nullopt;
  const auto length =
      FieldReader(rest.substr(kMagic.size(), kLengthBytes)).Integer<std::uint32_t>();
  if (length > kStoreMessageBytesMax) {
    throw Error("the gang's store: a message of " + std::to_string(length) + " bytes; at most " +
                std::to_string(kStoreMessageBytesMax) + " are allowed");
  }
  if (rest.size() < kHeaderBytes + length) return std::nullopt;

  FieldReader fields(rest.substr(kHeaderBytes, length));
  StoreMessage message;
  message.number = fields.Integer<std::uint32_t>();
  message.kind = static_cast<StoreMessage::Kind>(fields.Integer<std::uint8_t>());
  message.amount = static_cast<std::int64_t>(fields.Integer<std::uint64_t>());
  message.keys = fields.List();
  message.values = fields.List();
  if (!fields.empty()) throw Error("the gang's store: a message is longer than its fields");
  begin_ += kHeaderBytes + length;
  return message;
}

}  // namespace attune::inline sdk::trainable
