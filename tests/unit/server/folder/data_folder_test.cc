#include "server/folder/data_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/result.h"
#include "tests/support/scratch_folder.h"

namespace attune::server {
namespace {

using ::testing::HasSubstr;

class DataFolderTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  std::string Id() { return DataFolder::Open(folder_.path()).value().id(); }

  const attune::testing::ScratchFolder folder_;
};

TEST_F(DataFolderTest, ItsServerStaysTheSameWhenTheTokenChanges) {
  const std::string id = Id();
  Write("token", "another\n");
  EXPECT_EQ(DataFolder::Open(folder_.path()).value().token(), "another");
  EXPECT_EQ(Id(), id);
}

TEST_F(DataFolderTest, ServersWithTheSameTokenHaveDifferentIds) {
  Write("token", "secret\n");
  const attune::testing::ScratchFolder other;
  std::ofstream(other / "token") << "secret\n";
  EXPECT_NE(Id(), DataFolder::Open(other.path()).value().id());
}

TEST_F(DataFolderTest, AFileWithTwoWordsIsRefusedAndNamed) {
  for (const std::string name : {"token", "server-id"}) {
    Write(name, "two words\n");
    const auto opened = DataFolder::Open(folder_.path());
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(opened.error().message, HasSubstr(folder_ / name));
    std::filesystem::remove(folder_ / name);
  }
}

TEST_F(DataFolderTest, ATokenThatCannotBeReadIsNotReplaced) {
  std::filesystem::create_directory(folder_ / "token");
  const auto opened = DataFolder::Open(folder_.path());
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message, HasSubstr("cannot read"));
}

}  // namespace
}  // namespace attune::server
