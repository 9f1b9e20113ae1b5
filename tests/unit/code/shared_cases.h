#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace attune::code {

using Json = nlohmann::json;

// A file of tests/data. The tests of the Python client use the same files.
inline Json SharedCases(const std::string& file) {
  std::ifstream stream(std::filesystem::path(ATTUNE_SOURCE_DIR) / "tests/data" / file);
  return Json::parse(stream);
}

}  // namespace attune::code
