#include "executor/agent/data_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/executor/harness.h"

namespace attune::agent {
namespace {

TEST(DataFolder, KeepsItsIdentity) {
  const gang::TempDir scratch;
  const std::string identity = FolderIdentity(scratch.path() / "data");
  EXPECT_FALSE(identity.empty());
  EXPECT_EQ(FolderIdentity(scratch.path() / "data"), identity);
  EXPECT_EQ(FolderIdentity(scratch.path() / "other/../data"), identity);
}

TEST(DataFolder, OtherFoldersHaveOtherIdentities) {
  const gang::TempDir scratch;
  const std::string identity = FolderIdentity(scratch.path() / "data");
  EXPECT_NE(FolderIdentity(scratch.path() / "other"), identity);
  std::filesystem::remove_all(scratch.path() / "data");  // with all checkpoints
  EXPECT_NE(FolderIdentity(scratch.path() / "data"), identity);
}

TEST(DataFolder, TheSameFilesAtAnotherPathHaveAnotherIdentity) {
  const gang::TempDir scratch;
  const std::string identity = FolderIdentity(scratch.path() / "data");
  std::filesystem::rename(scratch.path() / "data", scratch.path() / "moved");
  EXPECT_NE(FolderIdentity(scratch.path() / "moved"), identity);
}

TEST(DataFolder, ConcurrentStartsAgreeOnTheIdentity) {
  const gang::TempDir scratch;
  std::vector<std::string> identities(8);
  std::vector<std::thread> threads;
  for (std::string& identity : identities)
    threads.emplace_back([&] { identity = FolderIdentity(scratch.path() / "data"); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(identities.begin(), identities.end()).size(), 1u);
}

TEST(DataFolder, AnUnwritableFolderHasNoIdentity) { EXPECT_EQ(FolderIdentity("/proc/attune"), ""); }

TEST(DataFolder, AnEmptyIdentityFileIsReplaced) {
  const gang::TempDir scratch;
  std::ofstream(scratch.path() / "folder-id").flush();
  const std::string identity = FolderIdentity(scratch.path());
  EXPECT_FALSE(identity.empty());
  EXPECT_EQ(FolderIdentity(scratch.path()), identity);
}
}  // namespace
}  // namespace attune::agent
