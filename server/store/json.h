#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "sweepfile/codec.h"

namespace attune::server {

using sweepfile::Json;

// Compact text. Bytes that are not UTF-8 become U+FFFD.
std::string Dump(const Json& json);

// For code that reads a whole document and catches Json::exception in one place.
template <class T>
T ValueOrThrow(Result<T> result) {
  if (!result.ok()) throw Json::other_error::create(501, result.error().message, nullptr);
  return std::move(result).value();
}

}  // namespace attune::server
