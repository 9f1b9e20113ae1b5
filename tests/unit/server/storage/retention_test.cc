#include "server/storage/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kAddress[] = "s3://bucket";

CheckpointId Id(uint32_t trial, int64_t step) {
  return {{SweepId(1), TrialNumber(trial)}, 1, Step(step)};
}

// Checkpoints of each trial and step have the digest of these digits.
std::string Digest(int64_t step) { return "sha256:" + std::to_string(step) + "abc"; }

class Retention : public ::testing::Test {
 protected:
  Retention() { input_.wanted.address = kAddress; }

  void Want(uint32_t trial, int64_t step, bool is_stored, bool best = false) {
    input_.wanted.copies.push_back({.id = Id(trial, step),
                                    .digest = Digest(step),
                                    .executor = "box",
                                    .stored = is_stored ? kAddress : "",
                                    .best = best});
    input_.obtainable.insert(Id(trial, step));
    if (is_stored) AddStored(trial, step);
  }
  // The store and the log have a copy.
  void AddStored(uint32_t trial, int64_t step) {
    input_.recorded.insert({Id(trial, step), Digest(step)});
    input_.recorded_before.insert({Id(trial, step), Digest(step)});
    AddListing({{CopyFolder(Id(trial, step), Digest(step)) + "/manifest.json", 1}}, input_);
  }
  std::vector<std::string> Forgotten() const {
    std::vector<std::string> names;
    for (const RecordedCopy& copy : PlanRetention(input_).to_forget)
      names.push_back(ToString(copy.id));
    return names;
  }
  std::vector<std::string> Deleted() const { return PlanRetention(input_).to_delete; }

  RetentionInput input_;
};

TEST_F(Retention, NamesFoldersLikeStoredPath) {
  EXPECT_EQ(CopyFolder(Id(17, 900), "sha256:4f0c2d9e8a7b6c5d11"), "17/1-900-4f0c2d9e8a7b6c5d");
}

TEST_F(Retention, KeepsWantedCopies) {
  Want(0, 5, true, true);
  Want(1, 3, true);
  EXPECT_THAT(Deleted(), IsEmpty());
  EXPECT_THAT(Forgotten(), IsEmpty());
}

TEST_F(Retention, DeletesCopiesThatAreNotWanted) {
  Want(0, 5, true, true);
  AddStored(0, 4);
  EXPECT_THAT(Deleted(), ElementsAre("0/1-4-4abc"));
  EXPECT_THAT(Forgotten(), ElementsAre("s1/0/1-4"));
}

TEST_F(Retention, DeletesCopiesThatNoEventNames) {
  Want(0, 5, true);
  AddListing({{"0/1-2-2abc/manifest.json", 1}, {"7/1-1-1abc/model.bin", 1}}, input_);
  EXPECT_THAT(Deleted(), ElementsAre("0/1-2-2abc", "7/1-1-1abc"));
  EXPECT_THAT(Forgotten(), IsEmpty());
}

TEST_F(Retention, KeepsASupersededCopyUntilItsSuccessorIsStored) {
  Want(0, 5, false);
  AddStored(0, 4);
  AddStored(1, 4);
  EXPECT_THAT(Deleted(), ElementsAre("1/1-4-4abc"));
  EXPECT_THAT(Forgotten(), ElementsAre("s1/1/1-4"));
}

TEST_F(Retention, KeepsCopiesThatTheLogHasWhileTheirSuccessorsCannotBeObtained) {
  Want(0, 5, false);
  AddStored(0, 4);
  AddListing({{"0/1-2-2abc/manifest.json", 1}}, input_);
  Want(1, 6, false, true);
  AddStored(2, 3);
  input_.obtainable.clear();
  EXPECT_THAT(Deleted(), ElementsAre("0/1-2-2abc"));
  EXPECT_THAT(Forgotten(), IsEmpty());
}

TEST_F(Retention, KeepsEarlierBestCopiesUntilTheBestIsStored) {
  Want(0, 5, false, true);
  AddStored(1, 4);
  EXPECT_THAT(Deleted(), IsEmpty());
  EXPECT_THAT(Forgotten(), IsEmpty());
}

TEST_F(Retention, KeepsAnUploadThatHasBegun) {
  Want(0, 5, false);
  AddListing({{CopyFolder(Id(0, 5), Digest(5)) + "/model.bin", 1}}, input_);
  EXPECT_THAT(Deleted(), IsEmpty());
}

TEST_F(Retention, ForgetsCopiesThatTheStoreHasLost) {
  Want(0, 5, true);
  input_.complete.clear();
  EXPECT_THAT(Forgotten(), ElementsAre("s1/0/1-5"));
  EXPECT_THAT(Deleted(), IsEmpty());
}

TEST_F(Retention, DoesNotMissCopiesThatWereStoredAfterTheListing) {
  Want(0, 5, true);
  input_.complete.clear();
  input_.folders.clear();
  input_.recorded_before.clear();
  EXPECT_THAT(Forgotten(), IsEmpty());
}

TEST_F(Retention, IgnoresOtherFilesOfTheFolder) {
  AddListing({{"note.txt", 1}, {"3/note.txt", 1}}, input_);
  EXPECT_THAT(Deleted(), IsEmpty());
}

}  // namespace
}  // namespace attune::server
