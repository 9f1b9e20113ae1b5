#include "system/files.h"

#include "tests/unit/executor/harness.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(WriteWhole, ReplacesWhatWasThereAndLeavesNothingElse) {
  const TempDir dir;
  const fs::path path = dir.path() / "server";
  for (const char* text : {"one", "another"}) {
    ASSERT_FALSE(WriteWhole(path, text));
    EXPECT_EQ(ReadFile(path), text);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 1);
  EXPECT_NE(fs::status(path).permissions() & fs::perms::others_read, fs::perms::none);
}

TEST(WriteWhole, WhatCannotBeReplacedStaysAndIsNamed) {
  const TempDir dir;
  const fs::path path = dir.path() / "server";
  fs::create_directories(path / "inside");
  const auto error = WriteWhole(path, "one");
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("cannot write " + path.string()));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 1);
}

}  // namespace
}  // namespace attune
