#include "server/store/log_reserve.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "server/store/sqlite_store.h"
#include "tests/support/sample_log.h"

namespace attune::server {
namespace {

std::unique_ptr<SqliteStore> OpenOrDie(const std::string& path) {
  auto store = SqliteStore::Open(path);
  if (!store.ok()) ADD_FAILURE() << store.error().message;
  return std::move(store).value();
}

size_t CountEvents(const SqliteStore& store) {
  size_t count = 0;
  EXPECT_TRUE(store.Read(EventSeq(0), [&](const Event&) { ++count; }).ok());
  return count;
}

TEST(LogReserve, EndsAreStoredOnAFullDisk) {
  const ScratchFolder folder;
  const std::string disk = folder / "disk";
  ASSERT_EQ(::mkdir(disk.c_str(), 0755), 0);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=32m") != 0)
    GTEST_SKIP() << "may not mount a small disk";
  {
    SampleLog log;
    auto store = OpenOrDie(disk + "/attune.db");
    ASSERT_TRUE(store->Append(log.events()).ok());
    size_t stored = log.events().size();
    const auto next = [&] {
      return std::vector<Event>{
          log.Next(TrialRequeued{TrialId(SweepId(1), TrialNumber(3)), std::string(1000, 'x')})};
    };
    std::ofstream(disk + "/ballast") << std::string(40 << 20, 'b');  // fills the disk
    std::vector<Event> batch = next();
    while (store->Append(batch).ok()) {
      ++stored;
      batch = next();
    }
    for (int i = 0; i < 60; ++i) {
      ASSERT_TRUE(store->AppendFromReserve(batch).ok()) << i;
      ++stored;
      batch = next();
    }
    EXPECT_EQ(CountEvents(*store), stored);
    const Status refused = store->Append(batch);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kStorageFull);

    std::filesystem::remove(disk + "/ballast");
    EXPECT_TRUE(store->Probe().ok());
    EXPECT_TRUE(store->Append(batch).ok());
  }
  ASSERT_EQ(::umount(disk.c_str()), 0);
}

TEST(LogReserve, GrowsAgainOnlyAfterItWasUsed) {
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  auto store = OpenOrDie(path);
  SampleLog log;
  ASSERT_TRUE(store->Append(log.events()).ok());
  const auto size = std::filesystem::file_size(path + "-wal");
  EXPECT_GE(size, static_cast<uint64_t>(kReserveBytes));
  for (int i = 0; i < 20; ++i) {
    const std::vector<Event> batch{
        log.Next(TrialRequeued{TrialId(SweepId(1), TrialNumber(3)), std::string(1000, 'x')})};
    ASSERT_TRUE(store->Append(batch).ok());
  }
  EXPECT_GE(std::filesystem::file_size(path + "-wal"), size);
  EXPECT_LT(std::filesystem::file_size(path + "-wal"), size + size / 4);
}

TEST(LogReserve, IsIndexedBeforeTheDiskIsFull) {
  constexpr uint64_t kIndexBlock = 32768;  // bytes for some 4,096 pages of the log file
  const ScratchFolder folder;
  const std::string path = folder / "attune.db";
  SampleLog log;
  {
    auto store = OpenOrDie(path);
    ASSERT_TRUE(store->Append(log.events()).ok());
    EXPECT_EQ(std::filesystem::file_size(path + "-shm"), kIndexBlock);
  }
  SqliteStore::Options options;
  options.reserve_bytes = int64_t{9'000} * 4'096;
  auto store = SqliteStore::Open(path, options).value();
  ASSERT_TRUE(store->Append(std::vector<Event>{log.Next(SweepPaused{SweepId(1), ""})}).ok());
  EXPECT_EQ(std::filesystem::file_size(path + "-shm"), 3 * kIndexBlock);
}

}  // namespace
}  // namespace attune::server
