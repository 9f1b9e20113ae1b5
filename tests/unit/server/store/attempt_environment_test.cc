#include "server/store/trials/attempt_environment.h"

#include <gmock/gmock.h>

#include "server/store/format_time.h"
#include "tests/unit/server/store/reader_fixture.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

auto Record(const std::string& record) { return Field(&EnvironmentRow::record, record); }

class AttemptEnvironmentTest : public ReaderTest {
 protected:
  // Appends an event at a number of seconds after the sample log.
  void AddAt(int64_t second, Fact fact) {
    Event event = log_.Next(std::move(fact));
    event.time = Time{kSampleStart + (1'000 + second) * 1'000'000};
    EXPECT_TRUE(store_->Append({&event, 1}).ok());
  }
  void RecordAt(int64_t second, const std::string& record, const std::string& executor = "box") {
    AddAt(second, EnvironmentRecorded{SweepId(1), executor, record});
  }
  // Starts the second attempt of trial 3.
  void StartAt(int64_t second) {
    AddAt(second, AttemptAssigned{.attempt = {Trial(3), 2},
                                  .epoch = Epoch(6),
                                  .ranks = {{.executor = "node-2"},
                                            {.executor = "box", .local_rank = 0},
                                            {.executor = "box", .local_rank = 1}}});
    AddAt(second, AttemptStarted{{Trial(3), 2}, {1, 2, 3}});
  }
  void EndAt(int64_t second) {
    AddAt(second, AttemptEnded{.attempt = {Trial(3), 2}, .outcome = Outcome::kFinished});
  }

  std::vector<EnvironmentRow> Executors() {
    return reader_->Environment(Trial(3), std::nullopt).value().executors;
  }
  ErrorCode ErrorOf(const TrialId& trial, std::optional<uint32_t> attempt) {
    const auto environment = reader_->Environment(trial, attempt);
    EXPECT_FALSE(environment.ok());
    return environment.ok() ? ErrorCode::kInternal : environment.error().code;
  }
};

TEST_F(AttemptEnvironmentTest, IsTheNewestRecordSoonAfterTheStart) {
  RecordAt(0, "before");
  StartAt(1);
  EXPECT_THAT(Executors(), ElementsAre(Record("before")));
  const auto within = std::chrono::seconds(kRecordedWithin).count();
  RecordAt(1 + within, "its own");
  EXPECT_THAT(Executors(), ElementsAre(Record("its own")));
  RecordAt(2 + within, "of a later attempt");
  EXPECT_THAT(Executors(), ElementsAre(Record("its own")));
}

TEST_F(AttemptEnvironmentTest, IsNotARecordAfterItsEnd) {
  RecordAt(0, "before");
  StartAt(1);
  EndAt(2);
  RecordAt(3, "after");
  EXPECT_THAT(Executors(), ElementsAre(Record("before")));
}

TEST_F(AttemptEnvironmentTest, IsTheFirstRecordAfterTheAttemptIfThereIsNoOther) {
  StartAt(1);
  EndAt(2);
  EXPECT_THAT(Executors(), IsEmpty());
  RecordAt(3, "first");
  RecordAt(4, "second");
  EXPECT_THAT(Executors(), ElementsAre(Record("first")));
}

TEST_F(AttemptEnvironmentTest, HasARecordForEachExecutorOfItsRanks) {
  RecordAt(0, "of node-2", "node-2");
  RecordAt(0, "of node-3", "node-3");
  RecordAt(0, "of box");
  StartAt(1);
  const auto environment = reader_->Environment(Trial(3), 2).value();
  EXPECT_EQ(environment.attempt, 2u);
  EXPECT_THAT(environment.executors, ElementsAre(Record("of box"), Record("of node-2")));
  EXPECT_EQ(environment.executors[0].executor, "box");
  EXPECT_EQ(environment.executors[0].recorded,
            FormatTime(Time{kSampleStart + int64_t{1'000'000'000}}));
}

TEST_F(AttemptEnvironmentTest, OfTheNewestAttemptIsTheDefault) {
  EXPECT_EQ(reader_->Environment(Trial(3), std::nullopt).value().attempt, 1u);
  StartAt(1);
  EXPECT_EQ(reader_->Environment(Trial(3), std::nullopt).value().attempt, 2u);
  EXPECT_EQ(reader_->Environment(Trial(3), 1).value().attempt, 1u);
}

TEST_F(AttemptEnvironmentTest, OfSomethingUnknownIsNotFound) {
  EXPECT_EQ(ErrorOf({SweepId(9), TrialNumber(0)}, std::nullopt), ErrorCode::kNotFound);
  EXPECT_EQ(ErrorOf(Trial(99), std::nullopt), ErrorCode::kNotFound);
  EXPECT_EQ(ErrorOf(Trial(3), 2), ErrorCode::kNotFound);
  AddAt(0, TrialCreated{.trial = Trial(4), .config = SampleConfig(0.1), .origin = "random"});
  EXPECT_EQ(ErrorOf(Trial(4), std::nullopt), ErrorCode::kNotFound) << "it has not run";
}

}  // namespace
}  // namespace attune::server
