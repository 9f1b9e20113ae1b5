#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

// The namespace is inline, so that `attune::Error` is this Error. The SDK has its own in
// attune::sdk.
namespace attune::inline base {

enum class ErrorCode {
  kInvalid,      // the request or the document is wrong; a retry fails again
  kNotFound,     // no such sweep, trial, file, name
  kConflict,     // the state does not allow it: already ended, exists, held by another process
  kDenied,       // no token, a wrong one, or no permission
  kUnavailable,  // try again later: a peer is away or the server is starting
  kStorageFull,  // nothing can be stored
  kUnsynced,     // a sync failed: only the next start knows what is on the disk, so end the process
  kCorrupt,      // stored data differs from the data that was written
  kInternal,     // a fault of Attune; the message says what to report
};

std::string_view Name(ErrorCode code);

// An error at run time. `message` names the thing, what is wrong with it and what to do.
struct Error {
  ErrorCode code;
  std::string message;

  bool operator==(const Error&) const = default;
};

// An Error of code kInvalid.
inline Error Invalid(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }

// A value or an Error. Reading the wrong one aborts the program.
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
