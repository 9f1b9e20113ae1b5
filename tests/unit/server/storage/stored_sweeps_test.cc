#include "server/storage/stored_sweeps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/scratch_folder.h"

namespace attune::server {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr LogIdentity kIdentity{0xabc};

class StoredSweepsTest : public ::testing::Test {
 protected:
  Status Add(StoredSweeps& stored, uint64_t sweep) {
    return stored.Update(SweepId(sweep), kIdentity, [](StoredSweep& each) {
      each.address = "s3://bucket";
      each.code.insert("sha256:12");
      each.results_of = "2026-11-21T10:00:00Z";
    });
  }

  attune::testing::ScratchFolder scratch_;
  const std::string folder_ = scratch_ / "storage";
};

TEST_F(StoredSweepsTest, ReadsWhatAnEarlierProcessWrote) {
  StoredSweeps written(folder_);
  ASSERT_TRUE(Add(written, 3).ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/s3-0000000000000abc"));
  const StoredSweeps read(folder_);
  EXPECT_EQ(read.Find(SweepId(3), kIdentity), written.Find(SweepId(3), kIdentity));
  EXPECT_EQ(read.Find(SweepId(3), kIdentity)->address, "s3://bucket");
  EXPECT_EQ(read.Find(SweepId(3), LogIdentity(1)), std::nullopt);
}

TEST_F(StoredSweepsTest, RemovesSweeps) {
  StoredSweeps written(folder_);
  ASSERT_TRUE(Add(written, 3).ok());
  ASSERT_TRUE(Add(written, 4).ok());
  EXPECT_TRUE(written.Remove(SweepId(3), kIdentity).ok());
  EXPECT_TRUE(written.Remove(SweepId(3), kIdentity).ok()) << "it is removed already";
  EXPECT_THAT(StoredSweeps(folder_).All(), SizeIs(1));
}

TEST_F(StoredSweepsTest, KeepsOtherValuesInAnUpdate) {
  StoredSweeps stored(folder_);
  ASSERT_TRUE(Add(stored, 3).ok());
  ASSERT_TRUE(
      stored.Update(SweepId(3), kIdentity, [](StoredSweep& each) { each.code.insert("sha256:34"); })
          .ok());
  EXPECT_THAT(StoredSweeps(folder_).All().front().code, SizeIs(2));
}

TEST_F(StoredSweepsTest, IgnoresOtherAndDamagedFiles) {
  std::filesystem::create_directories(folder_ + "/scratch");
  for (const char* name : {"s1-zz", "s1", "other-0000000000000abc", "s1-0000000000000abc"})
    std::ofstream(folder_ + '/' + name) << "{\"address\": 1}";
  EXPECT_THAT(StoredSweeps(folder_).All(), IsEmpty());
}

TEST_F(StoredSweepsTest, ReportsAFolderThatCannotBeWritten) {
  std::ofstream(folder_.c_str()) << "a file";
  StoredSweeps stored(folder_);
  EXPECT_FALSE(Add(stored, 3).ok());
  EXPECT_THAT(stored.All(), IsEmpty());
}

}  // namespace
}  // namespace attune::server
