#include "core/brain/audit.h"
#include "core/state/replay.h"
#include "core/state/snapshot.h"
#include "tests/support/mentions.h"
#include "tests/unit/core/brain_harness.h"

// Tests of the answers of searchers.
namespace attune {
namespace {

class SearchTest : public BrainTest {
 protected:
  static SweepSpec SpecOf(const std::string& searcher) {
    SweepSpec spec = testing::ToySpec();
    spec.searcher.name = searcher;
    return spec;
  }
  int64_t X(uint32_t number) const { return std::get<int64_t>(*trial(number).config.Find("x")); }

  // The first fault that the audit finds in the log; "" if it finds none.
  std::string FirstAuditFault() const { return FirstAuditFaultWith(algorithms); }
  std::string FirstAuditFaultWith(const Algorithms& known) const {
    Auditor auditor(known);
    for (const Event& event : log) {
      if (auto fault = auditor.Next(event)) return *fault;
    }
    return "";
  }
};

TEST_F(SearchTest, AnEnqueuedTrialDoesNotShiftProposals) {
  Create(SpecOf("counting"));
  Do(EnqueueTrial{id(), {{"x", int64_t{77}}}, ""});
  Finish(0);
  Finish(1);
  EXPECT_EQ(X(2), 77);
  EXPECT_EQ(trial(2).state, TrialState::kRunning);
  EXPECT_EQ(X(3), 2);
  EXPECT_EQ(FirstAuditFault(), "");
}

TEST_F(SearchTest, ProposalsAreNumberedWithoutInitialPointsAndEnqueuedTrials) {
  SweepSpec spec = SpecOf("counting");
  spec.initial_points = {Config{{"x", int64_t{500}}}};
  Create(spec);
  const auto created = [&](uint32_t number) {
    return Last<TrialCreated>([&](const TrialCreated& fact) { return fact.trial == Id(number); });
  };
  EXPECT_EQ(created(0).proposal, std::nullopt);
  EXPECT_EQ(created(1).proposal, ProposalNumber(0));
}

TEST_F(SearchTest, ATrialHasARationaleForItsConfiguration) {
  SweepSpec spec = SpecOf("counting");
  spec.initial_points = {Config{{"x", int64_t{500}}}};
  Create(spec);
  Do(EnqueueTrial{id(), {{"x", int64_t{77}}}, ""});
  const auto rationale = [&](uint32_t number) {
    return **Last<TrialCreated>([&](const TrialCreated& fact) {
               return fact.trial == Id(number);
             }).rationale;
  };
  EXPECT_THAT(rationale(0).text, testing::Mentions("1 of 1"));
  EXPECT_EQ(rationale(1), (Rationale{.rule = "counting", .text = "number 0"}));
  EXPECT_EQ(rationale(2).rule, kEnqueued);
  EXPECT_EQ(FirstAuditFault(), "");
}

TEST_F(SearchTest, TheAuditFindsARationaleThatIsNotTheSearchers) {
  Create(SpecOf("counting"));
  for (Event& event : log) {
    if (auto* created = std::get_if<TrialCreated>(&event.fact))
      created->rationale = Rationale{.rule = "guessing", .text = "a hunch"};
  }
  EXPECT_THAT(FirstAuditFault(), testing::Mentions("a hunch", "counting", "number 0"));
}

TEST_F(SearchTest, TheAuditAcceptsALogWithoutRationales) {
  Create(SpecOf("counting"));
  for (Event& event : log) {
    if (auto* created = std::get_if<TrialCreated>(&event.fact)) created->rationale.reset();
  }
  EXPECT_EQ(FirstAuditFault(), "");
}

TEST_F(SearchTest, AWaitingSearcherIsAskedAgainAfterAnEventOfItsSweep) {
  Join("large", {.cpus = 8});
  Create(SpecOf("pairs"));
  EXPECT_EQ(sweep().created, 2);
  Finish(0);
  EXPECT_EQ(sweep().created, 2);
  Finish(1);
  EXPECT_EQ(sweep().created, 4);
}

TEST_F(SearchTest, AWaitingSearcherLeavesTheSlotsToTheNextSweep) {
  Join("large", {.cpus = 8});
  const SweepId waits = Create(SpecOf("pairs"));
  const SweepId other = Create(SpecOf("counting"));
  EXPECT_EQ(sweep(waits).live.size(), 2u);
  EXPECT_EQ(sweep(other).live.size(), 4u);
}

TEST_F(SearchTest, ASearcherThatWaitsForNothingEndsTheSweep) {
  Create(SpecOf("idle"));
  EXPECT_EQ(StateOf(id()), SweepState::kCompleted);
  EXPECT_THAT(DescribeEnding().reason, testing::Mentions("searcher idle"));
  EXPECT_EQ(FirstAuditFault(), "");
}

TEST_F(SearchTest, AnAskDuringAWaitOfTheSearcherGetsNothing) {
  SweepSpec spec = SpecOf("pairs");
  spec.program.command.clear();
  Create(spec);
  Do(AskTrial{id(), "a"});
  Do(AskTrial{id(), "b"});
  EXPECT_EQ(Find<TrialCreated>(Do(AskTrial{id(), "c"})), nullptr);
  Finish(0);
  Finish(1);
  EXPECT_NE(Find<TrialCreated>(Do(AskTrial{id(), "c"})), nullptr);
}

TEST_F(SearchTest, TheAuditFindsAProposalWithAWrongNumber) {
  Create(SpecOf("counting"));
  for (Event& event : log) {
    if (auto* created = std::get_if<TrialCreated>(&event.fact))
      created->proposal = ProposalNumber(created->trial.number.value + 5);
  }
  EXPECT_THAT(FirstAuditFault(), testing::Mentions("proposal 5", "0"));
}

TEST_F(SearchTest, TheAuditFindsAFalseEndOfTheSearch) {
  Create(SpecOf("counting"));
  log.push_back({EventSeq(log.size() + 1), Time{++now}, SearchExhausted{id()}});
  EXPECT_THAT(FirstAuditFault(), testing::Mentions("s1", "exhausted", "counting", "x=2"));
}

// ---- searchers whose proposals are computed by a thread ----------------------------------------

class ThinkingTest : public SearchTest {
 protected:
  // Computes all due proposals, like the server's thread.
  std::vector<Event> Think() {
    std::vector<Event> events;
    for (const Thought& thought : brain.Thoughts()) {
      for (Event& event : Do(thought.Think())) events.push_back(std::move(event));
    }
    return events;
  }
};

TEST_F(ThinkingTest, AFreeSlotRequestsAProposalThatStartsTheTrial) {
  Create(SpecOf("thinker"));
  EXPECT_EQ(sweep().created, 0);
  ASSERT_EQ(brain.Thoughts().size(), 1u);
  const auto events = Think();
  EXPECT_EQ(Find<TrialCreated>(events)->thought, EventSeq(3))
      << "the events before it are the executor and the sweep";
  EXPECT_EQ(trial(0).state, TrialState::kRunning);
  EXPECT_EQ(sweep().thinking->proposal, ProposalNumber(1)) << "another slot is free";
  EXPECT_EQ(FirstAuditFault(), "");
}

TEST_F(ThinkingTest, TheSearcherSeesTheLogUpToTheRequestOnly) {
  Create(SpecOf("thinker"));
  Think();
  Report(0, 1, 0.9);
  Report(0, 2, 0.9);
  Think();  // of the requests from before the reports
  EXPECT_EQ(X(1), 0);
  EXPECT_EQ(FirstAuditFault(), "");
  Finish(1);  // requests another proposal
  Think();
  EXPECT_EQ(X(2), 2);
  EXPECT_EQ(FirstAuditFault(), "");
}

TEST_F(ThinkingTest, ARepeatedOrOutdatedProposalChangesNothing) {
  Create(SpecOf("thinker"));
  const Propose proposal = brain.Thoughts().front().Think();
  Propose other = proposal;
  other.position = EventSeq(proposal.position.value + 1);
  EXPECT_THAT(Do(other), ::testing::IsEmpty());
  EXPECT_NE(Find<TrialCreated>(Do(proposal)), nullptr);
  EXPECT_THAT(Do(proposal), ::testing::IsEmpty());
}

TEST_F(ThinkingTest, AProposalIsComputedAgainAfterARestartOfTheServer) {
  Create(SpecOf("thinker"));
  Think();
  Report(0, 1, 0.9);
  Brain again(algorithms, [](const std::string&) { return true; });
  for (const Event& event : log) again.Replay(event);
  Brain loaded(algorithms, [](const std::string&) { return true; });
  ASSERT_TRUE(loaded.Load(SaveState(brain.state())).ok());
  const Propose before = brain.Thoughts().front().Think();
  for (const Brain* other : {&again, &loaded}) {
    const Propose after = other->Thoughts().front().Think();
    EXPECT_EQ(after.position, before.position);
    EXPECT_EQ(after.suggestion, before.suggestion);
  }
}

TEST_F(ThinkingTest, OnlyRequestsAfterAPositionAreListed) {
  Create(SpecOf("thinker"));
  const EventSeq position = brain.Thoughts().front().position;
  EXPECT_EQ(brain.Thoughts(EventSeq(position.value - 1)).size(), 1u);
  EXPECT_EQ(brain.Thoughts(position).size(), 0u);
}

TEST_F(ThinkingTest, AnExtensionReplacesThePendingRequest) {
  Create(SpecOf("thinker"));
  const Propose proposal = brain.Thoughts().front().Think();
  Do(ExtendSweep{.sweep = id(), .max_trials = 9});
  EXPECT_GT(brain.Thoughts().front().position, proposal.position);
  EXPECT_THAT(Do(proposal), ::testing::IsEmpty());
  Think();
  EXPECT_EQ(X(0), 0);
}

TEST_F(ThinkingTest, AStoppedSweepEndsWithoutTheProposal) {
  Create(SpecOf("thinker"));
  const Propose proposal = brain.Thoughts().front().Think();
  Do(StopSweep{id()});
  EXPECT_EQ(StateOf(id()), SweepState::kStopped);
  EXPECT_THAT(Do(proposal), ::testing::IsEmpty());
}

TEST_F(ThinkingTest, ASweepDoesNotEndWhileAProposalIsDue) {
  Create(SpecOf("thinker"));
  Think();
  Finish(0);
  EXPECT_EQ(StateOf(id()), SweepState::kRunning);
}

TEST_F(ThinkingTest, AWaitingSearcherIsAskedAgainAfterTheNextEvent) {
  Join("large", {.cpus = 8});
  Create(SpecOf("thinking_pairs"));
  Think();
  Think();
  EXPECT_EQ(sweep().created, 2);
  EXPECT_NE(Find<SearchWaits>(Think()), nullptr);
  EXPECT_THAT(brain.Thoughts(), ::testing::IsEmpty());
  Do(AnnotateSweep{id(), {.note = "a note"}});
  Do(AnnotateTrial{Id(0), {.tags = {{"best"}}}});
  EXPECT_THAT(brain.Thoughts(), ::testing::IsEmpty()) << "notes and tags cause no decision";
  Finish(0);
  EXPECT_NE(Find<SearchWaits>(Think()), nullptr);
  Finish(1);
  EXPECT_NE(Find<TrialCreated>(Think()), nullptr);
  EXPECT_EQ(FirstAuditFault(), "");
}

TEST_F(ThinkingTest, SlotsStayReservedWhileAProposalIsDue) {
  SweepSpec small = SpecOf("counting");
  const SweepId first = Create(small);
  SweepSpec large = SpecOf("thinker");
  large.gang.workers = 2;
  const SweepId second = Create(large);
  const auto finish = [&](uint32_t number) {
    const Attempt live = *brain.state().Find(first)->Find(TrialNumber(number))->live;
    return Do(RecordFact{live.epoch, AttemptEnded{live.id, Outcome::kFinished, {}}});
  };
  finish(0);
  ASSERT_TRUE(brain.state().reservation);
  EXPECT_EQ(brain.state().reservation->sweep, second);
  for (uint32_t trial = 1; !brain.state().Find(first)->live.empty(); ++trial) finish(trial);
  ASSERT_TRUE(brain.state().Find(second)->thinking);
  EXPECT_TRUE(brain.state().reservation) << "the other sweep has more trials to start";
  Think();
  EXPECT_EQ(brain.state().Find(second)->live.size(), 1u);
}

TEST_F(ThinkingTest, AnEnqueuedTrialThatReachesTheLimitDiscardsTheProposal) {
  SweepSpec spec = SpecOf("thinker");
  spec.stop.max_trials = 1;
  Create(spec);
  const Propose proposal = brain.Thoughts().front().Think();
  Do(EnqueueTrial{id(), {{"x", int64_t{7}}}, ""});
  EXPECT_THAT(brain.Thoughts(), ::testing::IsEmpty());
  EXPECT_THAT(Do(proposal), ::testing::IsEmpty());
  Finish(0);
  EXPECT_EQ(StateOf(id()), SweepState::kCompleted);
}

TEST_F(ThinkingTest, ASecondAskGetsTheTrialThatTheFirstRequested) {
  SweepSpec spec = SpecOf("thinker");
  spec.program.command.clear();
  Create(spec);
  EXPECT_EQ(Find<AttemptAssigned>(Do(AskTrial{id(), "a"})), nullptr);
  EXPECT_THAT(Do(AskTrial{id(), "a"}), ::testing::IsEmpty()) << "the proposal is being computed";
  Think();
  EXPECT_NE(Find<AttemptAssigned>(Do(AskTrial{id(), "a"})), nullptr);
}

TEST_F(ThinkingTest, TheAuditFindsAProposalThatWasNotComputed) {
  Create(SpecOf("thinker"));
  Think();
  for (Event& event : log) {
    if (auto* created = std::get_if<TrialCreated>(&event.fact))
      created->config = {{"x", int64_t{5}}};
  }
  EXPECT_THAT(FirstAuditFault(), testing::Mentions("x=5", "thinker", "x=0"));
}

// ---- options that were added since --------------------------------------------------------------

TEST_F(SearchTest, ALogFromBeforeAnOptionExistedPassesReplayAndAudit) {
  Create(SpecOf("counting"));
  Algorithms later = testing::ToyAlgorithms();
  Entry<Searcher> entry = *later.FindSearcher("counting");
  entry.options = {{.name = "patience", .fallback = int64_t{7}, .help = "added later"}};
  entry.make = [make = entry.make](const SweepSpec& spec) {
    EXPECT_EQ(std::get<int64_t>(spec.searcher.options.at("patience")), 7);
    return make(spec);
  };
  Algorithms grown;
  grown.Add(entry);
  for (const auto& scheduler : later.schedulers()) grown.Add(scheduler);

  Brain again(grown, [](const std::string&) { return true; });
  for (const Event& event : log) again.Replay(event);
  EXPECT_EQ(again.state().Find(id())->spec.searcher.options.size(), 1u);
  EXPECT_EQ(FirstAuditFaultWith(grown), "");
}

TEST_F(SearchTest, AMissingRequiredOptionOfAStoredSpecIsNamed) {
  Create(SpecOf("counting"));
  Algorithms grown;
  Entry<Searcher> entry = *testing::ToyAlgorithms().FindSearcher("counting");
  entry.options = {{.name = "depth", .fallback = int64_t{0}, .required = true, .help = "how deep"}};
  grown.Add(entry);
  for (const auto& scheduler : algorithms.schedulers()) grown.Add(scheduler);
  EXPECT_THAT(FirstAuditFaultWith(grown), testing::Mentions("s1", "searcher.depth"));
  EXPECT_TRUE(CanReplay(grown, log[0]).ok());
  EXPECT_THAT(CanReplay(grown, log[1]).error().message, testing::Mentions("searcher.depth: "));
}

}  // namespace
}  // namespace attune
