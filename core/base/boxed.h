#pragma once

#include <memory>
#include <utility>

namespace attune {

// A value on the heap that is copied together with its holder. The holder stores only a pointer, so
// a large and rare member does not enlarge a variant. A Boxed is empty only after a move from it.
template <class T>
class Boxed {
 public:
  Boxed() : Boxed(T()) {}
  Boxed(T value) : value_(std::make_unique<T>(std::move(value))) {}  // NOLINT(runtime/explicit)
  Boxed(const Boxed& other) : value_(other.value_ ? std::make_unique<T>(*other) : nullptr) {}
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(const Boxed& other) { return *this = Boxed(other); }
  Boxed& operator=(Boxed&&) noexcept = default;
  ~Boxed() = default;

  const T& operator*() const { return *value_; }
  T& operator*() { return *value_; }
  const T* operator->() const { return value_.get(); }
  T* operator->() { return value_.get(); }

  bool operator==(const Boxed& other) const { return *value_ == *other; }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace attune
