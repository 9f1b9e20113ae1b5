#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "tests/conformance/searcher_sweep.h"
#include "tests/conformance/seed.h"

namespace attune::conformance {
namespace {

constexpr uint32_t kTrials = SweepOfSearcher::kTrials;

class SearcherConformance : public testing::TestWithParam<std::string> {
 protected:
  // Runs the body on sweeps with many random spaces.
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

TEST_P(SearcherConformance, DescribesEachProposalBriefly) {
  ForEachSweep([](SweepOfSearcher& sweep) {
    for (uint32_t trial = 0; trial < kTrials; ++trial) {
      const Suggestion suggestion = sweep.searcher().Suggest(sweep.next());
      if (const auto* proposed = std::get_if<Proposed>(&suggestion)) {
        const Rationale& rationale = proposed->rationale;
        EXPECT_FALSE(rationale.rule.empty());
        EXPECT_FALSE(rationale.text.empty());
        EXPECT_LE(rationale.text.size(), 200u) << rationale.text;
        EXPECT_TRUE(std::isfinite(rationale.score.value_or(0))) << rationale.text;
        for (const TrialNumber number : rationale.from) EXPECT_LT(number.value, sweep.trials());
      }
      if (!sweep.RunTrial()) break;
    }
  });
}

TEST_P(SearcherConformance, HasAtLeastOneProposal) {
  ForEachSweep([](SweepOfSearcher& sweep) {
    if (sweep.trials() > 0) return;  // the space may have only one point
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

TEST_P(SearcherConformance, AReplayMakesTheSameProposals) {
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

TEST_P(SearcherConformance, ARestoredSearcherMakesTheSameProposals) {
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

TEST_P(SearcherConformance, AskingAndSavingInBetweenChangesNothing) {
  ForEachSweep([](SweepOfSearcher& sweep) {
    for (uint32_t trial = 0; trial < kTrials && sweep.RunTrial(); ++trial) continue;
    EXPECT_EQ(sweep.ReplayedWithBreaks()->Suggest(sweep.next()),
              sweep.searcher().Suggest(sweep.next()));
  });
}

TEST_P(SearcherConformance, EqualSeedsGiveEqualSweeps) {
  ForEachSweep([](SweepOfSearcher& sweep) {
    SweepOfSearcher other(GetParam(), sweep.seed());
    for (uint32_t trial = 0; trial < 20; ++trial) {
      EXPECT_EQ(sweep.RunTrial(), other.RunTrial());
    }
    EXPECT_EQ(sweep.configs(), other.configs());
    EXPECT_EQ(sweep.searcher().Suggest(sweep.next()), other.searcher().Suggest(other.next()));
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
    if (trials == kTrials) return;  // the sweep has not reached its end
    sweep.Observe(SearchExhausted{SweepId(1)});
    for (int i = 0; i < 20; ++i) sweep.GoOn();
    EXPECT_TRUE(std::holds_alternative<Exhausted>(sweep.searcher().Suggest(sweep.next())));
  });
}

TEST_P(SearcherConformance, AnEditedSpaceAppliesToTheNextProposal) {
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

INSTANTIATE_TEST_SUITE_P(Registered, SearcherConformance, testing::ValuesIn(SearcherNames()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace attune::conformance
