#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/boxed.h"
#include "core/base/ids.h"

// Values as bytes, for snapshots: what one build of Attune writes, the same form reads. Nothing in
// it is kept for longer than the log it is derived from.
//
// A type takes part by one function, found by its namespace, that names its fields once for every
// archive: these, and the log's JSON (server/store/json_archive.h).
//
//   template <class A> void Fields(A& archive, Like<A, Report>& report) {
//     archive("step", report.step);
//     archive("metrics", report.metrics);
//     archive.Sparse("waits", report.waits);
//   }
//
// Names are kept in JSON only. A plain field is always there. A Sparse field is left out while it
// equals T{}. Row is the sweep or the trial that the row of the log names, not its payload.
// What only snapshots hold needs no names: archive(report.step, report.metrics).
namespace attune {

// T as an archive takes it: const to write, not const to read.
template <class Archive, class T>
using Like = std::conditional_t<Archive::kReads, T, const T>;

class ArchiveWriter {
 public:
  static constexpr bool kReads = false;

  template <class... T>
  void operator()(const T&... values) {
    (Write(values), ...);
  }
  template <class T>
  void operator()(const char*, const T& value) {
    Write(value);
  }
  template <class T>
  void Sparse(const char*, const T& value) {
    Write(value);
  }
  template <class Id>
  void Row(const Id& id) {
    Write(id);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void Write(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  // All NaNs become one: the log's JSON keeps neither the sign nor the payload of a NaN, so values
  // that differ only in these are the same.
  void Write(const double& value) {
    const double written = std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
    bytes_.append(reinterpret_cast<const char*>(&written), sizeof(written));
  }
  void Write(const std::string& text) {
    Write(text.size());
    bytes_ += text;
  }
  template <class Tag, class Rep>
  void Write(const Strong<Tag, Rep>& strong) {
    Write(strong.value);
  }
  template <class T, class U>
  void Write(const std::pair<T, U>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <class T>
  void Write(const std::optional<T>& value) {
    Write(value.has_value());
    if (value) Write(*value);
  }
  template <class T>
  void Write(const Boxed<T>& boxed) {
    Write(*boxed);
  }
  template <class... T>
  void Write(const std::variant<T...>& value) {
    Write(value.index());
    std::visit([this](const auto& held) { this->Write(held); }, value);
  }
  template <class T>
  requires requires(const T& range) { range.begin(), range.size(), typename T::value_type(); }
  void Write(const T& range) {
    Write(range.size());
    for (const auto& element : range) Write(element);
  }
  template <class T>
  requires requires(ArchiveWriter& archive, const T& value) { Fields(archive, value); }
  void Write(const T& value) { Fields(*this, value); }

  std::string bytes_;
};

// Bytes that were cut short or altered make `ok` false and leave the values after the fault as they
// were made; they never lead beyond the bytes.
class ArchiveReader {
 public:
  static constexpr bool kReads = true;

  // The bytes outlive the reader.
  explicit ArchiveReader(std::string_view bytes) : bytes_(bytes) {}

  template <class... T>
  void operator()(T&... values) {
    (Read(values), ...);
  }
  template <class T>
  void operator()(const char*, T& value) {
    Read(value);
  }
  template <class T>
  void Sparse(const char*, T& value) {
    Read(value);
  }
  template <class Id>
  void Row(Id& id) {
    Read(id);
  }
  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && bytes_.empty(); }
  void Fail() { ok_ = false; }  // what was read makes no sense

 private:
  bool Has(size_t count) {
    if (count > bytes_.size()) ok_ = false;
    return ok_;
  }
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void Read(T& value) {
    if (!Has(sizeof(value))) return;
    std::memcpy(&value, bytes_.data(), sizeof(value));
    bytes_.remove_prefix(sizeof(value));
  }
  void Read(bool& value) {
    uint8_t byte = 0;
    Read(byte);
    value = byte != 0;
  }
  void Read(std::string& text) {
    size_t size = 0;
    Read(size);
    if (!Has(size)) return;
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  template <class Tag, class Rep>
  void Read(Strong<Tag, Rep>& strong) {
    Read(strong.value);
  }
  template <class T, class U>
  void Read(std::pair<T, U>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <class T>
  void Read(std::optional<T>& value) {
    bool there = false;
    Read(there);
    value.reset();
    if (there) Read(value.emplace());
  }
  template <class T>
  void Read(Boxed<T>& boxed) {
    Read(*boxed);
  }
  template <class... T>
  void Read(std::variant<T...>& value) {
    size_t index = sizeof...(T);
    Read(index);
    if (index >= sizeof...(T)) return Fail();
    size_t i = 0;
    ((i++ == index ? Read(value.template emplace<T>()) : void()), ...);
  }
  template <class T>
  void Read(std::vector<T>& vector) {
    vector.clear();
    for (size_t left = Count(); ok_ && left > 0; --left) {
      if constexpr (std::is_same_v<T, bool>) {
        bool value = false;
        Read(value);
        vector.push_back(value);
      } else {
        Read(vector.emplace_back());
      }
    }
  }
  template <class T>
  void Read(std::deque<T>& deque) {
    deque.clear();
    for (size_t left = Count(); ok_ && left > 0; --left) Read(deque.emplace_back());
  }
  template <class T, class... Rest>
  void Read(std::set<T, Rest...>& set) {
    set.clear();
    for (size_t left = Count(); ok_ && left > 0; --left) {
      T value{};
      Read(value);
      set.insert(set.end(), std::move(value));
    }
  }
  template <class K, class V, class... Rest>
  void Read(std::map<K, V, Rest...>& map) {
    map.clear();
    for (size_t left = Count(); ok_ && left > 0; --left) {
      K key{};
      Read(key);
      Read(map.emplace_hint(map.end(), std::move(key), V())->second);
    }
  }
  template <class T>
  requires requires(ArchiveReader& archive, T& value) { Fields(archive, value); }
  void Read(T& value) { Fields(*this, value); }

  // Of a container; every element is at least a byte.
  size_t Count() {
    size_t count = 0;
    Read(count);
    if (count > bytes_.size()) ok_ = false;
    return count;
  }

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace attune
