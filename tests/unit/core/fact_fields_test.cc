#include "core/log/fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "tests/support/every_fact.h"

namespace attune {
namespace {

TEST(FactFields, EveryFactRoundTripsThroughBytes) {
  for (const Fact& fact : testing::EveryFact()) {
    const std::string bytes = testing::Bytes(fact);
    Fact again;
    ArchiveReader archive(bytes);
    archive(again);
    EXPECT_TRUE(archive.AtEnd()) << "kind " << fact.index();
    EXPECT_EQ(testing::Bytes(again), bytes) << "kind " << fact.index();
  }
}

TEST(FactFields, EveryKindHasAUniqueName) {
  std::set<std::string_view> kinds;
  for (const Fact& fact : testing::EveryFact()) {
    const std::string_view kind =
        std::visit([](const auto& known) { return known.kRow.info.kind; }, fact);
    EXPECT_TRUE(std::ranges::all_of(kind, [](char c) { return std::islower(c) != 0 || c == '_'; }))
        << kind;
    kinds.insert(kind);
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<AnyFact>);
}

}  // namespace
}  // namespace attune
