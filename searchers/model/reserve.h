#pragma once

#include <cstddef>
#include <vector>

namespace attune::searchers {

// Reserves memory for `size` elements. If the vector must move, reserves an eighth more. Doubling
// would leave up to half of the memory of a long sweep's record unused.
template <class T>
void ReserveWithSlack(std::vector<T>& vector, size_t size) {
  if (size > vector.capacity()) vector.reserve(size + size / 8);
}

}  // namespace attune::searchers
