#include "server/storage/store_keeper.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/store/sqlite_store.h"
#include "tests/support/sample_log.h"
#include "tests/support/toy_algorithms.h"
#include "tests/unit/server/storage/store_environment.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;
using std::chrono_literals::operator""ms;

constexpr SweepId kSweep{1};

// A log with one sweep, which uses a store in a folder. rclone is found only if `variables_` names
// it.
class StoreKeeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoStore(); !why.empty()) GTEST_SKIP() << why;
    Add(SweepCreated{.sweep = kSweep, .spec = Spec(), .source = "{}"});
  }
  void TearDown() override { keeper_.reset(); }

  SweepSpec Spec() const {
    SweepSpec spec = testing::ToySpec();
    spec.storage = address_;
    return spec;
  }

  void Add(Fact fact) {
    const auto seq = store_->LastSeq().value + 1;
    const Event event{EventSeq(seq), Time{kSampleStart + static_cast<int64_t>(seq)},
                      std::move(fact)};
    const std::lock_guard lock(mutex_);
    ASSERT_TRUE(store_->Append(std::vector{event}).ok());
    brain_.Replay(event);
    if (keeper_) keeper_->OnDurable(std::vector{event}, brain_);
  }
  void Start() {
    keeper_ = std::make_unique<StoreKeeper>(
        jobs_, stores_, stored_,
        StoreKeeper::Delays{.settle = 1ms, .clean = 1ms, .deletion = 1ms, .check = 20ms});
    keeper_->OnStarted(brain_);
  }
  void FindRclone() {
    const std::lock_guard lock(variables_mutex_);
    for (const std::string& variable : StoreEnvironment()) {
      if (variable.starts_with("ATTUNE_RCLONE=") && !variable.ends_with('='))
        variables_ = {{"ATTUNE_RCLONE", variable.substr(variable.find('=') + 1)}};
      if (variable.starts_with("PATH=") && variables_.empty())
        variables_ = {{"PATH", variable.substr(variable.find('=') + 1)}};
    }
  }
  // Polls, because changes of files and of the problem send no event.
  static bool Await(const std::function<bool()>& condition) {
    for (int i = 0; i < 2'000 && !condition(); ++i) std::this_thread::sleep_for(10ms);
    return condition();
  }
  bool HasResults() const {
    const auto stored = stored_.Find(kSweep, {});
    return stored && !stored->results_of.empty();
  }

  ScratchFolder scratch_;
  const std::string address_ = "file://" + (scratch_ / "store");
  const std::string database_ = scratch_ / "attune.db";
  std::mutex variables_mutex_;
  Variables variables_;
  std::mutex mutex_;  // of the brain
  const Algorithms algorithms_ = testing::ToyAlgorithms();
  Brain brain_{algorithms_, [](const std::string&) { return false; }};
  std::unique_ptr<SqliteStore> store_ = std::move(SqliteStore::Open(database_)).value();
  std::unique_ptr<Reader> reader_ = std::move(Reader::Open(database_)).value();
  CodeStorage code_{scratch_ / "code", 1'000'000};
  Stores stores_{[this] {
                   const std::lock_guard lock(variables_mutex_);
                   return variables_;
                 },
                 {"PATH=/nonexistent", "HOME=/nonexistent"},
                 {}};
  StoredSweeps stored_{scratch_ / "storage"};
  StoreJobs jobs_{{.query =
                       [this](const StateReader& look) {
                         const std::lock_guard lock(mutex_);
                         look(brain_);
                       },
                   .execute = [](const Command&) { return Status(); },
                   .server = "server",
                   .database = database_,
                   .scratch = scratch_ / "scratch"},
                  *reader_,
                  code_,
                  stores_,
                  stored_};
  std::unique_ptr<StoreKeeper> keeper_;
};

TEST_F(StoreKeeperTest, StoresTheResultsWhenTheSweepEnds) {
  FindRclone();
  Start();
  Add(SweepEnded{kSweep, SweepState::kStopped, "stopped on request"});
  EXPECT_TRUE(Await([this] { return HasResults(); })) << keeper_->ProblemOf(kSweep);
  EXPECT_EQ(keeper_->ProblemOf(kSweep), "");
}

TEST_F(StoreKeeperTest, RetriesAtOnceWhenTheVariablesHaveChanged) {
  Start();
  Add(SweepEnded{kSweep, SweepState::kStopped, "stopped on request"});
  EXPECT_TRUE(
      Await([this] { return keeper_->ProblemOf(kSweep).find("rclone") != std::string::npos; }));
  FindRclone();
  EXPECT_TRUE(Await([this] { return HasResults(); }));
  EXPECT_TRUE(Await([this] { return keeper_->ProblemOf(kSweep).empty(); }))
      << keeper_->ProblemOf(kSweep);
}

TEST_F(StoreKeeperTest, StoresTheResultsOfAnEarlierProcess) {
  FindRclone();
  Add(SweepEnded{kSweep, SweepState::kStopped, "stopped on request"});
  ASSERT_TRUE(stored_.Update(kSweep, {}, [&](StoredSweep& each) { each.address = address_; }).ok());
  Start();
  EXPECT_TRUE(Await([this] { return HasResults(); })) << keeper_->ProblemOf(kSweep);
}

TEST_F(StoreKeeperTest, DeletesTheFilesOfASweepThatWasDeletedBefore) {
  FindRclone();
  WriteTestFile(scratch_ / "store/results/s1-0000000000000000/7/sweep.json", "{}");
  ASSERT_TRUE(stored_.Update(kSweep, {}, [&](StoredSweep& each) { each.address = address_; }).ok());
  Add(SweepEnded{kSweep, SweepState::kStopped, "stopped on request"});
  Add(SweepDeleted{kSweep});
  Start();
  EXPECT_TRUE(Await([this] { return stored_.All().empty(); })) << keeper_->ProblemOf(kSweep);
  EXPECT_FALSE(fs::exists(scratch_ / "store/results/s1-0000000000000000"));
}

TEST_F(StoreKeeperTest, DeletesTheFilesOfADeletedSweep) {
  FindRclone();
  Start();
  Add(SweepEnded{kSweep, SweepState::kStopped, "stopped on request"});
  EXPECT_TRUE(Await([this] { return HasResults(); })) << keeper_->ProblemOf(kSweep);
  Add(SweepDeleted{kSweep});
  EXPECT_TRUE(Await([this] { return stored_.All().empty(); })) << keeper_->ProblemOf(kSweep);
  EXPECT_FALSE(fs::exists(scratch_ / "store/results/s1-0000000000000000"));
}

}  // namespace
}  // namespace attune::server
