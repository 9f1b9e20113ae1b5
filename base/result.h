#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

// Inline, as is the SDK's namespace: each has an Error, and its own code finds its own.
namespace attune::inline base {

enum class ErrorCode {
  kInvalid,      // the request or the document is wrong; the same again is wrong again
  kNotFound,     // no such sweep, trial, file, name
  kConflict,     // not in this state: already ended, already there, held by another process
  kDenied,       // no token, a wrong one, or no permission
  kUnavailable,  // not now: a peer is away or the server is starting
  kStorageFull,  // nothing can be made durable
  kUnsynced,  // a sync failed: only the next start can say what is on the disk, so end the process
  kCorrupt,   // what was read back is not what was written
  kInternal,  // ours; says what to report
};

std::string_view Name(ErrorCode code);

// An operating error. `message` names the thing, what is wrong with it and what to do.
struct Error {
  ErrorCode code;
  std::string message;

  bool operator==(const Error&) const = default;
};

// An Error of code kInvalid.
inline Error Invalid(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }

// A value or an Error. Asking a Result for what it does not hold is a broken invariant.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(runtime/explicit)
  Result(Error error)
      : held_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(runtime/explicit)

  bool ok() const { return held_.index() == 0; }
  const Error& error() const {
    ATTUNE_CHECK(!ok());
    return std::get<1>(held_);
  }
  T& value() & {
    CheckValue();
    return std::get<0>(held_);
  }
  const T& value() const& {
    CheckValue();
    return std::get<0>(held_);
  }
  T&& value() && {
    CheckValue();
    return std::get<0>(std::move(held_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void CheckValue() const {
    if (!ok()) internal::ValueMissing(error().message.c_str());
  }

  std::variant<T, Error> held_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(runtime/explicit)

  bool ok() const { return !error_.has_value(); }
  const Error& error() const {
    ATTUNE_CHECK(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace attune::inline base
