#include "server/storage/upload_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/brain/brain.h"
#include "server/store/sqlite_store.h"
#include "tests/support/sample_log.h"
#include "tests/support/toy_algorithms.h"

namespace attune::server {
namespace {

constexpr SweepId kSweep{1};
const TrialId kTrial{kSweep, TrialNumber(0)};
const CheckpointId kCheckpoint{kTrial, 1, Step(2)};

// A log with a trial that runs on an executor and has saved a checkpoint.
class UploadKeeperTest : public ::testing::Test {
 protected:
  UploadKeeperTest() {
    SweepSpec spec = testing::ToySpec();
    spec.storage = "s3://bucket";
    Add(ExecutorJoined{.name = "box",
                       .instance = "b0c5",
                       .incarnation = Incarnation(1),
                       .address = "127.0.0.1",
                       .resources = {.cpus = 2},
                       .folder = "id:/data"});
    Add(SweepCreated{.sweep = kSweep, .spec = spec, .source = "{}"});
    Add(TrialCreated{kTrial, {{"x", 0.5}}, "counting"});
    Add(AttemptAssigned{.attempt = {kTrial, 1},
                        .epoch = Epoch(1),
                        .ranks = {{.executor = "box", .local_rank = 0, .cpus = 1}},
                        .milestone = Step(4)});
    Add(CheckpointSaved{{kTrial, 1}, {Step(2), "/data/2", "sha256:02"}, 10});
  }

  ~UploadKeeperTest() override { keeper_.reset(); }

  void Add(Fact fact) {
    const auto seq = store_->LastSeq().value + 1;
    const Event event{EventSeq(seq), Time{kSampleStart + static_cast<int64_t>(seq)},
                      std::move(fact)};
    ASSERT_TRUE(store_->Append(std::vector{event}).ok());
    const std::lock_guard lock(mutex_);
    brain_.Replay(event);
    last_ = event;
  }
  // Adds a fact and tells the keeper.
  void Happen(Fact fact) {
    Add(std::move(fact));
    keeper_->OnDurable(std::vector{*last_}, brain_);
  }
  void Start() {
    keeper_ = std::make_unique<UploadKeeper>(
        UploadKeeper::Options{
            .query =
                [this](const StateReader& look) {
                  const std::lock_guard lock(mutex_);
                  look(brain_);
                },
            .use_of = [this](const std::string&) -> std::optional<Sessions::StorageUse> {
              const std::lock_guard lock(mutex_);
              if (!connected_) return std::nullopt;
              return Sessions::StorageUse{.stores = true};
            },
            .send =
                [this](const std::string& executor, v1::Uploads list) {
                  EXPECT_EQ(executor, "box");
                  const std::lock_guard lock(mutex_);
                  lists_.push_back(std::move(list));
                  changed_.notify_all();
                },
            .variables =
                [this] {
                  const std::lock_guard lock(mutex_);
                  return variables_;
                },
            .check_interval = std::chrono::milliseconds(20)},
        *reader_, stored_);
    keeper_->OnStarted(brain_);
  }
  v1::Uploads NextList() {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, std::chrono::seconds(20), [this] { return !lists_.empty(); });
    EXPECT_TRUE(came) << "no list was sent";
    if (!came) return {};
    v1::Uploads list = std::move(lists_.front());
    lists_.pop_front();
    return list;
  }
  void Set(bool connected, Variables variables = {}) {
    const std::lock_guard lock(mutex_);
    connected_ = connected;
    variables_ = std::move(variables);
  }

  ScratchFolder folder_;
  const std::string database_ = folder_ / "attune.db";
  std::unique_ptr<SqliteStore> store_ = std::move(SqliteStore::Open(database_)).value();
  std::unique_ptr<Reader> reader_ = std::move(Reader::Open(database_)).value();
  StoredSweeps stored_{folder_ / "storage"};
  const Algorithms algorithms_ = testing::ToyAlgorithms();

  std::mutex mutex_;
  std::condition_variable changed_;
  Brain brain_{algorithms_, [](const std::string&) { return false; }};
  std::optional<Event> last_;
  std::deque<v1::Uploads> lists_;
  bool connected_ = true;
  Variables variables_;

  std::unique_ptr<UploadKeeper> keeper_;
};

TEST_F(UploadKeeperTest, SendsTheNewestCheckpointOnceItIsReported) {
  Start();
  Happen(TrialReported{{kTrial, 1}, {.step = Step(2), .metrics = {{"loss", 0.5}}}});
  const v1::Uploads list = NextList();
  ASSERT_EQ(list.uploads_size(), 1);
  EXPECT_EQ(list.uploads(0).path(), "/data/2");
  EXPECT_EQ(list.uploads(0).address(), "s3://bucket");
  EXPECT_EQ(stored_.Find(kSweep, {})->address, "s3://bucket") << "it is noted before";
}

class ReportedCheckpointTest : public UploadKeeperTest {
 protected:
  ReportedCheckpointTest() {
    Add(TrialReported{{kTrial, 1}, {.step = Step(2), .metrics = {{"loss", 0.5}}}});
  }
};

TEST_F(ReportedCheckpointTest, IsSentAfterARestart) {
  Start();
  EXPECT_EQ(NextList().uploads_size(), 1);
}

TEST_F(ReportedCheckpointTest, IsNoLongerListedWhenItIsStored) {
  Start();
  EXPECT_EQ(NextList().uploads_size(), 1);
  Happen(CheckpointStored{kCheckpoint, "sha256:02", "s3://bucket"});
  EXPECT_EQ(NextList().uploads_size(), 0);
}

TEST_F(ReportedCheckpointTest, IsListedAgainWhenTheStoreHasLostIt) {
  Add(CheckpointStored{kCheckpoint, "sha256:02", "s3://bucket"});
  Start();
  Happen(CheckpointStored{kCheckpoint, "sha256:02", ""});
  EXPECT_EQ(NextList().uploads_size(), 1);
}

TEST_F(ReportedCheckpointTest, IsSentWhenTheExecutorConnects) {
  Set(false);
  Start();
  Happen(TrialAnnotated{kTrial, {.note = "nothing changes"}});
  Set(true);
  EXPECT_EQ(NextList().uploads_size(), 1);
}

TEST_F(ReportedCheckpointTest, IsSentAgainWithNewCredentials) {
  Start();
  EXPECT_EQ(NextList().environment_size(), 0);
  Set(true, {{"AWS_ACCESS_KEY_ID", "new"}});
  const v1::Uploads list = NextList();
  ASSERT_EQ(list.environment_size(), 1);
  EXPECT_EQ(list.environment(0).value().text(), "new");
}

TEST_F(ReportedCheckpointTest, IsNotChangedByOtherReports) {
  const State& state = brain_.state();
  const Event saved{EventSeq(99), Time{0}, TrialReported{{kTrial, 1}, {.step = Step(2)}}};
  EXPECT_EQ(SweepWithChangedCopies(saved, state), kSweep);
  const Event report{EventSeq(99), Time{0}, TrialReported{{kTrial, 1}, {.step = Step(1)}}};
  EXPECT_EQ(SweepWithChangedCopies(report, state), std::nullopt) << "neither best nor saved";
}

TEST_F(UploadKeeperTest, EndsWithoutAStart) { UploadKeeper keeper({}, *reader_, stored_); }

}  // namespace
}  // namespace attune::server
