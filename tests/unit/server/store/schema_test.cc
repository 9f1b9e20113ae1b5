#include "server/store/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/mark.h"
#include "server/store/tables.h"
#include "tests/support/scratch_folder.h"
#include "tests/unit/server/store/sample_log.h"

namespace attune::server {
namespace {

// The tables for people are made anew where the version of the schema rises, and only there.
TEST(Schema, RisesWithTheTablesForPeople) {
  EXPECT_EQ(SchemaVersion(), 12);
  EXPECT_EQ(Mark(TablesSql()), 10789652824488800497u)
      << "The tables have changed: append to kMigrations, and write both numbers here";
}

}  // namespace
}  // namespace attune::server
