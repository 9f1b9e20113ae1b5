#pragma once

#include <string>
#include <string_view>

#include "server/store/reader.h"

namespace attune::server {

// The media type of curves in binary form.
inline constexpr std::string_view kCurvesType = "application/vnd.attune.curves";

// Writes a page in that form, which docs/reference/rest-api.md describes.
std::string CurvesToBytes(const ThinnedPage& page);

}  // namespace attune::server
