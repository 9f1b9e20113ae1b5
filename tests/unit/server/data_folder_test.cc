#include "server/data_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/scratch_folder.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

class DataFolderTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }

  const attune::testing::ScratchFolder folder_;
};

TEST_F(DataFolderTest, AWordWithBlanksIsRefusedAndNamed) {
  Write("token", "two words\n");
  const auto opened = DataFolder::Open(folder_.path());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(opened.error().message, HasSubstr(folder_ / "token"));
}

TEST_F(DataFolderTest, ATokenThatCannotBeReadIsNotReplaced) {
  std::filesystem::create_directory(folder_ / "token");
  const auto opened = DataFolder::Open(folder_.path());
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message, HasSubstr("cannot read"));
}

}  // namespace
}  // namespace attune::server
