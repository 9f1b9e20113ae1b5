#include "server/storage/store_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "code/manifest.h"
#include "json/parse.h"
#include "server/storage/archive.h"
#include "server/store/sqlite_store.h"
#include "system/command.h"
#include "system/files.h"
#include "system/sha256.h"
#include "tests/support/sample_log.h"
#include "tests/unit/server/storage/store_environment.h"

namespace attune::server {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr SweepId kSweep{1};
// Trial 0 of the sample log is the best and has this checkpoint.
const CheckpointId kBest{{kSweep, TrialNumber(0)}, 1, Step(3)};
constexpr char kBestDigest[] = "sha256:03";
constexpr char kBestFolder[] = "checkpoints/s1-0000000000000000/0/1-3-03";

// The sample log with a store in a folder. The state is that of an empty log, so all executors
// are unknown.
class StoreJobsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoStore(); !why.empty()) GTEST_SKIP() << why;
    std::vector<Event> events = log_.events();
    for (Event& event : events) {
      auto* created = std::get_if<SweepCreated>(&event.fact);
      if (created == nullptr) continue;
      SweepSpec spec = *created->spec;
      spec.storage = address_;
      if (!code_digest_.empty()) spec.program.code = CodeSpec{.digest = code_digest_};
      created->spec = spec;
    }
    ASSERT_TRUE(store_->Append(events).ok());
  }

  void Append(Fact fact) {
    ASSERT_TRUE(store_->Append(std::vector{log_.Next(std::move(fact))}).ok());
  }

  StoreJobs Jobs() {
    return StoreJobs({.query = [this](const StateReader& look) { look(brain_); },
                      .execute =
                          [this](const Command& command) {
                            executed_.push_back(std::get<RecordStored>(command));
                            return Status();
                          },
                      .server = "server",
                      .database = database_,
                      .scratch = scratch_ / "scratch"},
                     *reader_, code_, stores_, stored_);
  }

  void Put(const std::string& file, const std::string& text = "x") {
    WriteTestFile(scratch_ / ("store/" + file), text);
  }
  bool Has(const std::string& file) const { return fs::exists(scratch_ / ("store/" + file)); }
  std::vector<std::string> Names(const std::string& folder) const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(scratch_ / ("store/" + folder), none))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  void NoteUploads() {
    ASSERT_TRUE(
        stored_.Update(kSweep, {}, [&](StoredSweep& each) { each.address = address_; }).ok());
  }

  ScratchFolder scratch_;
  const std::string address_ = "file://" + (scratch_ / "store");
  const std::string database_ = scratch_ / "attune.db";
  std::string code_digest_;
  SampleLog log_;
  const Algorithms algorithms_;
  const Brain brain_{algorithms_, [](const std::string&) { return false; }};
  std::unique_ptr<SqliteStore> store_ = std::move(SqliteStore::Open(database_)).value();
  std::unique_ptr<Reader> reader_ = std::move(Reader::Open(database_)).value();
  CodeStorage code_{scratch_ / "code", 1'000'000};
  Stores stores_{[] { return Variables(); }, StoreEnvironment(), {}};
  StoredSweeps stored_{scratch_ / "storage"};
  const SweepInStore in_{kSweep, {}, address_};
  std::vector<RecordStored> executed_;
  std::stop_token never_;
};

TEST_F(StoreJobsTest, DeletesCopiesThatAreNotWanted) {
  NoteUploads();
  Append(CheckpointStored{kBest, kBestDigest, address_});
  Put(std::string(kBestFolder) + "/manifest.json");
  Put("checkpoints/s1-0000000000000000/0/1-1-01/manifest.json");
  Put("checkpoints/s2-0000000000000000/0/1-1-01/manifest.json");
  const Status done = Jobs().Clean(in_, true, never_);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_THAT(Names("checkpoints/s1-0000000000000000/0"), ElementsAre("1-3-03"));
  EXPECT_TRUE(Has("checkpoints/s2-0000000000000000/0/1-1-01/manifest.json"));
  EXPECT_THAT(executed_, IsEmpty());
}

TEST_F(StoreJobsTest, ListsOnlyIfThereIsAReason) {
  NoteUploads();
  Put("checkpoints/s1-0000000000000000/0/1-1-01/manifest.json");
  ASSERT_TRUE(Jobs().Clean(in_, false, never_).ok());
  EXPECT_TRUE(Has("checkpoints/s1-0000000000000000/0/1-1-01/manifest.json"));
}

TEST_F(StoreJobsTest, CleansOnceAfterTheEndOfTheSweep) {
  NoteUploads();
  Append(SweepEnded{kSweep, SweepState::kStopped, "stopped on request"});
  Put("checkpoints/s1-0000000000000000/2/1-1-01/manifest.json");
  StoreJobs jobs = Jobs();
  ASSERT_TRUE(jobs.Clean(in_, false, never_).ok());
  EXPECT_THAT(Names("checkpoints/s1-0000000000000000/2"), IsEmpty());
  Put("checkpoints/s1-0000000000000000/2/1-1-01/manifest.json");
  ASSERT_TRUE(jobs.Clean(in_, false, never_).ok());
  EXPECT_THAT(Names("checkpoints/s1-0000000000000000/2"), SizeIs(1));
}

TEST_F(StoreJobsTest, RecordsThatACopyIsGone) {
  NoteUploads();
  Append(CheckpointStored{kBest, kBestDigest, address_});
  ASSERT_TRUE(Jobs().Clean(in_, true, never_).ok());
  ASSERT_THAT(executed_, SizeIs(1));
  EXPECT_EQ(executed_[0].checkpoint, kBest);
  EXPECT_EQ(executed_[0].digest, kBestDigest);
  EXPECT_EQ(executed_[0].address, "");
}

TEST_F(StoreJobsTest, StoresResultsWithoutTheEnvironmentOfTheProgram) {
  StoreJobs jobs = Jobs();
  const Status done = jobs.StoreResults(in_, {}, never_);
  ASSERT_TRUE(done.ok()) << done.error().message;
  const std::string folder = "results/s1-0000000000000000";
  const auto first = Names(folder);
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_THAT(Names(folder + '/' + first[0]), ElementsAre("sweep.json", "trials.jsonl"));
  const std::string text =
      ReadWhole(scratch_ / ("store/" + folder + '/' + first[0] + "/sweep.json")).value();
  EXPECT_EQ(text.find("NCCL_DEBUG"), text.npos);
  const auto json = ParseJson<nlohmann::json>(text);
  EXPECT_EQ(json.at("id"), "s1");
  EXPECT_EQ(json.at("best").at(0).at("trial"), 0);
  EXPECT_EQ(json.at("best").at(0).at("values").at(0), 0.871);
  const std::string trials =
      ReadWhole(scratch_ / ("store/" + folder + '/' + first[0] + "/trials.jsonl")).value();
  EXPECT_EQ(std::ranges::count(trials, '\n'), 4);

  Append(SweepEnded{kSweep, SweepState::kStopped, "stopped on request"});
  ASSERT_TRUE(jobs.StoreResults(in_, {}, never_).ok());
  const auto second = Names(folder);
  ASSERT_THAT(second, SizeIs(1)) << "the earlier version is deleted";
  EXPECT_NE(second, first);
  EXPECT_NE(stored_.Find(kSweep, {})->results_of, "");
}

TEST_F(StoreJobsTest, StoresTheResultsOfAnEndedSweepOnce) {
  Append(SweepEnded{kSweep, SweepState::kStopped, "stopped on request"});
  ASSERT_TRUE(Jobs().StoreResults(in_, {}, never_).ok());
  fs::remove_all(scratch_ / "store");
  ASSERT_TRUE(Jobs().StoreResults(in_, {}, never_).ok());
  EXPECT_FALSE(Has("results"));
}

TEST_F(StoreJobsTest, DeletesAllFilesOfADeletedSweep) {
  NoteUploads();
  Put(std::string(kBestFolder) + "/manifest.json");
  Put("results/s1-0000000000000000/7-aa/sweep.json");
  Put("checkpoints/s2-0000000000000000/0/1-1-01/manifest.json");
  const Status done = Jobs().Delete(in_, never_);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_THAT(Names("checkpoints"), ElementsAre("s2-0000000000000000"));
  EXPECT_THAT(Names("results"), IsEmpty());
  EXPECT_THAT(stored_.All(), IsEmpty());
}

class StoredCodeTest : public StoreJobsTest {
 protected:
  void SetUp() override {
    code::Manifest manifest;
    manifest.files.push_back({.path = "src/train.py", .bytes = 4, .sha256 = Sha256::HexOf("text")});
    const std::string text = code::ToText(manifest);
    code_digest_ = code::DigestOf(text);
    ASSERT_TRUE(code_.AddManifest(code_digest_, 0, text, true).ok());
    ASSERT_TRUE(code_.AddPack(code_digest_, 0, "text").value().complete);
    StoreJobsTest::SetUp();
  }

  const std::string& archive() {
    archive_ = scratch_ / ("store/" + CodePath("server", code_digest_) + "/code.tar.gz");
    return archive_;
  }
  std::string archive_;
};

TEST_F(StoredCodeTest, IsAnArchive) {
  const Status done = Jobs().StoreCode(in_, {}, never_);
  ASSERT_TRUE(done.ok()) << done.error().message;
  const auto listed = SystemCommands().Run({"tar", "-xOf", archive(), "./src/train.py"});
  ASSERT_TRUE(listed.ok());
  EXPECT_EQ(listed->out, "text");
  EXPECT_TRUE(fs::is_empty(scratch_ / "scratch"));
}

TEST_F(StoredCodeTest, StaysWhileAnotherSweepUsesIt) {
  StoreJobs jobs = Jobs();
  ASSERT_TRUE(jobs.StoreCode(in_, {}, never_).ok());
  ASSERT_TRUE(stored_
                  .Update(SweepId(2), {},
                          [&](StoredSweep& each) {
                            each.address = address_;
                            each.code = {code_digest_};
                          })
                  .ok());
  ASSERT_TRUE(jobs.Delete(in_, never_).ok());
  EXPECT_TRUE(fs::exists(archive()));
  ASSERT_TRUE(jobs.Delete({SweepId(2), {}, address_}, never_).ok());
  EXPECT_FALSE(fs::exists(archive()));
}

TEST_F(StoredCodeTest, IsAnErrorIfTheServerHasLostIt) {
  const std::string unknown = "sha256:" + std::string(64, '0');
  EXPECT_EQ(Jobs().StoreCode(in_, {unknown}, never_).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace attune::server
