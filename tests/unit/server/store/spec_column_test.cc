#include "server/store/tables/spec_column.h"

#include <gtest/gtest.h>

#include <string>

#include "server/store/json.h"
#include "sweepfile/codec.h"
#include "tests/support/sample_log.h"

namespace attune::server {
namespace {

std::string TextOf(const std::string& name) {
  SweepSpec spec = SampleSpec();
  spec.name = name;
  return sweepfile::ToJson(spec).dump();
}

TEST(SpecColumnTest, KeptSpecsBelongToTheirTexts) {
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 40; ++i)  // more than it keeps
      EXPECT_EQ(SpecOfColumn(TextOf("n" + std::to_string(i))).name, "n" + std::to_string(i));
  }
}

TEST(SpecColumnTest, ADamagedTextIsAnErrorEachTime) {
  EXPECT_THROW(SpecOfColumn("{"), Json::exception);
  EXPECT_THROW(SpecOfColumn("{"), Json::exception);
  EXPECT_THROW(SpecOfColumn("[]"), Json::exception);
}

}  // namespace
}  // namespace attune::server
