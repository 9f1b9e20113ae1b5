#include "core/algorithms/algorithms.h"

#include <gtest/gtest.h>

#include "base/result.h"
#include "tests/support/mentions.h"

namespace attune {
namespace {

class ExhaustedSearcher final : public Searcher {
 public:
  Suggestion Suggest(ProposalNumber) const override { return Exhausted{}; }
  void Observe(const Event&) override {}
  void Adapt(const SweepSpec&) override {}
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}
};

// Has the searchers "first" and "second".
Algorithms TwoSearchers() {
  Algorithms algorithms;
  for (const char* name : {"first", "second"}) {
    algorithms.Add(Entry<Searcher>{
        .name = name, .make = [](const SweepSpec&) -> Result<std::unique_ptr<Searcher>> {
          return {std::make_unique<ExhaustedSearcher>()};
        }});
  }
  return algorithms;
}

TEST(Algorithms, AreFoundByName) {
  const Algorithms algorithms = TwoSearchers();
  EXPECT_EQ(algorithms.FindSearcher("second"), &algorithms.searchers()[1]);
  EXPECT_EQ(algorithms.FindSearcher("third"), nullptr);
  EXPECT_EQ(algorithms.FindScheduler("first"), nullptr);
}

TEST(Algorithms, AreMadeWithTheOptionsOfTheSpec) {
  EXPECT_TRUE(TwoSearchers().MakeSearcher(SweepSpec{.searcher = {.name = "first"}}).ok());
}

TEST(Algorithms, AMissingOptionOrOneOfTheWrongTypeIsNamed) {
  Algorithms algorithms;
  algorithms.Add(
      Entry<Searcher>{.name = "first",
                      .options = {{.name = "depth", .fallback = int64_t{3}, .help = "how deep"}},
                      .make = [](const SweepSpec&) -> Result<std::unique_ptr<Searcher>> {
                        return {std::make_unique<ExhaustedSearcher>()};
                      }});
  const auto made = [&](decltype(AlgorithmSpec::options) options) {
    return algorithms.MakeSearcher(SweepSpec{.searcher = {"first", std::move(options)}});
  };
  EXPECT_TRUE(made({{"depth", int64_t{1}}}).ok());
  EXPECT_THAT(made({}).error().message, testing::Mentions("searcher.depth: ", "how deep"));
  EXPECT_FALSE(made({{"depth", 1.5}}).ok());
}

TEST(Algorithms, AnUnknownNameIsRefusedAndKnownNamesAreListed) {
  const auto made = TwoSearchers().MakeSearcher(SweepSpec{.searcher = {.name = "third"}});
  EXPECT_EQ(made.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(made.error().message,
              testing::Mentions("searcher.name: ", "'third'", "first, second"));
}

}  // namespace
}  // namespace attune
