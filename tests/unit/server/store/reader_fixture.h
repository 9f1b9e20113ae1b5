#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "server/store/reader.h"
#include "server/store/sqlite_store.h"
#include "tests/support/sample_log.h"

namespace attune::server {

// A reader of a database with the sample log, which a test can extend.
class ReaderTest : public ::testing::Test {
 protected:
  ReaderTest()
      : store_(SqliteStore::Open(folder_ / "attune.db").value()),
        reader_(Reader::Open(folder_ / "attune.db").value()) {
    EXPECT_TRUE(store_->Append(log_.events()).ok());
  }

  void Add(Fact fact) {
    const Event event = log_.Next(std::move(fact));
    ASSERT_TRUE(store_->Append({&event, 1}).ok());
  }

  static TrialId Trial(uint32_t number) { return {SweepId(1), TrialNumber(number)}; }

  ScratchFolder folder_;
  SampleLog log_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<Reader> reader_;
};

}  // namespace attune::server
