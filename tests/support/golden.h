#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace attune::testing {

// Expects that tests/golden/`name`.txt holds `text`, which is what people read: messages, help
// texts, tables. Words can then change without a change of tests. If ATTUNE_WRITE_GOLDEN is set, it
// writes the file instead; read the difference before you commit it.
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
