#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace attune::testing {

// Expects that the file tests/golden/`name`.txt contains `text`: messages, help texts or tables
// that people read. So their words can change without a change of the tests. If ATTUNE_WRITE_GOLDEN
// is set, writes the file first. Read the difference before you commit it.
inline void ExpectGolden(const std::string& name, const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path(ATTUNE_SOURCE_DIR) / "tests" / "golden" / (name + ".txt");
  if (std::getenv("ATTUNE_WRITE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  std::ostringstream expected;
  expected << std::ifstream(path, std::ios::binary).rdbuf();
  EXPECT_EQ(text, expected.str()) << "set ATTUNE_WRITE_GOLDEN=1 to write " << path;
}

}  // namespace attune::testing
