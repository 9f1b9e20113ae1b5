// Tests how searchers learn and end. All searchers get the same spaces.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/searcher_sweep.h"
#include "tests/conformance/seed.h"

namespace attune::conformance {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

class SearcherLearning : public testing::TestWithParam<std::string> {
 protected:
  SweepSpec SpecOf(std::vector<Parameter> parameters, int max_trials = 200) const {
    return {.objectives = {Minimise("loss")},
            .space = SearchSpace(std::move(parameters)),
            .searcher = WithFallbacks(GetParam(), algorithms_.FindSearcher(GetParam())->options),
            .stop = {.max_trials = max_trials}};
  }
  bool Learns() const {
    return GetParam() != "random" && GetParam() != "sobol" && GetParam() != "grid";
  }

  const Algorithms algorithms_ = RegisteredSearchers();
};

// A searcher that accepts a sweep without a limit must become exhausted.
TEST_P(SearcherLearning, AFiniteSpaceIsSearchedWithoutRepeats) {
  SweepSpec spec = SpecOf({{"a", FloatDomain{.min = 0.1, .max = 1, .step = 0.1}},
                           {"b", CategoricalDomain{{true, false, int64_t{3}}}},
                           {"c", IntDomain{.min = 0, .max = 3}, {{"b", {true}}}}},
                          0);
  spec.program.command = {"train"};
  const auto made = algorithms_.MakeSearcher(spec);
  if (!made.ok()) {
    EXPECT_THAT(made.error().message, testing::StartsWith("stop: "));
    return;
  }
  Searcher& searcher = **made;
  std::set<std::string> seen;
  uint32_t proposal = 0;
  for (; proposal < 100; ++proposal) {
    const Suggestion suggestion = searcher.Suggest(ProposalNumber(proposal));
    if (std::holds_alternative<Exhausted>(suggestion)) break;
    const Config& config = std::get<Proposed>(suggestion).config;
    std::string text;
    for (const auto& [name, value] : config.entries()) text += name + FormatValue(value) + " ";
    EXPECT_TRUE(seen.insert(text).second) << text;
    TellDone(searcher, GetParam(), proposal, config, proposal % 7);
  }
  EXPECT_EQ(seen.size(), 10u * (4 + 2));
}

// Log scales over many decades, ranges with the largest and smallest numbers, single points; values
// that are equal or as far apart as possible.
TEST_P(SearcherLearning, ExtremeSpacesAndValuesAreSearched) {
  std::vector<Parameter> countable{
      {"wide", IntDomain{.min = 1, .max = int64_t{1} << 62, .scale = Scale::kLog}},
      {"steps", FloatDomain{.min = 1e-300, .max = 9e-300, .step = 1e-300}},
      {"point", IntDomain{.min = 5, .max = 5}},
      {"only", CategoricalDomain{{std::string("one")}}}};
  std::vector<Parameter> ranges{
      {"decades", FloatDomain{.min = 1e-300, .max = 1e300, .scale = Scale::kLog}},
      {"huge", FloatDomain{.min = -8e307, .max = 8e307}},
      {"spot", FloatDomain{.min = 3, .max = 3}}};
  ranges.insert(ranges.end(), countable.begin(), countable.end());
  countable.erase(countable.begin());  // too many values to list all
  for (const auto& parameters : {ranges, countable}) {
    const SweepSpec spec = SpecOf(parameters);
    const auto made = algorithms_.MakeSearcher(spec);
    if (!made.ok()) continue;  // the searcher refuses this space
    Searcher& searcher = **made;
    constexpr double kLosses[] = {1e300, -1e300, 1e-300, 0, kNaN, 5, 5, 5, -kInf};
    for (uint32_t i = 0; i < 100; ++i) {
      const Suggestion suggestion = searcher.Suggest(ProposalNumber(i));
      if (!std::holds_alternative<Proposed>(suggestion)) break;
      const Config& config = std::get<Proposed>(suggestion).config;
      ExpectInSpace(spec.space, config);
      TellDone(searcher, GetParam(), i, config, kLosses[i % std::size(kLosses)]);
    }
  }
}

// The point may be a listed value or a range of one value, with any scale, alone or with others.
TEST_P(SearcherLearning, ASpaceOfOnePointGivesOneProposal) {
  const std::vector<std::vector<Parameter>> spaces{
      {},
      {{"a", ConstantDomain{int64_t{3}}}, {"b", ConstantDomain{std::string("x")}}},
      {{"n", IntDomain{.min = 5, .max = 5}}},
      {{"n", IntDomain{.min = 5, .max = 7, .scale = Scale::kLog, .step = 4}}},
      {{"x", FloatDomain{.min = 0.1, .max = 0.15, .step = 0.1}}},
      {{"x", FloatDomain{.min = 3, .max = 3}}},
      {{"x", FloatDomain{.min = 1e-3, .max = 1e-3, .scale = Scale::kLog}}},
      {{"k", CategoricalDomain{{std::string("one")}}},
       {"x", FloatDomain{.min = 2, .max = 2, .step = 1}, {{"k", {std::string("one")}}}}}};
  for (size_t i = 0; i < spaces.size(); ++i) {
    SCOPED_TRACE(i);
    SweepSpec spec = SpecOf(spaces[i]);
    auto made = algorithms_.MakeSearcher(spec);
    if (!made.ok()) {  // grid refuses a range without steps
      EXPECT_THAT(made.error().message, testing::HasSubstr("parameters.x"));
      continue;
    }
    SweepSpec endless = spec;
    endless.program.command = {"train"};
    endless.stop = {};
    const bool ends = algorithms_.MakeSearcher(endless).ok();
    Searcher& searcher = **made;
    uint32_t proposal = 0;
    std::set<Config> seen;
    for (; proposal < 30; ++proposal) {
      const Suggestion suggestion = searcher.Suggest(ProposalNumber(proposal));
      EXPECT_EQ(Restored(searcher, spec)->Suggest(ProposalNumber(proposal)), suggestion);
      if (std::holds_alternative<Exhausted>(suggestion)) break;
      const Config& config = std::get<Proposed>(suggestion).config;
      ExpectInSpace(spec.space, config);
      TellDone(searcher, GetParam(), proposal, config, proposal % 5 == 4 ? kNaN : 1);
    }
    EXPECT_EQ(proposal, ends ? 1u : 30u);
  }
}

// A user reports the same configuration many times. The next proposal must differ from it, lie in
// the space, and be the same after a restart.
TEST_P(SearcherLearning, TenThousandReportsOfOneConfigurationAreHarmless) {
  std::vector<Parameter> parameters{{"steps", FloatDomain{.min = 0.1, .max = 10, .step = 0.1}},
                                    {"n", IntDomain{.min = 1, .max = 50}},
                                    {"kind", CategoricalDomain{{true, false}}}};
  Config config{{"steps", 0.3}, {"n", int64_t{7}}, {"kind", true}};
  const SweepSpec finite = SpecOf(parameters);
  parameters.push_back({"x", FloatDomain{.min = 0, .max = 1}});
  const SweepSpec real = SpecOf(parameters);
  for (const SweepSpec& spec : {finite, real}) {
    auto made = algorithms_.MakeSearcher(spec);
    if (!made.ok()) continue;  // grid refuses a range without steps
    Searcher& searcher = **made;
    if (spec.space.Find("x") != nullptr) config.Set("x", 0.25);
    const bool thinks = searcher.NeedsThread();
    if (thinks && &spec == &finite) continue;  // too slow with many results
    EventSeq seq{0};
    const auto tell = [&](Fact fact) {
      searcher.Observe({EventSeq(++seq.value), Time{0}, std::move(fact)});
    };
    for (uint32_t i = 0; i < 10'000; ++i) {
      const TrialId id(SweepId(1), TrialNumber(i));
      tell(TrialCreated{.trial = id, .config = config, .origin = std::string(kEnqueued)});
      tell(TrialReported{{id, 1}, {Step(1), {{"loss", 1}}, Seconds(1)}});
      tell(TrialEnded{id, TrialState::kCompleted, "done"});
    }
    for (uint32_t proposal = 0; proposal < (thinks ? 1u : 3u); ++proposal) {
      const Suggestion suggestion = searcher.Suggest(ProposalNumber(proposal));
      EXPECT_EQ(Restored(searcher, spec)->Suggest(ProposalNumber(proposal)), suggestion);
      ASSERT_TRUE(std::holds_alternative<Proposed>(suggestion));
      const Config& proposed = std::get<Proposed>(suggestion).config;
      ExpectInSpace(spec.space, proposed);
      if (Learns()) {
        EXPECT_NE(proposed, config);
      }
    }
  }
}

// A loss over a plane with its minimum, 0, at (2, -1).
double Bowl(const Config& config) {
  const auto at = [&](const char* name) { return std::get<double>(*config.Find(name)); };
  return std::pow(at("x") - 2, 2) + std::pow(at("y") + 1, 2);
}

// At first, all trials fail in different ways; later, every fifth trial does.
TEST_P(SearcherLearning, LearnsDespiteFailuresAndNan) {
  if (!Learns()) return;
  const SweepSpec spec = SpecOf({{"x", FloatDomain{.min = -5, .max = 5}},
                                 {"y", FloatDomain{.min = -5, .max = 5, .step = 0.01}}});
  const auto made = algorithms_.MakeSearcher(spec);
  Searcher& searcher = **made;
  constexpr uint32_t kFailures = 40;
  constexpr double kAnywhere = 65.0 / 3;  // the mean loss over the plane
  constexpr size_t kLast = 20;
  const uint32_t trials = kFailures + (searcher.NeedsThread() ? 50 : 120);
  constexpr double kBad[] = {kNaN, kInf, -kInf, -1e9};  // the last value before the failure
  double least = kInf;
  std::vector<double> losses;
  for (uint32_t i = 0; i < trials; ++i) {
    const Config config = std::get<Proposed>(searcher.Suggest(ProposalNumber(i))).config;
    ExpectInSpace(spec.space, config);
    if (i < kFailures || i % 5 == 0) {
      const bool completed = i % 4 < 3 && i % 3 == 0;
      TellDone(searcher, GetParam(), i, config, kBad[i % 4],
               completed ? TrialState::kCompleted : TrialState::kFailed);
      continue;
    }
    TellDone(searcher, GetParam(), i, config, Bowl(config));
    least = std::min(least, Bowl(config));
    losses.push_back(Bowl(config));
  }
  EXPECT_LT(least, 1);
  // Uses the median, because some proposals are deliberately random.
  losses.erase(losses.begin(), losses.end() - kLast);
  std::ranges::nth_element(losses, losses.begin() + kLast / 2);
  EXPECT_LT(losses[kLast / 2], kAnywhere / 4);
}

TEST_P(SearcherLearning, IsDescribedInOneLine) {
  const auto& entry = *algorithms_.FindSearcher(GetParam());
  EXPECT_FALSE(entry.help.empty());
  EXPECT_EQ(entry.help.find('\n'), std::string::npos);
  for (const Option& option : entry.options) EXPECT_FALSE(option.help.empty()) << option.name;
}

INSTANTIATE_TEST_SUITE_P(Registered, SearcherLearning, testing::ValuesIn(SearcherNames()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace attune::conformance
