#pragma once

#include <string>
#include <utility>
#include <variant>

namespace attune::channel {

// Why something could not be done: a sentence that names the thing, what was wrong and, where it
// helps, the remedy.
struct Error {
  std::string message;
};

// A value, or the reason why there is none. This room stands alone, so it has its own.
template <typename T>
class [[nodiscard]] OrError {
 public:
  OrError(T value) : state_(std::move(value)) {}
  OrError(Error error) : state_(std::move(error)) {}

  bool ok() const { return std::holds_alternative<T>(state_); }

  // REQUIRES: ok().
  T& value() { return std::get<T>(state_); }
  const T& value() const { return std::get<T>(state_); }

  // REQUIRES: !ok().
  const std::string& error() const { return std::get<Error>(state_).message; }

 private:
  std::variant<T, Error> state_;
};

}  // namespace attune::channel
