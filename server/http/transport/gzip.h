#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace attune::server {

std::string Gzip(std::string_view bytes);                   // optimised for speed
std::optional<std::string> Gunzip(std::string_view bytes);  // nullopt: damaged

}  // namespace attune::server
