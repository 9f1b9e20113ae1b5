#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace attune::sweepfile {

// Keys and indices from the root of a document to a node of it.
class Place {
 public:
  using Part = std::variant<std::string, size_t>;

  Place Key(std::string_view key) const;
  Place Index(size_t index) const;

  std::string Path() const;     // parameters.lr.max, tags[1]
  std::string Pointer() const;  // /parameters/lr/max, /tags/1

  const std::vector<Part>& parts() const { return parts_; }

 private:
  std::vector<Part> parts_;
};

}  // namespace attune::sweepfile
