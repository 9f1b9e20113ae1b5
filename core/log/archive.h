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

// Values as bytes, for snapshots. Only a build with the same form of snapshots can read the bytes.
// Snapshots can always be derived again from the log.
//
// A type takes part by a function Fields in its namespace. It names the fields once, for all
// archives: those in this file, and the log's JSON (server/store/json_archive.h).
//
//   template <class A> void Fields(A& archive, Like<A, Report>& report) {
//     archive("step", report.step);
//     archive("metrics", report.metrics);
//     archive.Sparse("waits", report.waits);
//   }
//
// Only JSON keeps the names. JSON omits a Sparse field that equals T{}, but never a plain field.
// Row is the sweep or the trial, which the log stores in columns and not in the payload. Fields
// that occur only in snapshots need no names: archive(report.step, report.metrics).
namespace attune {

// The type of an archive's parameter: const T for writing, T for reading.
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
  // All NaNs become the same bytes, because the log's JSON keeps neither the sign nor the payload
  // of a NaN.
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

// Reads untrusted bytes safely. If the bytes were cut or altered, `ok` becomes false, and the
// values after the fault keep their defaults.
class ArchiveReader {
 public:
  static constexpr bool kReads = true;

  // REQUIRES: the bytes outlive the reader.
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
  void Fail() { ok_ = false; }  // for callers that find a wrong value

 private:
  // Whether at least `count` bytes are left; if not, the reader fails.
  bool HasBytes(size_t count) {
    if (count > bytes_.size()) ok_ = false;
    return ok_;
  }
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void Read(T& value) {
    if (!HasBytes(sizeof(value))) return;
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
    if (!HasBytes(size)) return;
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
    bool has_value = false;
    Read(has_value);
    value.reset();
    if (has_value) Read(value.emplace());
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
    for (size_t left = ReadCount(); ok_ && left > 0; --left) {
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
    for (size_t left = ReadCount(); ok_ && left > 0; --left) Read(deque.emplace_back());
  }
  template <class T, class... Rest>
  void Read(std::set<T, Rest...>& set) {
    set.clear();
    for (size_t left = ReadCount(); ok_ && left > 0; --left) {
      T value{};
      Read(value);
      set.insert(set.end(), std::move(value));
    }
  }
  template <class K, class V, class... Rest>
  void Read(std::map<K, V, Rest...>& map) {
    map.clear();
    for (size_t left = ReadCount(); ok_ && left > 0; --left) {
      K key{};
      Read(key);
      Read(map.emplace_hint(map.end(), std::move(key), V())->second);
    }
  }
  template <class T>
  requires requires(ArchiveReader& archive, T& value) { Fields(archive, value); }
  void Read(T& value) { Fields(*this, value); }

  // The number of elements of a container. Each element takes at least one byte.
  size_t ReadCount() {
    size_t count = 0;
    Read(count);
    if (count > bytes_.size()) ok_ = false;
    return count;
  }

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace attune
