#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/space/draw.h"
#include "searchers/register.h"
#include "tests/conformance/random_space.h"
#include "tests/conformance/seed.h"

namespace attune::conformance {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr uint32_t kTrials = 40;
constexpr uint32_t kPrior = 15;

Algorithms Registered() {
  Algorithms algorithms;
  searchers::RegisterSearchers(algorithms);
  return algorithms;
}

std::vector<std::string> Names() {
  const Algorithms algorithms = Registered();
  std::vector<std::string> names;
  for (const auto& entry : algorithms.searchers()) names.push_back(entry.name);
  return names;
}

// A sweep of a random space. `RunTrial` proposes and reports like a real one; everything that
// happened is kept, to be replayed.
class SweepOfSearcher {
 public:
  SweepOfSearcher(const std::string& name, uint64_t seed)
      : random_(seed, TrialNumber(0), "conformance/sweep") {
    const auto& entry = *algorithms_.FindSearcher(name);
    spec_ = {.objectives = {Maximise("accuracy")},
             .space = RandomSpace(seed, /*countable=*/false),
             .searcher = WithFallbacks(name, entry.options),
             .seed = seed,
             .max_step = Step(27),
             .stop = {.max_trials = kTrials}};
    auto made = algorithms_.MakeSearcher(spec_);
    if (seed % 3 == 0) {  // it may refuse several metrics
      SweepSpec several = spec_;
      several.objectives.push_back(Minimise("cost"));
      if (algorithms_.MakeSearcher(several).ok()) {
        spec_ = several;
        made = algorithms_.MakeSearcher(spec_);
      }
    }
    if (!made.ok()) {  // it may refuse a space, by its parameter, but not one that can be counted
      EXPECT_TRUE(made.error().message.starts_with("parameters.")) << made.error().message;
      spec_.space = RandomSpace(seed, /*countable=*/true);
      made = algorithms_.MakeSearcher(spec_);
    }
    searcher_ = std::move(made).value();
    if (seed % 2 == 1) BeginWarm();
  }

  // With results of an earlier sweep, where the searcher takes such.
  void BeginWarm() {
    SweepSpec warm = spec_;
    warm.warm_start = {SweepId(8)};
    auto made = algorithms_.MakeSearcher(warm);
    if (!made.ok()) {
      EXPECT_TRUE(made.error().message.starts_with("warm_start: ")) << made.error().message;
      return;
    }
    spec_ = warm;
    searcher_ = std::move(made).value();
    WarmStart start{.from = SweepId(8), .results = kPrior};
    for (uint32_t i = 0; i < kPrior; ++i) {
      Config config;
      for (const size_t place : spec_.space.order()) {
        const Parameter& parameter = spec_.space.parameters()[place];
        if (spec_.space.Active(parameter, config))
          config.Set(parameter.name, Draw(parameter.domain, random_));
      }
      start.taken.push_back(
          {{start.from, TrialNumber(i)}, spec_.space.Resolve(config).value(), (i + 0.5) / kPrior});
    }
    Observe(SweepCreated{.sweep = SweepId(1), .spec = spec_, .warm_start = {{start}}});
  }

  // A new instance that has seen everything this one has.
  std::unique_ptr<Searcher> Replayed() const {
    auto searcher = algorithms_.MakeSearcher(spec_).value();
    for (const Event& event : log_) searcher->Observe(event);
    return searcher;
  }

  // A new instance that was given this one's bytes.
  std::unique_ptr<Searcher> Restored() const {
    ArchiveWriter bytes;
    searcher_->Save(bytes);
    auto searcher = algorithms_.MakeSearcher(spec_).value();
    const std::string held = bytes.Take();
    ArchiveReader archive(held);
    searcher->Load(archive);
    EXPECT_TRUE(archive.AtEnd());
    return searcher;
  }

  // One more trial with a few reports, some of them bad; false when there is none.
  bool RunTrial() {
    const Suggestion suggestion = searcher_->Suggest(next());
    const auto* proposed = std::get_if<Proposed>(&suggestion);
    if (proposed == nullptr) return false;
    const TrialId id(SweepId(1), TrialNumber(next_));
    Observe(TrialCreated{.trial = id,
                         .config = proposed->config,
                         .origin = spec_.searcher.name,
                         .proposal = ProposalNumber(next_++)});
    constexpr double kBad[] = {kNaN, kInf, -kInf};
    for (int64_t step = 1; step <= random_.Integer(0, 4); ++step) {
      const int64_t luck = random_.Integer(0, 5);
      const double value = luck < 3 ? kBad[luck] : random_.Uniform();
      const Metrics metrics{{"accuracy", value}, {"cost", static_cast<double>(luck)}};
      Observe(TrialReported{{id, 1}, {Step(step), metrics, Seconds(1)}});
    }
    if (random_.Integer(0, 3) > 0) Observe(TrialEnded{id, TrialState::kCompleted, "done"});
    return true;
  }

  // An edit that changes nothing but a limit.
  void Extend() {
    spec_.max_step.value *= 3;
    spec_.stop.max_trials += 7;
    searcher_->Adapt(spec_);
  }

  // An edit that leaves of every range its lower half.
  void Narrow() {
    std::vector<Parameter> parameters = spec_.space.parameters();
    for (Parameter& parameter : parameters) {
      if (auto* real = std::get_if<FloatDomain>(&parameter.domain)) {
        real->max = real->min + (real->max - real->min) / 2;
      } else if (auto* integer = std::get_if<IntDomain>(&parameter.domain)) {
        integer->max = integer->min + (integer->max - integer->min) / 2;
      }
    }
    if (!SearchSpace::Check(parameters).empty()) return;  // a condition would never hold
    spec_.space = SearchSpace(std::move(parameters));
    searcher_->Adapt(spec_);
  }

  void Observe(Fact fact) {
    log_.push_back({EventSeq(log_.size() + 1), Time{0}, std::move(fact)});
    searcher_->Observe(log_.back());
  }

  const Searcher& searcher() const { return *searcher_; }
  const SearchSpace& space() const { return spec_.space; }
  ProposalNumber next() const { return ProposalNumber(next_); }

 private:
  Algorithms algorithms_ = Registered();
  SweepSpec spec_;
  std::unique_ptr<Searcher> searcher_;
  RandomStream random_;
  std::vector<Event> log_;
  uint32_t next_ = 0;
};

// Told apart from SearchSpace::Resolve on purpose, which a searcher may use itself.
void ExpectInSpace(const SearchSpace& space, const Config& config) {
  size_t present = 0;
  for (const Parameter& parameter : space.parameters()) {
    const Value* value = config.Find(parameter.name);
    ASSERT_EQ(value != nullptr, space.Active(parameter, config)) << parameter.name;
    if (value == nullptr) continue;
    EXPECT_EQ(config.entries()[present++].first, parameter.name) << "not in the file's order";
    if (const auto* real = std::get_if<FloatDomain>(&parameter.domain)) {
      EXPECT_GE(std::get<double>(*value), real->min);
      EXPECT_LE(std::get<double>(*value), real->max);
      if (real->step) {
        const double steps = (std::get<double>(*value) - real->min) / *real->step;
        EXPECT_NEAR(steps, std::round(steps), 1e-6);
      }
    } else if (const auto* integer = std::get_if<IntDomain>(&parameter.domain)) {
      EXPECT_GE(std::get<int64_t>(*value), integer->min);
      EXPECT_LE(std::get<int64_t>(*value), integer->max);
      EXPECT_EQ((std::get<int64_t>(*value) - integer->min) % integer->step, 0);
    } else if (const auto* choice = std::get_if<CategoricalDomain>(&parameter.domain)) {
      EXPECT_EQ(std::count(choice->values.begin(), choice->values.end(), *value), 1);
    } else {
      EXPECT_EQ(*value, std::get<ConstantDomain>(parameter.domain).value);
    }
  }
  EXPECT_EQ(config.entries().size(), present);
}

class SearcherConformance : public testing::TestWithParam<std::string> {
 protected:
  // Runs the body on sweeps of many random spaces.
  template <class Body>
  void ForEachSweep(Body body) {
    for (uint64_t seed = BaseSeed(); seed < BaseSeed() + kRounds; ++seed) {
      SCOPED_TRACE(SeedNote(seed));
      SweepOfSearcher sweep(GetParam(), seed);
      body(sweep);
      if (HasFailure()) return;
    }
  }
};

TEST_P(SearcherConformance, ProposalsLieInTheSpace) {
  ForEachSweep([](SweepOfSearcher& sweep) {
    for (uint32_t trial = 0; trial < kTrials; ++trial) {
      const Suggestion suggestion = sweep.searcher().Suggest(sweep.next());
      if (const auto* proposed = std::get_if<Proposed>(&suggestion))
        ExpectInSpace(sweep.space(), proposed->config);
      if (!sweep.RunTrial()) break;
    }
  });
}

TEST_P(SearcherConformance, SaysShortlyWhereItsProposalsComeFrom) {
  ForEachSweep([](SweepOfSearcher& sweep) {
    for (uint32_t trial = 0; trial < kTrials; ++trial) {
      const Suggestion suggestion = sweep.searcher().Suggest(sweep.next());
      if (const auto* proposed = std::get_if<Proposed>(&suggestion)) {
        const Rationale& rationale = proposed->rationale;
        EXPECT_FALSE(rationale.rule.empty());
        EXPECT_FALSE(rationale.text.empty());
        EXPECT_LE(rationale.text.size(), 160u) << rationale.text;
        EXPECT_TRUE(std::isfinite(rationale.score.value_or(0))) << rationale.text;
        for (const TrialNumber number : rationale.from) EXPECT_LT(number.value, trial);
      }
      if (!sweep.RunTrial()) break;
    }
  });
}

TEST_P(SearcherConformance, HasAtLeastOneProposal) {
  ForEachSweep([](SweepOfSearcher& sweep) {
    EXPECT_TRUE(std::holds_alternative<Proposed>(sweep.searcher().Suggest(ProposalNumber(0))));
  });
}

TEST_P(SearcherConformance, AskingChangesNothing) {
  ForEachSweep([](SweepOfSearcher& sweep) {
    for (uint32_t trial = 0; trial < 10; ++trial) {
      const auto first = sweep.searcher().Suggest(sweep.next());
      for (const uint32_t other : {99u, 0u, 7u}) {
        static_cast<void>(sweep.searcher().Suggest(ProposalNumber(other)));
      }
      EXPECT_EQ(sweep.searcher().Suggest(sweep.next()), first);
      if (!sweep.RunTrial()) break;
    }
  });
}

TEST_P(SearcherConformance, AReplayGoesOnAlike) {
  ForEachSweep([](SweepOfSearcher& sweep) {
    for (uint32_t trial = 0; trial < kTrials; ++trial) {
      if (trial % 7 == 0) {
        EXPECT_EQ(sweep.Replayed()->Suggest(sweep.next()), sweep.searcher().Suggest(sweep.next()));
      }
      if (!sweep.RunTrial()) break;
    }
    EXPECT_EQ(sweep.Replayed()->Suggest(sweep.next()), sweep.searcher().Suggest(sweep.next()));
  });
}

TEST_P(SearcherConformance, ARestoredOneGoesOnAlike) {
  ForEachSweep([](SweepOfSearcher& sweep) {
    for (uint32_t trial = 0; trial < kTrials; ++trial) {
      if (trial % 7 == 0) {
        EXPECT_EQ(sweep.Restored()->Suggest(sweep.next()), sweep.searcher().Suggest(sweep.next()));
      }
      if (!sweep.RunTrial()) break;
    }
    EXPECT_EQ(sweep.Restored()->Suggest(sweep.next()), sweep.searcher().Suggest(sweep.next()));
  });
}

TEST_P(SearcherConformance, ALargerLimitChangesNoProposal) {
  ForEachSweep([](SweepOfSearcher& sweep) {
    for (uint32_t trial = 0; trial < 7; ++trial) sweep.RunTrial();
    const Suggestion before = sweep.searcher().Suggest(sweep.next());
    sweep.Extend();
    EXPECT_EQ(sweep.searcher().Suggest(sweep.next()), before);
  });
}

TEST_P(SearcherConformance, TheEndIsFinal) {
  ForEachSweep([](SweepOfSearcher& sweep) {
    uint32_t trials = 0;
    while (trials < kTrials && sweep.RunTrial()) ++trials;
    if (trials == kTrials) return;  // not at its end
    sweep.Observe(SearchExhausted{SweepId(1)});
    sweep.Observe(TrialEnded{{SweepId(1), TrialNumber(0)}, TrialState::kFailed, "it broke"});
    EXPECT_TRUE(std::holds_alternative<Exhausted>(sweep.searcher().Suggest(sweep.next())));
  });
}

// The trial of the searcher's own proposal has run to its end with this loss.
void TellDone(Searcher& searcher, const std::string& name, uint32_t proposal, const Config& config,
              double loss) {
  const TrialId id(SweepId(1), TrialNumber(proposal));
  for (Fact fact : std::initializer_list<Fact>{
           TrialCreated{
               .trial = id, .config = config, .origin = name, .proposal = ProposalNumber(proposal)},
           TrialReported{{id, 1}, {Step(1), {{"loss", loss}}, Seconds(1)}},
           TrialEnded{id, TrialState::kCompleted, "done"}}) {
    searcher.Observe({EventSeq(proposal + 1), Time{0}, std::move(fact)});
  }
}

// Whoever lets a sweep of a program have no limit promises to come to an end by itself.
TEST_P(SearcherConformance, AFiniteSpaceIsUsedUpWithoutARepeat) {
  const Algorithms algorithms = Registered();
  SweepSpec spec{
      .objectives = {Minimise("loss")},
      .space = SearchSpace({{"a", IntDomain{.min = 1, .max = 10}},
                            {"b", CategoricalDomain{{true, false, int64_t{3}}}},
                            {"c", IntDomain{.min = 0, .max = 3}, {{"b", {true}}}}}),
      .searcher = WithFallbacks(GetParam(), algorithms.FindSearcher(GetParam())->options)};
  spec.program.command = {"train"};
  const auto made = algorithms.MakeSearcher(spec);
  if (!made.ok()) {
    EXPECT_THAT(made.error().message, testing::HasSubstr("never ends by itself"));
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

// Scales of many decades, ranges at the ends of what a number can say, single points; values alike
// or as far apart as they go.
TEST_P(SearcherConformance, ExtremeSpacesAndValuesAreSearched) {
  const Algorithms algorithms = Registered();
  const auto& entry = *algorithms.FindSearcher(GetParam());
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
  countable.erase(countable.begin());  // too many for a list of all
  for (const auto& parameters : {ranges, countable}) {
    const SweepSpec spec{.objectives = {Minimise("loss")},
                         .space = SearchSpace(parameters),
                         .searcher = WithFallbacks(GetParam(), entry.options),
                         .stop = {.max_trials = 200}};
    const auto made = algorithms.MakeSearcher(spec);
    if (!made.ok()) continue;  // a space that it refuses
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

TEST_P(SearcherConformance, AnEditedSpaceHoldsForTheNextProposal) {
  ForEachSweep([](SweepOfSearcher& sweep) {
    for (uint32_t trial = 0; trial < 12; ++trial) sweep.RunTrial();
    sweep.Narrow();
    for (uint32_t trial = 0; trial < 12; ++trial) {
      const Suggestion suggestion = sweep.searcher().Suggest(sweep.next());
      if (const auto* proposed = std::get_if<Proposed>(&suggestion))
        ExpectInSpace(sweep.space(), proposed->config);
      if (!sweep.RunTrial()) break;
    }
  });
}

TEST_P(SearcherConformance, IsDescribedInOneLine) {
  const Algorithms algorithms = Registered();
  const auto& entry = *algorithms.FindSearcher(GetParam());
  EXPECT_FALSE(entry.help.empty());
  EXPECT_EQ(entry.help.find('\n'), std::string::npos);
  for (const Option& option : entry.options) EXPECT_FALSE(option.help.empty()) << option.name;
}

INSTANTIATE_TEST_SUITE_P(Registered, SearcherConformance, testing::ValuesIn(Names()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace attune::conformance
