#include "sweepfile/place.h"

namespace attune::sweepfile {

Place Place::Key(std::string_view key) const {
  Place place = *this;
  place.parts_.emplace_back(std::string(key));
  return place;
}

Place Place::Index(size_t index) const {
  Place place = *this;
  place.parts_.emplace_back(index);
  return place;
}

std::string Place::Path() const {
  std::string path;
  for (const Part& part : parts_) {
    if (const auto* index = std::get_if<size_t>(&part)) {
      path += "[" + std::to_string(*index) + "]";
    } else {
      if (!path.empty()) path += ".";
      path += std::get<std::string>(part);
    }
  }
  return path;
}

std::string Place::Pointer() const {
  std::string pointer;
  for (const Part& part : parts_) {
    pointer += "/";
    if (const auto* index = std::get_if<size_t>(&part)) {
      pointer += std::to_string(*index);
      continue;
    }
    for (const char c : std::get<std::string>(part)) {
      if (c == '~') {
        pointer += "~0";
      } else if (c == '/') {
        pointer += "~1";
      } else {
        pointer += c;
      }
    }
  }
  return pointer;
}

}  // namespace attune::sweepfile
