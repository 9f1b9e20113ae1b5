#pragma once

#include <cstddef>
#include <vector>

namespace attune::searchers {

// Makes the vector fit for so many elements, by an eighth more than these where it has to move: one
// that doubles would leave up to half of what a long sweep's record takes unused.
template <class T>
void ReserveWithSlack(std::vector<T>& vector, size_t size) {
  if (size > vector.capacity()) vector.reserve(size + size / 8);
}

}  // namespace attune::searchers
