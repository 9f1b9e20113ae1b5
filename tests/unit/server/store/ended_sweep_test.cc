#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "server/store/offline/check.h"
#include "server/store/reader.h"
#include "server/store/sqlite_store.h"
#include "tests/support/sample_log.h"

namespace attune::server {
namespace {

// The sweep of the sample log. Its best value is 0.871.
class EndedSweep : public ::testing::Test {
 protected:
  EndedSweep() { EXPECT_TRUE(store_->Append(log_.events()).ok()); }

  void Append(std::vector<Fact> facts) {
    std::vector<Event> events;
    for (Fact& fact : facts) events.push_back(log_.Next(std::move(fact)));
    const Status written = store_->Append(events);
    ASSERT_TRUE(written.ok()) << written.error().message;
  }
  static Fact Report(int64_t step, double accuracy) {
    return TrialReported{{{SweepId(1), TrialNumber(3)}, 1},
                         {.step = Step(step), .metrics = {{"accuracy", accuracy}}}};
  }
  static Fact End() { return SweepEnded{SweepId(1), SweepState::kStopped, "stopped on request"}; }

  double Best() { return reader_->Sweep(SweepId(1)).value().Best()->values.front(); }
  void ExpectIntact() {
    const auto findings = CheckDatabase(path_).value();
    for (const Finding& finding : findings) EXPECT_EQ(finding.fault, std::nullopt) << finding.what;
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_ / "attune.db";
  SampleLog log_;
  std::unique_ptr<SqliteStore> store_ = SqliteStore::Open(path_).value();
  std::unique_ptr<Reader> reader_ = Reader::Open(path_).value();
};

TEST_F(EndedSweep, HasTheBestReportOfItsLastBatchOnItsFront) {
  Append({Report(3, 0.9), End()});
  EXPECT_EQ(Best(), 0.9);
  ExpectIntact();
}

TEST_F(EndedSweep, ALateReportJoinsItsFrontOrNot) {
  Append({Report(3, 0.9), End()});
  Append({Report(4, 0.8)});
  EXPECT_EQ(Best(), 0.9);
  Append({Report(5, 0.95)});
  EXPECT_EQ(Best(), 0.95);
  ExpectIntact();
}

TEST_F(EndedSweep, KeepsItsFrontWhenItIsReopened) {
  Append({Report(3, 0.9), End(), SweepReopened{SweepId(1), "for 8 more trials"}, Report(4, 0.95)});
  EXPECT_EQ(Best(), 0.95);
  Append({End()});
  Append({SweepReopened{SweepId(1), "for 8 more trials"}, Report(5, 0.92)});
  EXPECT_EQ(Best(), 0.95);
  Append({Report(6, 0.96)});
  EXPECT_EQ(Best(), 0.96);
  ExpectIntact();
}

// A later report is compared with the current rows of the table.
TEST_F(EndedSweep, IsNotKeptInMemory) {
  Append({End()});
  auto other =
      sqlite::Connection::Open(path_, sqlite::Connection::Mode::kReadWriteCreate, 0).value();
  ASSERT_TRUE(other->Execute("UPDATE front SET objectives = '[0.5]'").ok());
  Append({Report(3, 0.6)});
  EXPECT_EQ(Best(), 0.6);
}

}  // namespace
}  // namespace attune::server
