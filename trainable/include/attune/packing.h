#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "attune/config.h"

namespace at {
class Tensor;
}

namespace attune::inline sdk {

// Serialisation of values between a driver and its workers. Both are the same program on the same
// host, so values are copied in their memory layout. Tensors are put into a file in memory whose
// descriptor is passed. LibTorch's own pickles have only one integer type and one real type, do not
// support std::map, and zip their output.
namespace trainable {

struct Message;

// Collects values in order, for an Unpacker that reads them in the same order.
class Packer {
 public:
  Packer();
  ~Packer();
  Packer(Packer&&) noexcept;

  void Put(const void* bytes, std::size_t size);
  // Adds the values of a tensor. Storage sharing and requires_grad are lost.
  void Put(const at::Tensor& tensor);

  // Throws attune::Error for a kind of tensor that cannot be sent.
  Message Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads the values of a Packer.
class Unpacker {
 public:
  enum class Tensors {
    kCopies,
    kViews  // views into the message: read-only, and valid only while the Unpacker exists
  };

  explicit Unpacker(std::shared_ptr<const Message> message, Tensors tensors = Tensors::kCopies);
  ~Unpacker();
  Unpacker(Unpacker&&) noexcept;

  void Take(void* bytes, std::size_t size);
  at::Tensor TakeTensor();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Packs and unpacks a type. A type without a specialisation cannot be sent.
template <typename T>
struct Codec;

template <typename T>
concept Travels = requires(Packer& packer, const T& value) {
  Codec<T>::Pack(packer, value);
};

template <typename T>
void Pack(Packer& packer, const T& value) {
  Codec<T>::Pack(packer, value);
}
template <typename T>
T Unpack(Unpacker& unpacker) {
  return Codec<T>::Unpack(unpacker);
}

template <typename T>
requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) struct Codec<T> {
  static void Pack(Packer& packer, T value) { packer.Put(&value, sizeof value); }
  static T Unpack(Unpacker& unpacker) {
    T value{};
    unpacker.Take(&value, sizeof value);
    return value;
  }
};

template <>
struct Codec<std::string> {
  static void Pack(Packer& packer, const std::string& text);
  static std::string Unpack(Unpacker& unpacker);
};

template <>
struct Codec<at::Tensor> {
  static void Pack(Packer& packer, const at::Tensor& tensor);
  static at::Tensor Unpack(Unpacker& unpacker);
};

template <>
struct Codec<Config> {
  static void Pack(Packer& packer, const Config& config);
  static Config Unpack(Unpacker& unpacker);
};

template <Travels T>
struct Codec<std::vector<T>> {
  static constexpr bool kIsRawMemory = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

  static void Pack(Packer& packer, const std::vector<T>& values) {
    trainable::Pack(packer, values.size());
    if constexpr (kIsRawMemory) {
      packer.Put(values.data(), values.size() * sizeof(T));
    } else {
      for (const T& value : values) trainable::Pack(packer, value);
    }
  }
  static std::vector<T> Unpack(Unpacker& unpacker) {
    const auto size = trainable::Unpack<std::size_t>(unpacker);
    std::vector<T> values;
    if constexpr (kIsRawMemory) {
      values.resize(size);
      unpacker.Take(values.data(), size * sizeof(T));
    } else {
      values.reserve(size);
      for (std::size_t i = 0; i < size; ++i) values.push_back(trainable::Unpack<T>(unpacker));
    }
    return values;
  }
};

// Maps such as std::map and std::unordered_map.
template <typename M>
requires(Travels<typename M::key_type>&& Travels<typename M::mapped_type>) struct Codec<M> {
  static void Pack(Packer& packer, const M& map) {
    trainable::Pack(packer, map.size());
    for (const auto& [key, value] : map) {
      trainable::Pack(packer, key);
      trainable::Pack(packer, value);
    }
  }
  static M Unpack(Unpacker& unpacker) {
    const auto size = trainable::Unpack<std::size_t>(unpacker);
    M map;
    for (std::size_t i = 0; i < size; ++i) {
      auto key = trainable::Unpack<typename M::key_type>(unpacker);
      map.emplace(std::move(key), trainable::Unpack<typename M::mapped_type>(unpacker));
    }
    return map;
  }
};

template <Travels T>
struct Codec<std::optional<T>> {
  static void Pack(Packer& packer, const std::optional<T>& value) {
    trainable::Pack(packer, value.has_value());
    if (value) trainable::Pack(packer, *value);
  }
  static std::optional<T> Unpack(Unpacker& unpacker) {
    if (!trainable::Unpack<bool>(unpacker)) return std::nullopt;
    return trainable::Unpack<T>(unpacker);
  }
};

template <Travels... T>
struct Codec<std::tuple<T...>> {
  static void Pack(Packer& packer, const std::tuple<T...>& values) {
    std::apply([&](const T&... value) { (trainable::Pack(packer, value), ...); }, values);
  }
  static std::tuple<T...> Unpack(Unpacker& unpacker) {
    return std::tuple<T...>{trainable::Unpack<T>(unpacker)...};  // a braced list evaluates in order
  }
};

template <Travels A, Travels B>
struct Codec<std::pair<A, B>> {
  static void Pack(Packer& packer, const std::pair<A, B>& pair) {
    trainable::Pack(packer, pair.first);
    trainable::Pack(packer, pair.second);
  }
  static std::pair<A, B> Unpack(Unpacker& unpacker) {
    return std::pair<A, B>{trainable::Unpack<A>(unpacker), trainable::Unpack<B>(unpacker)};
  }
};

template <Travels... T>
struct Codec<std::variant<T...>> {
  static void Pack(Packer& packer, const std::variant<T...>& value) {
    trainable::Pack(packer, value.index());
    std::visit([&](const auto& held) { trainable::Pack(packer, held); }, value);
  }
  static std::variant<T...> Unpack(Unpacker& unpacker) {
    using Read = std::variant<T...> (*)(Unpacker&);
    return ReadAlternative(unpacker, std::index_sequence_for<T...>(), std::type_identity<Read>());
  }

 private:
  template <std::size_t... I, typename Read>
  static std::variant<T...> ReadAlternative(Unpacker& unpacker, std::index_sequence<I...>,
                                            std::type_identity<Read>) {
    static constexpr Read kReads[] = {[](Unpacker& from) {
      return std::variant<T...>(std::in_place_index<I>, trainable::Unpack<T>(from));
    }...};
    return kReads[trainable::Unpack<std::size_t>(unpacker)](unpacker);
  }
};

// The type of an argument in the worker: std::string for texts, otherwise the type without
// reference and const.
template <typename A>
using Value =
    std::conditional_t<std::is_convertible_v<A, std::string_view>, std::string, std::decay_t<A>>;

}  // namespace trainable

}  // namespace attune::inline sdk
