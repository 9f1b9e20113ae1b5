#include "server/checkpoint_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "server/store/sqlite_store.h"
#include "tests/support/sample_log.h"
#include "tests/support/toy_algorithms.h"
#include "tests/unit/server/storage/store_environment.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const TrialId kTrial{SweepId(1), TrialNumber(0)};
const CheckpointId kCheckpoint{kTrial, 1, Step(2)};

// A checkpoint of an executor that is not connected, with a copy in a store. Each place has a file
// with its name as contents.
class CheckpointSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoStore(); !why.empty()) GTEST_SKIP() << why;
    const std::string folder = "sweeps/s1/trials/0/checkpoints/step-2-attempt-1";
    SweepSpec spec = testing::ToySpec();
    spec.storage = address_;
    Add(ExecutorJoined{.name = "box",
                       .instance = "b0c5",
                       .incarnation = Incarnation(1),
                       .address = "127.0.0.1",
                       .resources = {.cpus = 2},
                       .folder = "an-id:" + (scratch_ / "data")});
    Add(SweepCreated{.sweep = SweepId(1), .spec = spec, .source = "{}"});
    Add(TrialCreated{kTrial, {{"x", 0.5}}, "counting"});
    Add(AttemptAssigned{.attempt = {kTrial, 1},
                        .epoch = Epoch(1),
                        .ranks = {{.executor = "box", .local_rank = 0, .cpus = 1}},
                        .milestone = Step(4)});
    Add(CheckpointSaved{{kTrial, 1}, {Step(2), (scratch_ / "data/") + folder, "sha256:02"}, 10});
    Add(TrialReported{{kTrial, 1}, {.step = Step(2), .metrics = {{"loss", 0.5}}}});
    Add(CheckpointStored{kCheckpoint, "sha256:02", address_});
    WriteTestFile(scratch_ / ("data/" + folder + "/place"), "data folder");
    WriteTestFile(stored_ + "/manifest.json", "{}");
    WriteTestFile(stored_ + "/place", "store");
    ASSERT_TRUE(conductor_.Start().ok());
  }
  void TearDown() override { conductor_.Stop(); }

  void Add(Fact fact) {
    const auto seq = store_->LastSeq().value + 1;
    const Event event{EventSeq(seq), Time{kSampleStart + static_cast<int64_t>(seq)},
                      std::move(fact)};
    ASSERT_TRUE(store_->Append(std::vector{event}).ok());
  }
  // The server sees the executor's data folder.
  void Mount() { WriteTestFile(scratch_ / "data/folder-id", "an-id\n"); }
  std::string Read() {
    const auto piece = source_.Read(kCheckpoint, "place", 0, 100);
    return piece.ok() ? piece->data : piece.error().message;
  }
  std::string RecordedAddress() {
    conductor_.Query([](const Brain&) {});  // after the commands that were submitted before
    return reader_->Checkpoint(kCheckpoint).value().checkpoint.stored;
  }

  ScratchFolder scratch_;
  const std::string address_ = "file://" + (scratch_ / "store");
  const std::string stored_ = scratch_ / "store/checkpoints/s1-0000000000000000/0/1-2-02";
  const std::string database_ = scratch_ / "attune.db";
  const Algorithms algorithms_ = testing::ToyAlgorithms();
  std::unique_ptr<SqliteStore> store_ = std::move(SqliteStore::Open(database_)).value();
  std::unique_ptr<Reader> reader_ = std::move(Reader::Open(database_)).value();
  Conductor conductor_{algorithms_, *store_, [] { return Time{kSampleStart + 1'000}; }};
  ExecutorService executors_{conductor_,
                             {.may_join = [](const std::string&) { return false; },
                              .lease_ttl = std::chrono::milliseconds(60'000)}};
  Stores stores_{[] { return Variables(); }, StoreEnvironment(), {}};
  StoredCopies copies_{stores_};
  CheckpointSource source_{conductor_, executors_, *reader_, nullptr, copies_};
};

TEST_F(CheckpointSourceTest, ReadsTheDataFolderFirst) {
  Mount();
  EXPECT_EQ(Read(), "data folder");
}

TEST_F(CheckpointSourceTest, ReadsTheStoreIfItSeesNoDataFolder) { EXPECT_EQ(Read(), "store"); }

TEST_F(CheckpointSourceTest, ReadsTheStoreIfTheDataFolderHasLostTheFile) {
  Mount();
  fs::remove_all(scratch_ / "data/sweeps");
  EXPECT_EQ(Read(), "store");
}

TEST_F(CheckpointSourceTest, RecordsThatTheCopyIsGone) {
  EXPECT_EQ(RecordedAddress(), address_);
  fs::remove_all(stored_);
  EXPECT_THAT(Read(), HasSubstr(address_));
  EXPECT_EQ(RecordedAddress(), "");
  EXPECT_THAT(Read(), ::testing::Not(HasSubstr(address_)));
}

TEST_F(CheckpointSourceTest, AMissingFileIsNoMissingCopy) {
  const auto piece = source_.Read(kCheckpoint, "other", 0, 100);
  ASSERT_FALSE(piece.ok());
  EXPECT_EQ(piece.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(RecordedAddress(), address_);
}

}  // namespace
}  // namespace attune::server
