#pragma once

#include <optional>
#include <string>
#include <utility>

namespace attune::sim {

// What is wrong with a world: the first thing that a checker found.
class Findings {
 public:
  void Report(std::string what) {
    if (!first_ && !muted_) first_ = std::move(what);
  }
  void Mute(bool muted) { muted_ = muted; }
  const std::optional<std::string>& first() const { return first_; }

 private:
  std::optional<std::string> first_;
  bool muted_ = false;
};

}  // namespace attune::sim
