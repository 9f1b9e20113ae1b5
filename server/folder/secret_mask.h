#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace attune::server {

// Shorter values are not masked, because they may be common words.
inline constexpr size_t kMaskedBytesMin = 8;

// A text may begin or end inside a value. Parts of at least this length are masked there.
inline constexpr size_t kMaskedPartBytesMin = 4;

// Replaces the values of secrets in texts by asterisks, one for each byte. Immutable.
class SecretMask {
 public:
  SecretMask() = default;
  explicit SecretMask(const std::vector<std::string>& values);

  void Apply(std::string& text) const;

  // The length of the longest value that is masked; 0 if there is none.
  size_t longest_bytes() const { return longest_bytes_; }

 private:
  std::vector<std::string> values_;
  size_t longest_bytes_ = 0;
};

}  // namespace attune::server
