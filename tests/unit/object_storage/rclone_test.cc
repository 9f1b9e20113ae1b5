#include "object_storage/rclone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/scratch_folder.h"

namespace attune::object_storage {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class FindRcloneTest : public ::testing::Test {
 protected:
  // Makes a program `rclone` that runs this line of a shell, and returns its path.
  std::string MakeRclone(const std::string& line) {
    const std::string path = folder_ / "rclone";
    std::ofstream(path) << "#!/bin/sh\n" << line << '\n';
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }

  Error ErrorWith(const Environment& environment) {
    const Result<Rclone> found = FindRclone(environment);
    EXPECT_FALSE(found.ok());
    return found.ok() ? Error{ErrorCode::kInternal, "found"} : found.error();
  }

  const attune::testing::ScratchFolder folder_;
  const Environment in_path_{"PATH=" + folder_.path() + ":/usr/bin:/bin"};
};

TEST_F(FindRcloneTest, LooksInPath) {
  MakeRclone("echo 'rclone v1.60.1-DEV'; echo '- os/version: debian 12'");
  const Result<Rclone> found = FindRclone(in_path_);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->program, folder_ / "rclone");
  EXPECT_EQ(found->version, "1.60.1");
}

TEST_F(FindRcloneTest, PrefersTheVariable) {
  MakeRclone("echo rclone v1.60.0");
  fs::create_directories(folder_ / "other");
  fs::rename(folder_ / "rclone", folder_ / "other/rclone");
  MakeRclone("echo rclone v1.75.2");
  const Result<Rclone> found =
      FindRclone({in_path_.front(), "ATTUNE_RCLONE=" + (folder_ / "other/rclone")});
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->version, "1.60.0");
}

TEST_F(FindRcloneTest, HasRcloneDoesNotRunIt) {
  EXPECT_FALSE(HasRclone({"PATH=" + folder_.path()}));
  EXPECT_FALSE(HasRclone({in_path_.front(), "ATTUNE_RCLONE=" + (folder_ / "missing")}));
  MakeRclone("touch " + (folder_ / "was-run"));
  EXPECT_TRUE(HasRclone(in_path_));
  EXPECT_FALSE(fs::exists(folder_ / "was-run"));
}

TEST_F(FindRcloneTest, SaysHowToInstallAMissingOne) {
  const Error error = ErrorWith({"PATH=" + folder_.path()});
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("pip install 'attune-hpo[storage]'"), HasSubstr("ATTUNE_RCLONE")));
  EXPECT_EQ(ErrorWith({"ATTUNE_RCLONE=" + (folder_ / "nowhere")}).code, ErrorCode::kNotFound);
}

TEST_F(FindRcloneTest, RefusesAnOldOne) {
  for (const std::string version : {"1.59.2", "0.99", "1"}) {
    MakeRclone("echo rclone v" + version);
    const Error error = ErrorWith(in_path_);
    EXPECT_EQ(error.code, ErrorCode::kInvalid);
    EXPECT_THAT(error.message, HasSubstr(version));
  }
  MakeRclone("echo rclone v2.0.0");
  EXPECT_TRUE(FindRclone(in_path_).ok());
}

TEST_F(FindRcloneTest, RefusesAProgramThatDoesNotWork) {
  for (const std::string line : {"echo hello", "echo rclone v1.75.2; exit 3", "kill -9 $$"}) {
    MakeRclone(line);
    EXPECT_EQ(ErrorWith(in_path_).code, ErrorCode::kInvalid) << line;
  }
}

}  // namespace
}  // namespace attune::object_storage
