#include "server/store/erasure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/store/erased_events.h"
#include "server/store/offline/check.h"
#include "server/store/offline/export.h"
#include "server/store/offline/offline.h"
#include "server/store/reader.h"
#include "server/store/sqlite_store.h"
#include "server/store/tables/tables.h"
#include "tests/support/sample_log.h"

namespace attune::server {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr SweepId kGone{1};
constexpr SweepId kOther{2};

class Erasing : public ::testing::Test {
 protected:
  Erasing() {
    Open();
    Append(log_.events());
    Append(SweepCreated{.sweep = kOther, .spec = SampleSpec(), .idempotency_key = "key-2"});
    Append(TrialCreated{{kOther, TrialNumber(0)}, SampleConfig(0.1), "random"});
    Append(MetricsLogged{{{kGone, TrialNumber(3)}, 1}, 1, 0.5, {{"batch_loss", 1}}});
  }

  // Restarts like a killed process. Every slice is as small as possible.
  void Open() {
    store_.reset();
    store_ = SqliteStore::Open(path_, {.slice = std::chrono::microseconds(0)}).value();
  }

  void Append(const std::vector<Event>& events) {
    ASSERT_TRUE(store_->Append(events).ok());
    std::ranges::copy(events, std::back_inserter(appended_));
  }
  void Append(Fact fact) { Append(std::vector{log_.Next(std::move(fact))}); }

  void Delete() {
    Append(SweepEnded{kGone, SweepState::kStopped, ""});
    Append(SweepDeleted{kGone, SharedState{}});
  }
  void SaveSnapshot() {
    ASSERT_TRUE(store_->SaveSnapshot({store_->LastSeq(), "a snapshot", {}}).ok());
  }
  void EraseAll() {
    SaveSnapshot();
    while (store_->DoBackgroundWork()) continue;
  }

  std::vector<EventSeq> Read() const {
    std::vector<EventSeq> seqs;
    const Status read =
        store_->Read(EventSeq(0), [&](const Event& event) { seqs.push_back(event.seq); });
    EXPECT_TRUE(read.ok()) << read.error().message;
    return seqs;
  }
  // The log that must remain once the sweep is erased.
  std::vector<EventSeq> Remaining() const {
    std::vector<EventSeq> seqs;
    for (const Event& event : appended_) {
      if (SweepOf(event.fact) != kGone || std::holds_alternative<SweepDeleted>(event.fact))
        seqs.push_back(event.seq);
    }
    return seqs;
  }

  int64_t Number(const std::string& sql) const {
    return sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadOnly, 0)
        .value()
        ->Number(sql)
        .value();
  }
  void Execute(const std::string& sql) {
    auto connection =
        sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadWriteCreate, 0).value();
    ASSERT_TRUE(connection->Execute(sql).ok());
  }
  // The rows of the sweep in each table that has a column for it.
  std::map<std::string, int64_t> Rows(SweepId sweep) const {
    std::map<std::string, int64_t> rows;
    for (const SweepTable& table : kSweepTables)
      rows[table.name] = Number("SELECT count(*) FROM " + std::string(table.name) +
                                " WHERE sweep = " + std::to_string(sweep.value));
    return rows;
  }

  std::vector<std::string> Faults() const {
    std::vector<std::string> faults;
    const auto findings = CheckDatabase(path_);
    if (!findings.ok()) return {findings.error().message};
    for (const Finding& finding : *findings) {
      if (finding.fault) faults.push_back(finding.what + ": " + *finding.fault);
    }
    return faults;
  }
  std::vector<std::string> Exported(ExportOptions::What what) const {
    std::vector<std::string> lines;
    const ExportOptions options{.what = what, .format = ExportOptions::Format::kJsonl};
    const Status done =
        Export(path_, options, [&](std::string_view line) { lines.emplace_back(line); });
    EXPECT_TRUE(done.ok()) << done.error().message;
    return lines;
  }
  std::vector<EventSeq> Streamed() const {
    std::vector<EventSeq> seqs;
    const auto reader = Reader::MakeLazy(path_);
    for (EventSeq after{0};;) {
      const auto page = reader->EventsAfter(after, std::nullopt, 3);
      EXPECT_TRUE(page.ok());
      for (const Event& event : page->events) seqs.push_back(event.seq);
      if (page->events.size() < 3) return seqs;
      after = page->seen;
    }
  }

  ScratchFolder folder_;
  const std::string path_ = folder_ / "attune.db";
  SampleLog log_;
  std::vector<Event> appended_;
  std::unique_ptr<SqliteStore> store_;
};

TEST_F(Erasing, ErasesTheScheduleOfTheDeletion) {
  Append(SweepEnded{kGone, SweepState::kStopped, ""});
  Append(SweepDeletionScheduled{kGone, Time{kSampleStart}});
  Open();
  Append(SweepDeleted{.sweep = kGone, .shared = SharedState{}, .requester = "ada"});
  EraseAll();
  EXPECT_EQ(Number("SELECT count(*) FROM events WHERE sweep = 1"), 1);
}

TEST_F(Erasing, LeavesNothingOfTheSweepButItsDeletion) {
  const auto others = Rows(kOther);
  Delete();
  EraseAll();
  EXPECT_EQ(Number("SELECT count(*) FROM events WHERE sweep = 1"), 1);
  EXPECT_EQ(Number("SELECT count(*) FROM erasures"), 0);
  EXPECT_THAT(Rows(kGone), Each(::testing::Pair(::testing::_, 0)));
  EXPECT_EQ(Rows(kOther), others);
  EXPECT_EQ(Read(), Remaining());
  EXPECT_EQ(Streamed(), Remaining());
  EXPECT_EQ(Exported(ExportOptions::What::kEvents).size(), Remaining().size());
  EXPECT_THAT(Faults(), IsEmpty());

  ASSERT_TRUE(store_->Rebuild().ok());
  EXPECT_EQ(Rows(kOther), others);
  Open();
  EXPECT_EQ(Read(), Remaining());
}

TEST_F(Erasing, WaitsForASnapshotThatDoesNotNeedTheEvents) {
  SaveSnapshot();
  const EventSeq before = store_->LastSeq();
  Delete();
  EXPECT_TRUE(store_->NeedsSnapshot());
  EXPECT_FALSE(store_->DoBackgroundWork());
  Open();
  EXPECT_TRUE(store_->NeedsSnapshot()) << "also after a restart";
  EXPECT_FALSE(store_->DoBackgroundWork());
  EXPECT_EQ(Read().size(), appended_.size());
  EXPECT_EQ((*store_->ReadSnapshot(before))->seq, before);

  SaveSnapshot();
  EXPECT_FALSE(store_->NeedsSnapshot());
  EXPECT_EQ(Read(), Remaining()) << "the events count as erased at once";
  EXPECT_FALSE(*store_->ReadSnapshot(before)) << "older snapshots have the sweep";
  EXPECT_EQ((*store_->ReadSnapshot(store_->LastSeq()))->seq, store_->LastSeq());
  EXPECT_TRUE(store_->DoBackgroundWork());
}

TEST_F(Erasing, IsInvisibleAndContinuesAfterADeathInAnySlice) {
  Delete();
  SaveSnapshot();
  const auto reader = Reader::MakeLazy(path_);
  int slices = 0;
  for (bool more = true; more; ++slices) {
    EXPECT_EQ(Read(), Remaining());
    EXPECT_EQ(Streamed(), Remaining());
    EXPECT_EQ(Exported(ExportOptions::What::kEvents).size(), Remaining().size());
    EXPECT_THAT(Exported(ExportOptions::What::kTrials), ::testing::SizeIs(1));
    EXPECT_THAT(Exported(ExportOptions::What::kReports), IsEmpty());
    EXPECT_THAT(Faults(), IsEmpty());
    const TrialId trial{kGone, TrialNumber(0)};
    EXPECT_EQ(reader->Trial(trial).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(reader->Attempt({trial, 1}).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(reader->CountStates()->trials, (std::map<std::string, int64_t>{{"pending", 1}}));
    Open();
    more = store_->DoBackgroundWork();
    if (slices % 4 == 3) {
      ASSERT_TRUE(store_->Rebuild().ok());
    }
  }
  EXPECT_GT(slices, 5);
  EXPECT_EQ(Number("SELECT count(*) FROM events WHERE sweep = 1"), 1);
}

TEST_F(Erasing, AnyOtherGapIsAFault) {
  Delete();
  EraseAll();
  const EventSeq lost = appended_.at(appended_.size() - 4).seq;  // the trial of the other sweep
  Execute("DELETE FROM events WHERE seq = " + std::to_string(lost.value));
  const Status read = store_->Read(EventSeq(0), [](const Event&) {});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(read.error().message, HasSubstr("event " + std::to_string(lost.value)));
  EXPECT_EQ(Reader::MakeLazy(path_)->EventsAfter(EventSeq(0), std::nullopt, 1'000).error().code,
            ErrorCode::kCorrupt);
  EXPECT_EQ(
      Export(path_, {.what = ExportOptions::What::kEvents}, [](std::string_view) {}).error().code,
      ErrorCode::kCorrupt);
  EXPECT_THAT(Faults(), ::testing::Contains(HasSubstr("erased")));
}

// The range of a row of `erased` begins and ends at its edges.
TEST_F(Erasing, KnowsTheEdgesOfARange) {
  std::vector<Event> reports;
  for (int64_t step = 1; appended_.size() + reports.size() < 2 * kErasedRange + 1; ++step)
    reports.push_back(log_.Next(TrialReported{
        {{kGone, TrialNumber(3)}, 1}, {Step(step), {{"accuracy", 0.5}}, Seconds(1), false}}));
  Append(reports);
  Append(TrialCreated{{kOther, TrialNumber(1)}, SampleConfig(0.2), "random"});
  Delete();
  EraseAll();
  EXPECT_EQ(Read(), Remaining());
  EXPECT_EQ(Number("SELECT count(*) FROM erased"), 3);
  EXPECT_EQ(Number("SELECT count(*) FROM erased WHERE first % 4096 <> 1 OR last % 4096 <> 0"), 0);
}

// A rebuild indexes measured values in parts of the log whose ends may be erased.
TEST_F(Erasing, KeepsReportsNextToErasedEventsAfterARebuild) {
  const auto report = [&](SweepId sweep, int64_t step) {
    return log_.Next(TrialReported{{{sweep, TrialNumber(0)}, 1},
                                   {Step(step), {{"accuracy", 0.5}}, Seconds(1), false}});
  };
  std::vector<Event> reports;
  for (int64_t step = 10; step < 10 + int64_t{3 * kCurveIndexEvery}; ++step)
    reports.push_back(report(step % 16'000 == 11 ? kOther : kGone, step));
  Append(reports);
  Delete();
  EraseAll();
  const int64_t before = Number("SELECT count(*) FROM reports WHERE sweep = 2");
  EXPECT_EQ(before, 4);
  ASSERT_TRUE(store_->Rebuild().ok());
  EXPECT_EQ(Number("SELECT count(*) FROM reports WHERE sweep = 2"), before);
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(Erasing, IsFinishedByVacuumWhichFreesTheSpace) {
  std::vector<Event> reports;
  for (int64_t step = 1; step <= 20'000; ++step) {
    reports.push_back(log_.Next(TrialReported{
        {{kGone, TrialNumber(3)}, 1}, {Step(step), {{"accuracy", 0.5}}, Seconds(1), false}}));
    if (step % 2 == 0)  // adds events of another sweep between them
      reports.push_back(log_.Next(ProposalBegun{kOther, ProposalNumber(0)}));
  }
  Append(reports);
  store_.reset();
  const int64_t of_sweep = Number(
      "SELECT sum(length(payload) + length(kind)) FROM events"
      " WHERE sweep = 1");
  ASSERT_TRUE(Vacuum(path_).ok());
  const auto before = static_cast<int64_t>(std::filesystem::file_size(path_));
  Open();
  Delete();
  store_.reset();
  ASSERT_TRUE(Vacuum(path_).ok());
  const auto after = static_cast<int64_t>(std::filesystem::file_size(path_));
  EXPECT_GT(before - after, of_sweep * 95 / 100);
  EXPECT_EQ(Number("SELECT count(*) FROM events WHERE sweep = 1"), 1);
  EXPECT_THAT(Faults(), IsEmpty());
  Open();
  EXPECT_EQ(Read(), Remaining());
  EXPECT_FALSE(store_->NeedsSnapshot());
}

TEST_F(Erasing, LeavesNoBytesOfAValueInTheFile) {
  SweepSpec spec = SampleSpec();
  spec.program.environment = {{"API_KEY", "a-value-that-nobody-may-find"}};
  Append(SweepCreated{.sweep = SweepId(3), .spec = spec});
  Append(SweepEnded{SweepId(3), SweepState::kStopped, ""});
  Append(SweepAnnotated{SweepId(3), {.note = "a-value-that-nobody-may-find"}});
  ASSERT_TRUE(
      store_->SaveSnapshot({store_->LastSeq(), "with a-value-that-nobody-may-find", {}}).ok());
  Append(SweepDeleted{SweepId(3), SharedState{}});
  EraseAll();
  store_.reset();
  std::ifstream file(path_, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(bytes.find("a-value-that-nobody-may-find"), std::string::npos);
}

}  // namespace
}  // namespace attune::server
