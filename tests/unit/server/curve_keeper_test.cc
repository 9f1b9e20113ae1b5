#include "server/curve_keeper.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "server/store/sqlite_store.h"
#include "server/store/thinned/curve_file.h"
#include "tests/support/sample_log.h"

namespace attune::server {
namespace {

class CurveKeeperTest : public ::testing::Test {
 protected:
  CurveKeeperTest() : store_(SqliteStore::Open(database_).value()) {}

  void Append(const std::vector<Event>& events) {
    ASSERT_TRUE(store_->Append(events).ok());
    if (keeper_) keeper_->OnState(store_->LastSeq(), {});
  }

  void Start() {
    keeper_ = std::make_unique<CurveKeeper>(database_);
    keeper_->OnStarted(brain_);
    keeper_->OnState(store_->LastSeq(), {});
  }

  // Waits until the file contains the whole log. Returns false if that takes too long. It polls,
  // because SQLite shows a commit to other connections through shared memory, which sends no event.
  bool AwaitLast() {
    for (int i = 0; i < 1'000; ++i) {
      const auto file = OpenCurveFile(file_, sqlite::Connection::Mode::kReadOnly);
      const auto followed = file.ok() ? ReadFollowed(**file) : Result<FollowedLog>(file.error());
      if (followed.ok() && followed->built && followed->seq == store_->LastSeq()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  ScratchFolder folder_;
  const std::string database_ = folder_ / "attune.db";
  const std::string file_ = folder_ / "curves.db";
  SampleLog log_;
  const Algorithms algorithms_;
  const Brain brain_{algorithms_, [](const std::string&) { return false; }};
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<CurveKeeper> keeper_;
};

TEST_F(CurveKeeperTest, FollowsTheLog) {
  Start();
  EXPECT_TRUE(AwaitLast());
  Append(log_.events());
  EXPECT_TRUE(AwaitLast());
  Append({log_.Next(SweepResumed{SweepId(1)})});
  EXPECT_TRUE(AwaitLast());
}

TEST_F(CurveKeeperTest, MakesADeletedFileAgain) {
  Start();
  Append(log_.events());
  EXPECT_TRUE(AwaitLast());
  RemoveCurveFile(file_);
  Append({log_.Next(SweepResumed{SweepId(1)})});
  EXPECT_TRUE(AwaitLast());
}

TEST_F(CurveKeeperTest, EndsWithoutAStart) { CurveKeeper keeper(database_); }

}  // namespace
}  // namespace attune::server
