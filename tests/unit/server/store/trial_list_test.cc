#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/base/numbers.h"
#include "server/store/sqlite_store.h"
#include "tests/unit/server/store/reader_fixture.h"

namespace attune::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Sweep s2, which minimises `loss`.
class TrialListTest : public ReaderTest {
 protected:
  TrialListTest() {
    SweepSpec spec = SampleSpec();
    spec.objectives = {Minimise("loss")};
    Add(SweepCreated{.sweep = kSweep, .spec = spec});
  }

  static TrialId Id(uint32_t number) { return {kSweep, TrialNumber(number)}; }

  void Create(uint32_t number, Config config) {
    Add(TrialCreated{Id(number), std::move(config), "random"});
  }
  void Report(uint32_t number, int64_t step, Metrics metrics) {
    if (step == 1) Add(AttemptAssigned{.attempt = {Id(number), 1}, .epoch = Epoch(100 + number)});
    Add(TrialReported{{Id(number), 1}, {.step = Step(step), .metrics = std::move(metrics)}});
  }
  void End(uint32_t number, TrialState state, const std::string& reason) {
    Add(AttemptEnded{.attempt = {Id(number), 1}, .outcome = Outcome::kFinished});
    Add(TrialEnded{Id(number), state, reason});
  }

  // Five trials: completed, stopped, running with NaN, running with infinity, and pending.
  void CreateFive() {
    Create(0, {{"lr", 0.1}, {"optimizer", std::string("Adam")}, {"layers", int64_t{2}}});
    Create(1, {{"lr", 0.001}, {"optimizer", std::string("sgd")}, {"nesterov", true}});
    Create(2, {{"lr", 0.01}, {"optimizer", std::string("sgd")}, {"nesterov", false}});
    Create(3, {{"lr", 0.01}, {"odd \"name\\", int64_t{7}}});
    Create(4, {{"lr", 1.0}, {"layers", int64_t{4}}, {"it's; --", std::string("x'y")}});
    Report(0, 1, {{"loss", 0.5}, {"speed", 10}});
    Report(1, 1, {{"loss", 0.25}, {"speed", 30}});
    Report(1, 2, {{"loss", 0.75}, {"speed", 20}});
    Report(2, 1, {{"loss", kNaN}, {"speed", kNaN}});
    Report(3, 1, {{"loss", kInfinity}, {"speed", kInfinity}});
    End(0, TrialState::kCompleted, "reached the last step");
    End(1, TrialState::kStopped, "Rank 9 of 11");
  }

  TrialQuery Query(const std::string& order, const std::string& filter = "", int limit = 1'000) {
    TrialQuery query{.order = ParseTrialOrder(order).value(), .limit = limit};
    auto parsed = ParseTrialFilter(filter);
    EXPECT_TRUE(parsed.ok()) << filter << ": " << parsed.error().message;
    if (!filter.empty() && parsed.ok()) query.filter = *std::move(parsed);
    return query;
  }

  static std::vector<uint32_t> NumbersOf(const TrialPage& page) {
    std::vector<uint32_t> numbers;
    for (const TrialRow& row : page.trials) numbers.push_back(row.id.number.value);
    return numbers;
  }

  std::vector<uint32_t> Sorted(const std::string& order) { return List(Query(order)); }
  std::vector<uint32_t> Filtered(const std::string& filter) { return List(Query("", filter)); }
  std::vector<uint32_t> List(const TrialQuery& query) {
    const auto page = reader_->Trials(kSweep, query);
    EXPECT_TRUE(page.ok()) << page.error().message;
    if (!page.ok()) return {};
    EXPECT_EQ(page->total, std::ssize(page->trials));
    return NumbersOf(*page);
  }

  // An order or a filter, and the numbers of the listed trials.
  struct Listed {
    std::string text;
    std::vector<uint32_t> numbers;
  };
  void ExpectSorted(const std::vector<Listed>& lists) {
    for (const auto& [order, numbers] : lists) EXPECT_EQ(Sorted(order), numbers) << order;
  }
  void ExpectFiltered(const std::vector<Listed>& lists) {
    for (const auto& [filter, numbers] : lists) EXPECT_EQ(Filtered(filter), numbers) << filter;
  }

  static constexpr SweepId kSweep{2};
};

TEST_F(TrialListTest, OrdersPutMissingValuesLastInBothDirections) {
  CreateFive();
  ExpectSorted({
      {"", {0, 1, 2, 3, 4}},
      {"-number", {4, 3, 2, 1, 0}},
      {"best", {1, 0, 2, 3, 4}},  // the lowest loss is the best
      {"-best", {0, 1, 2, 3, 4}},
      {"metrics.speed", {0, 1, 3, 2, 4}},
      {"-metrics.speed", {3, 1, 0, 2, 4}},
      {"config.layers", {0, 4, 1, 2, 3}},
      {"-config.layers", {4, 0, 1, 2, 3}},
      {"ended", {0, 1, 2, 3, 4}},
      {"-ended", {1, 0, 2, 3, 4}},
  });
}

TEST_F(TrialListTest, EqualValuesAreOrderedByNumber) {
  CreateFive();
  ExpectSorted({
      {"config.lr", {1, 2, 3, 0, 4}},
      {"-config.lr", {4, 0, 2, 3, 1}},
      {"config.optimizer", {0, 1, 2, 3, 4}},
      {"-config.optimizer", {1, 2, 0, 3, 4}},
      {"state", {2, 3, 4, 0, 1}},
      {"-step", {1, 0, 2, 3, 4}},
      {"-attempts", {0, 1, 2, 3, 4}},
      {"-created", {4, 3, 2, 1, 0}},
  });
}

TEST_F(TrialListTest, OrdersOfUnknownColumnsAreRefused) {
  for (const std::string order : {"lr", "config.", "-", "reason", "best,step", "number; DROP"}) {
    const auto parsed = ParseTrialOrder(order);
    ASSERT_FALSE(parsed.ok()) << order;
    EXPECT_THAT(parsed.error().message, HasSubstr("config.NAME"));
  }
}

TEST_F(TrialListTest, ComparisonsFilterByColumnsParametersAndMetrics) {
  CreateFive();
  ExpectFiltered({
      {"lr<0.01", {1}},
      {"lr<=0.01", {1, 2, 3}},
      {"lr>0.1", {4}},
      {"lr>=1e-1", {0, 4}},
      {"config.lr=0.01", {2, 3}},
      {"lr!=0.01", {0, 1, 4}},
      {"layers!=2", {4}},  // a trial without the value does not match
      {"optimizer=ADAM", {0}},
      {"optimizer!=adam", {1, 2}},
      {"nesterov=true", {1}},
      {"nesterov!=true", {2}},
      {"optimizer<3", {}},           // a text is not compared with a number
      {"loss<0.5", {1}},             // the best loss
      {"metrics.loss>0.5", {1, 3}},  // the last loss
      {"step=2", {1}},
      {"attempts=0", {4}},
      {"number>=3", {3, 4}},
      {"ended>2026 created<2100", {0, 1}},
  });
}

TEST_F(TrialListTest, NanAndInfinityAreValuesOfMetrics) {
  CreateFive();
  ExpectFiltered({
      {"speed=nan", {2}},
      {"speed!=nan", {0, 1, 3}},
      {"speed=inf", {3}},
      {"speed>1e300", {3}},
      {"speed<1e300", {0, 1}},
  });
}

TEST_F(TrialListTest, RangesAreClosedAndMayLackAnEnd) {
  CreateFive();
  ExpectFiltered({
      {"lr:0.001..0.01", {1, 2, 3}},
      {"lr:0.1..", {0, 4}},
      {"lr:..0.001", {1}},
      {"optimizer:..", {0, 1, 2}},
      {"optimizer:0..", {}},
      {"created:2026..", {0, 1, 2, 3, 4}},
  });
}

TEST_F(TrialListTest, WordsAreStatesNumbersOrTexts) {
  CreateFive();
  ExpectFiltered({
      {"stopped", {1}},
      {"state:stopped,running", {1, 2, 3}},
      {"3", {3}},
      {"#3", {3}},
      {"99999999999999999999", {}},
      {"SGD", {1, 2}},
      {"\"rank 9 of\"", {1}},
      {"rank of", {1}},           // each word matches
      {"rand", {0, 1, 2, 3, 4}},  // the origin
      {"\"stopped by\"", {}},
  });
}

TEST_F(TrialListTest, TagsMatchWholeAndInAnyCase) {
  CreateFive();
  Add(TrialAnnotated{Id(1), {.tags = {{"Best", "lr-1"}}}});
  Add(TrialAnnotated{Id(3), {.tags = {{"lr-1", "it's\\"}}}});
  ExpectFiltered({
      {"tag:best", {1}},
      {"tag:BEST,it's\\", {1, 3}},
      {"tag:lr", {}},
      {"tag:lr-1 -tag:best", {3}},
      {"-tag:lr-1", {0, 2, 4}},
  });
}

TEST_F(TrialListTest, AlternativesGroupsAndNegationsCombine) {
  CreateFive();
  ExpectFiltered({
      {"stopped OR completed", {0, 1}},
      {"sgd stopped OR 4", {1, 4}},
      {"sgd (stopped OR 4)", {1}},
      {"-sgd", {0, 3, 4}},
      {"NOT (sgd OR 4)", {0, 3}},
      {"-layers>2", {0, 1, 2, 3}},  // also those without the value
      {"--sgd", {1, 2}},
  });
}

TEST_F(TrialListTest, TextOfAFilterIsNeverSql) {
  CreateFive();
  EXPECT_THAT(Filtered("\"it's; --\"=\"x'y\""), ElementsAre(4));
  EXPECT_THAT(Sorted("config.it's; --"), ElementsAre(4, 0, 1, 2, 3));
  EXPECT_THAT(Sorted("config.odd \"name\\"), ElementsAre(3, 0, 1, 2, 4));
  for (const std::string text :
       {"\"'; DROP TABLE trials; --\"", "x=\"1' OR '1'='1\"", "\"$.lr\"=1", "config.$=1", "?1=?2",
        "lr'<1", "@trials=1", "\"lr\\\"<1", "a=%' b=_ c=\\"})
    EXPECT_THAT(Filtered(text), IsEmpty()) << text;
  ExpectSorted({
      {"config.lr' DESC; --", {0, 1, 2, 3, 4}},
      {"metrics.$.loss", {0, 1, 2, 3, 4}},
      {"", {0, 1, 2, 3, 4}},  // the table is still there
  });
}

TEST_F(TrialListTest, TheLongestFilterIsAccepted) {
  CreateFive();
  std::string words;
  for (int i = 0; i < kFilterWordsMax; ++i) words += "-a" + std::to_string(i) + "<1 ";
  EXPECT_THAT(Filtered(words), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(Filtered(std::string(kFilterDepthMax, '-') + "sgd"), ElementsAre(1, 2));
}

TEST_F(TrialListTest, PagesFollowEachOtherInEveryOrder) {
  CreateFive();
  for (const std::string column : {"number", "state", "best", "step", "seconds", "created", "ended",
                                   "attempts", "config.lr", "config.optimizer", "metrics.speed"}) {
    for (const std::string sign : {"", "-"}) {
      std::vector<uint32_t> numbers;
      TrialQuery query = Query(sign + column, "", 2);
      do {
        const auto page = reader_->Trials(kSweep, query);
        ASSERT_TRUE(page.ok()) << page.error().message;
        EXPECT_EQ(page->total, 5);
        for (const uint32_t number : NumbersOf(*page)) numbers.push_back(number);
        query.after = page->next;
      } while (query.after && numbers.size() < 10);
      EXPECT_EQ(numbers, Sorted(sign + column)) << sign + column;
    }
  }
}

TEST_F(TrialListTest, APageContinuesAfterItsPositionWhileTrialsChange) {
  CreateFive();
  TrialQuery query = Query("best", "", 1);
  const auto first = reader_->Trials(kSweep, query);
  ASSERT_TRUE(first.ok() && first->next);
  EXPECT_THAT(NumbersOf(*first), ElementsAre(1));
  Create(5, {{"lr", 0.5}});
  Report(5, 1, {{"loss", 0.3}});
  Report(3, 2, {{"loss", 0.125}});  // now before the position
  query.after = first->next;
  query.limit = 10;
  const auto second = reader_->Trials(kSweep, query);
  ASSERT_TRUE(second.ok());
  EXPECT_THAT(NumbersOf(*second), ElementsAre(5, 0, 2, 4));
  EXPECT_EQ(second->total, 6);
}

TEST_F(TrialListTest, TheTotalCountsMatchesOnAllPages) {
  CreateFive();
  const auto page = reader_->Trials(kSweep, Query("", "running OR stopped", 1));
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->total, 3);
  EXPECT_EQ(page->trials.size(), 1u);
  EXPECT_EQ(page->seq, reader_->LastSeq().value());
}

TEST_F(TrialListTest, AMissingSweepIsNotFound) {
  EXPECT_EQ(reader_->Trials(SweepId(9), {}).error().code, ErrorCode::kNotFound);
}

TEST_F(TrialListTest, TenThousandTrialsAreSortedInPages) {
  constexpr uint32_t kTrials = 10'000;
  std::vector<Event> events;
  for (uint32_t number = 0; number < kTrials; ++number)
    events.push_back(log_.Next(TrialCreated{
        Id(number), {{"lr", static_cast<double>((number * 7'919) % kTrials)}}, "random"}));
  ASSERT_TRUE(store_->Append(events).ok());
  TrialQuery query = Query("-config.lr", "lr>=100", 500);
  int64_t expected = kTrials;
  do {
    const auto page = reader_->Trials(kSweep, query);
    ASSERT_TRUE(page.ok()) << page.error().message;
    EXPECT_EQ(page->total, kTrials - 100);
    for (const TrialRow& row : page->trials)
      ASSERT_EQ(std::get<double>(*row.config.Find("lr")), static_cast<double>(--expected));
    query.after = page->next;
  } while (query.after);
  EXPECT_EQ(expected, 100);
}

}  // namespace
}  // namespace attune::server
