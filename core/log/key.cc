#include "core/log/key.h"

namespace attune {

void CompleteNumber(Key& key, KeyType type, double max, std::optional<Value> initial) {
  if (key.type == KeyType::kText) key.type = type;
  if (!key.min) key.min = 0;
  if (!key.max) key.max = max;
  const auto* integer = std::get_if<int64_t>(&*initial);
  const double number =
      integer != nullptr ? static_cast<double>(*integer) : std::get<double>(*initial);
  // A number below the smallest one means that the key is not given.
  if (!key.required && number >= *key.min) key.fallback = std::move(initial);
}

}  // namespace attune
