#include "server/storage/uploads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kAddress[] = "s3://bucket";

WantedCopy Copy(uint32_t trial, const std::string& executor, bool best = false) {
  return {.id = {{SweepId(1), TrialNumber(trial)}, 1, Step(3)},
          .digest = "sha256:4f0c",
          .path = "/data/" + std::to_string(trial),
          .executor = executor,
          .folder = "of " + executor,
          .best = best};
}

std::map<SweepId, WantedCopies> OneSweep(std::vector<WantedCopy> copies) {
  return {{SweepId(1),
           {.address = kAddress, .identity = LogIdentity(10), .copies = std::move(copies)}}};
}

std::vector<uint32_t> TrialsOf(const v1::Uploads& list) {
  std::vector<uint32_t> trials;
  for (const v1::Upload& upload : list.uploads()) trials.push_back(upload.checkpoint().trial());
  return trials;
}

const std::vector<Uploader> kBoth{{"a", "of a"}, {"b", "of b"}};

TEST(Uploads, GoToTheExecutorThatHasTheCheckpoint) {
  const auto lists = AssignUploads(OneSweep({Copy(0, "a"), Copy(1, "b")}), kBoth, {}, 0);
  ASSERT_EQ(lists.size(), 2u);
  EXPECT_THAT(TrialsOf(lists.at("a")), ElementsAre(0));
  EXPECT_THAT(TrialsOf(lists.at("b")), ElementsAre(1));
}

TEST(Uploads, LeaveOutWhatTheExecutorCannotUpload) {
  const Uploader a{"a", "of a", {"checkpoints/s1-000000000000000a/7/1-3-4f0c"}};
  const auto lists = AssignUploads(OneSweep({Copy(7, "a"), Copy(8, "a")}), {a}, {}, 0);
  EXPECT_THAT(TrialsOf(lists.at("a")), ElementsAre(8));
}

TEST(Uploads, NameTheCheckpointAndItsPlace) {
  const auto lists = AssignUploads(OneSweep({Copy(7, "a")}), kBoth, {{"AWS_REGION", "eu"}}, 1'000);
  const v1::Uploads& list = lists.at("a");
  const v1::Upload& upload = list.uploads(0);
  EXPECT_EQ(upload.checkpoint().sweep(), 1u);
  EXPECT_EQ(upload.checkpoint().attempt(), 1u);
  EXPECT_EQ(upload.checkpoint().step(), 3);
  EXPECT_EQ(upload.path(), "/data/7");
  EXPECT_EQ(upload.digest(), "sha256:4f0c");
  EXPECT_EQ(upload.address(), kAddress);
  EXPECT_EQ(upload.stored(), "checkpoints/s1-000000000000000a/7/1-3-4f0c");
  EXPECT_EQ(list.environment(0).name(), "AWS_REGION");
  EXPECT_EQ(list.environment(0).value().text(), "eu");
  EXPECT_EQ(list.bytes_per_second_max(), 1'000u);
}

TEST(Uploads, GoToAnotherExecutorWithTheSameFolder) {
  const auto lists = AssignUploads(OneSweep({Copy(0, "lost")}), {{"b", "of lost"}}, {}, 0);
  EXPECT_TRUE(lists.contains("b"));
}

TEST(Uploads, WaitForAnExecutor) {
  EXPECT_THAT(AssignUploads(OneSweep({Copy(0, "lost")}), kBoth, {}, 0), IsEmpty());
}

TEST(Uploads, LeaveOutStoredCopies) {
  WantedCopy stored = Copy(0, "a");
  stored.stored = kAddress;
  EXPECT_THAT(AssignUploads(OneSweep({stored}), kBoth, {}, 0), IsEmpty());
}

TEST(Uploads, BestComeFirst) {
  const auto lists = AssignUploads(OneSweep({Copy(0, "a"), Copy(1, "a", true)}), kBoth, {}, 0);
  EXPECT_THAT(TrialsOf(lists.at("a")), ElementsAre(1, 0));
}

TEST(Uploads, AreLimited) {
  std::vector<WantedCopy> copies;
  for (uint32_t trial = 0; trial <= kUploadsMax; ++trial) copies.push_back(Copy(trial, "a"));
  const auto lists = AssignUploads(OneSweep(copies), kBoth, {}, 0);
  EXPECT_EQ(static_cast<size_t>(lists.at("a").uploads_size()), kUploadsMax);
}

}  // namespace
}  // namespace attune::server
