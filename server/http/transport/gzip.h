#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace attune::server {

enum class GzipEffort { kFast, kSmall };

std::string Gzip(std::string_view bytes, GzipEffort effort = GzipEffort::kFast);
std::optional<std::string> Gunzip(std::string_view bytes);  // nullopt: damaged

}  // namespace attune::server
