#pragma once

#include <optional>
#include <string>
#include <utility>

namespace attune::sim {

// Keeps the first finding in a world: a broken rule.
class Findings {
 public:
  void Report(std::string finding) {
    if (!first_ && !muted_) first_ = std::move(finding);
  }
  void Mute(bool muted) { muted_ = muted; }
  const std::optional<std::string>& first() const { return first_; }

 private:
  std::optional<std::string> first_;
  bool muted_ = false;
};

}  // namespace attune::sim
