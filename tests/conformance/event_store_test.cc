#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/store/event_codec.h"
#include "server/store/sqlite_store.h"
#include "tests/support/every_fact.h"
#include "tests/support/memory_store.h"
#include "tests/support/sample_log.h"

// Rules for every EventStore. To test another implementation, add it to kStores.
namespace attune::server {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

// A store and its disk.
class Bench {
 public:
  virtual ~Bench() = default;
  virtual EventStore& store() = 0;
  virtual void FillTheDisk() = 0;
  virtual void MakeRoom() = 0;
  virtual void Reopen() {}  // closes and opens a store that survives a restart
};

class InMemory final : public Bench {
 public:
  EventStore& store() override { return store_; }
  void FillTheDisk() override { store_.full = Error{ErrorCode::kStorageFull, "the disk is full"}; }
  void MakeRoom() override { store_.full.reset(); }

 private:
  attune::testing::MemoryStore store_;
};

class OnSqlite final : public Bench {
 public:
  OnSqlite() { Reopen(); }
  EventStore& store() override { return *store_; }
  void FillTheDisk() override { LimitPages(1); }  // SQLite uses the current size if it is larger
  void MakeRoom() override { LimitPages(0); }
  void Reopen() override { LimitPages(0); }

 private:
  void LimitPages(int64_t pages) {
    store_.reset();
    store_ = SqliteStore::Open(folder_ / "attune.db", {.max_pages = pages}).value();
  }

  ScratchFolder folder_;
  std::unique_ptr<SqliteStore> store_;
};

struct Implementation {
  const char* name;
  std::unique_ptr<Bench> (*make)();
};

const Implementation kStores[] = {
    {"Memory", []() -> std::unique_ptr<Bench> { return std::make_unique<InMemory>(); }},
    {"Sqlite", []() -> std::unique_ptr<Bench> { return std::make_unique<OnSqlite>(); }},
};

// Facts have no equality operator, because of NaN. Two events are equal if they are encoded alike.
std::string Written(const Event& event) {
  const EncodedFact fact = Encode(event.fact);
  return std::to_string(event.seq.value) + " " + std::to_string(event.time.us) + " " +
         std::string(fact.kind) + " " + fact.payload;
}

std::vector<std::string> Written(const std::vector<Event>& events) {
  std::vector<std::string> lines;
  for (const Event& event : events) lines.push_back(Written(event));
  return lines;
}

class EventStoreConformance : public ::testing::TestWithParam<Implementation> {
 protected:
  EventStore& store() { return bench_->store(); }

  std::vector<std::string> ReadAfter(uint64_t seq) {
    std::vector<std::string> lines;
    const Status read =
        store().Read(EventSeq(seq), [&](const Event& event) { lines.push_back(Written(event)); });
    EXPECT_TRUE(read.ok()) << read.error().message;
    return lines;
  }

  // A batch that does not fit on a full disk.
  std::vector<Event> Large() {
    return {log_.Next(SearchExhausted{SweepId(1)}),
            log_.Next(TrialRequeued{{SweepId(1), TrialNumber(3)}, std::string(1 << 20, 'x')})};
  }

  EventSeq SnapshotAt(uint64_t at_most) {
    const auto snapshot = store().ReadSnapshot(EventSeq(at_most));
    EXPECT_TRUE(snapshot.ok());
    return snapshot.ok() && *snapshot ? (*snapshot)->seq : EventSeq(0);
  }

  std::unique_ptr<Bench> bench_ = GetParam().make();
  SampleLog log_;
};

TEST_P(EventStoreConformance, ANewStoreIsEmpty) {
  EXPECT_THAT(ReadAfter(0), IsEmpty());
  EXPECT_EQ(SnapshotAt(1'000), EventSeq(0));
  EXPECT_TRUE(store().Probe().ok());
}

TEST_P(EventStoreConformance, ReturnsEventsUnchangedAndInOrder) {
  const auto& events = log_.events();
  const std::span<const Event> all(events);
  ASSERT_TRUE(store().Append(all.first(5)).ok());
  ASSERT_TRUE(store().Append(all.subspan(5)).ok());
  EXPECT_THAT(ReadAfter(0), ElementsAreArray(Written(events)));
}

TEST_P(EventStoreConformance, ReturnsEveryKindOfFactUnchanged) {
  ASSERT_TRUE(store().Append(log_.events()).ok());
  std::vector<Event> others;
  for (Fact& fact : attune::testing::EveryFact()) others.push_back(log_.Next(std::move(fact)));
  const Status appended = store().Append(others);
  ASSERT_TRUE(appended.ok()) << appended.error().message;
  EXPECT_THAT(ReadAfter(log_.events().size()), ElementsAreArray(Written(others)));
}

TEST_P(EventStoreConformance, ReadsFromTheGivenEventOn) {
  ASSERT_TRUE(store().Append(log_.events()).ok());
  const size_t count = log_.events().size();
  EXPECT_EQ(ReadAfter(count - 2).size(), 2u);
  EXPECT_THAT(ReadAfter(count), IsEmpty());
  EXPECT_THAT(ReadAfter(count + 100), IsEmpty());
}

TEST_P(EventStoreConformance, KeepsEventsAcrossAReopening) {
  ASSERT_TRUE(store().Append(log_.events()).ok());
  ASSERT_TRUE(store().SaveSnapshot({log_.events().back().seq, "state", {}}).ok());
  bench_->Reopen();
  EXPECT_THAT(ReadAfter(0), ElementsAreArray(Written(log_.events())));
  EXPECT_EQ(SnapshotAt(1'000), log_.events().back().seq);
  const Event next = log_.Next(SearchExhausted{SweepId(1)});
  EXPECT_TRUE(store().Append({&next, 1}).ok());
}

TEST_P(EventStoreConformance, AcceptsAnEmptyBatch) {
  EXPECT_TRUE(store().Append({}).ok());
  EXPECT_THAT(ReadAfter(0), IsEmpty());
}

class EventStoreDeathTest : public EventStoreConformance {};

TEST_P(EventStoreDeathTest, AbortsOnAGap) {
  const std::span<const Event> all(log_.events());
  EXPECT_DEATH(static_cast<void>(store().Append(all.subspan(1))), "internal error");
}

TEST_P(EventStoreConformance, AppendsAllOrNothingOnAFullDisk) {
  ASSERT_TRUE(store().Append(log_.events()).ok());
  bench_->FillTheDisk();
  const std::vector<Event> batch = Large();
  for (int time = 0; time < 2; ++time) {
    const Status refused = store().Append(batch);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kStorageFull) << refused.error().message;
    EXPECT_EQ(store().Probe().ok(), false);
    EXPECT_EQ(ReadAfter(0).size(), log_.events().size());
  }
  bench_->MakeRoom();
  EXPECT_TRUE(store().Probe().ok());
  ASSERT_TRUE(store().Append(batch).ok());
  EXPECT_THAT(ReadAfter(log_.events().size()), ElementsAreArray(Written(batch)));
}

TEST_P(EventStoreConformance, KeepsTheTwoNewestSnapshots) {
  const std::span<const Event> all(log_.events());
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(store().Append(all.subspan(i, 1)).ok());
    ASSERT_TRUE(store().SaveSnapshot({EventSeq(i + 1), "state " + std::to_string(i + 1), {}}).ok());
  }
  EXPECT_EQ(SnapshotAt(100), EventSeq(3));
  EXPECT_EQ(SnapshotAt(2), EventSeq(2));
  EXPECT_EQ(SnapshotAt(1), EventSeq(0));
  EXPECT_EQ((*store().ReadSnapshot(EventSeq(2)))->bytes, "state 2");
}

TEST_P(EventStoreConformance, ReplacesASnapshotOfTheSameEvent) {
  const std::string bytes("\0 ' \xff", 5);
  ASSERT_TRUE(store().Append(std::span(log_.events()).first(1)).ok());
  ASSERT_TRUE(store().SaveSnapshot({EventSeq(1), "first", {}}).ok());
  ASSERT_TRUE(store().SaveSnapshot({EventSeq(1), bytes, {}}).ok());
  EXPECT_EQ((*store().ReadSnapshot(EventSeq(1)))->bytes, bytes);
}

TEST_P(EventStoreConformance, StoresPartsOfEndedSweepsOnceForAllSnapshots) {
  const std::string bytes("\0 left", 6);
  const EndedSweepData first{SweepId(1), ~uint64_t{0}, bytes};
  const EndedSweepData second{SweepId(2), 7, "of the second"};
  const auto named = [](const EndedSweepData& part) {
    return EndedSweepData{part.sweep, part.mark, ""};
  };
  ASSERT_TRUE(store().Append(std::span(log_.events()).first(1)).ok());
  ASSERT_TRUE(store().SaveSnapshot({EventSeq(1), "state 1", {first}}).ok());
  ASSERT_TRUE(store().Append(std::span(log_.events()).subspan(1, 1)).ok());
  ASSERT_TRUE(store().SaveSnapshot({EventSeq(2), "state 2", {named(first), second}}).ok());
  bench_->Reopen();
  const auto snapshot = store().ReadSnapshot(EventSeq(2));
  ASSERT_TRUE(snapshot.ok() && *snapshot);
  ASSERT_EQ((*snapshot)->ended.size(), 2u);
  EXPECT_TRUE((*snapshot)->ended[0].Names(first));
  EXPECT_TRUE((*snapshot)->ended[1].Names(second));
  EXPECT_EQ(*store().ReadEnded(named(first)), bytes);
  EXPECT_EQ(*store().ReadEnded(named(second)), "of the second");
  const auto absent = store().ReadEnded({SweepId(1), 7, ""});
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
}

TEST_P(EventStoreConformance, DropsPartsThatNoSnapshotNames) {
  const EndedSweepData part{SweepId(1), 7, "left"};
  const EndedSweepData name{SweepId(1), 7, ""};
  const std::vector<std::vector<EndedSweepData>> ended = {{part}, {}, {}, {part}};
  const std::vector<bool> kept = {true, true, false, true};
  for (size_t i = 0; i < ended.size(); ++i) {
    ASSERT_TRUE(store().Append(std::span(log_.events()).subspan(i, 1)).ok());
    ASSERT_TRUE(store().SaveSnapshot({EventSeq(i + 1), "state", ended[i]}).ok());
    EXPECT_EQ(store().ReadEnded(name).ok(), kept[i]) << i;
  }
}

TEST_P(EventStoreConformance, KeepsOldSnapshotsIfANewOneDoesNotFit) {
  ASSERT_TRUE(store().Append(log_.events()).ok());
  const EventSeq last = log_.events().back().seq;
  ASSERT_TRUE(store().SaveSnapshot({last, "small", {}}).ok());
  bench_->FillTheDisk();
  EXPECT_FALSE(store().SaveSnapshot({last, std::string(1 << 20, 's'), {}}).ok());
  EXPECT_EQ((*store().ReadSnapshot(last))->bytes, "small");
  EXPECT_EQ(ReadAfter(0).size(), log_.events().size());
}

std::string NameOf(const ::testing::TestParamInfo<Implementation>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Stores, EventStoreConformance, ::testing::ValuesIn(kStores), NameOf);
INSTANTIATE_TEST_SUITE_P(Stores, EventStoreDeathTest, ::testing::ValuesIn(kStores), NameOf);

}  // namespace
}  // namespace attune::server
