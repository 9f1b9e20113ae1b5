#include "server/conductor/proposal_runner.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/brain/brain.h"
#include "tests/support/toy_algorithms.h"

namespace attune::server {
namespace {

const Error kFull{ErrorCode::kUnavailable, "the disk is full"};

// Keeps the submitted commands.
class Desk final : public Submissions {
 public:
  void Submit(Command command, Done done) override {
    proposals.push_back(std::get<Propose>(command));
    if (refuses) {
      done(kFull);
    } else {
      done(std::span<const Event>());
    }
  }
  void Record(std::vector<Command>, Stored) override {}
  void RecordEnds(std::vector<Command>) override {}
  void Post(StateReader) override {}
  void CheckForStarts() override {}

  std::vector<Propose> proposals;
  bool refuses = false;
};

class ProposalRunnerTest : public ::testing::Test {
 protected:
  ProposalRunnerTest() {
    SweepSpec spec = attune::testing::ToySpec();
    spec.searcher.name = "thinker";
    Do(JoinExecutor{"box", "a", "127.0.0.1", {.cpus = 2}});
    begun_ = Do(CreateSweep{.spec = spec});
  }

  std::vector<Event> Do(const Command& command) {
    std::vector<Event> events = *brain_.Execute(command, Time{++now_});
    for (Event& event : brain_.Advance(Time{++now_})) events.push_back(std::move(event));
    return events;
  }
  void RunJobs() {
    for (const auto& job : std::exchange(jobs_, {})) job();
  }

  int64_t now_ = 0;
  const Algorithms algorithms_ = attune::testing::ToyAlgorithms();
  Brain brain_{algorithms_, [](const std::string&) { return true; }};
  std::vector<Event> begun_;
  Desk desk_;
  std::vector<std::function<void()>> jobs_;
  ProposalRunner thinker_{desk_,
                          [this](std::function<void()> job) { jobs_.push_back(std::move(job)); }};
};

TEST_F(ProposalRunnerTest, ComputesProposalsThatAreDueAtTheStart) {
  thinker_.OnStarted(brain_);
  RunJobs();
  ASSERT_EQ(desk_.proposals.size(), 1u);
  EXPECT_EQ(desk_.proposals.front().position, begun_.back().seq);
}

TEST_F(ProposalRunnerTest, ComputesEachProposalOnceOnAnotherThread) {
  thinker_.OnDurable(begun_, brain_);
  EXPECT_TRUE(desk_.proposals.empty());
  thinker_.OnDurable(begun_, brain_);
  RunJobs();
  EXPECT_EQ(desk_.proposals.size(), 1u);
}

TEST_F(ProposalRunnerTest, EachProposalStartsTheNext) {
  thinker_.OnStarted(brain_);
  RunJobs();
  thinker_.OnDurable(Do(desk_.proposals.back()), brain_);
  RunJobs();
  ASSERT_EQ(desk_.proposals.size(), 2u);
  EXPECT_EQ(desk_.proposals.back().proposal, ProposalNumber(1));
}

TEST_F(ProposalRunnerTest, SubmitsAgainOnceTheStoreHasSpace) {
  thinker_.OnStarted(brain_);
  desk_.refuses = true;
  RunJobs();
  thinker_.OnState(EventSeq(3), kFull);
  EXPECT_EQ(desk_.proposals.size(), 1u);
  desk_.refuses = false;
  thinker_.OnState(EventSeq(3), {});
  ASSERT_EQ(desk_.proposals.size(), 2u);
  EXPECT_EQ(desk_.proposals[1].position, desk_.proposals[0].position);
}

}  // namespace
}  // namespace attune::server
