#include "pilots/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune::pilots {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Resources kPilot{.cpus = 16, .gpus = 2, .memory_bytes = int64_t{4} << 30};

GangDemand Gangs(int gangs, int workers, int cpus = 8, int gpus = 0) {
  return {.sweep = "s1",
          .gangs = gangs,
          .workers = workers,
          .min_workers = workers,
          .worker = {.cpus = cpus, .gpus = gpus}};
}
Host Joined(const std::string& name, int cpus_free = 16, int gpus_free = 2) {
  return {name, kPilot, {cpus_free, gpus_free, kPilot.memory_bytes}, name};
}
Host NoPilot(const std::string& name) { return {name, kPilot, kPilot}; }
Host Node(const std::string& pilot, int node, int cpus_free = 16) {
  Host host = Joined(pilot + "." + std::to_string(node), cpus_free);
  host.pilot = pilot;
  return host;
}
Plan Make(std::vector<GangDemand> wanted, std::vector<Host> hosts, std::vector<Pilot> pilots,
          Limits limits) {
  return MakePlan(std::move(wanted), hosts, pilots, kPilot, limits, "--gres");
}

TEST(PilotPlan, SubmitsNothingWithoutWaitingGangs) {
  EXPECT_EQ(Make({}, {}, {}, {0, 8}).submit, 0);
  EXPECT_EQ(Make({}, {}, {{"a"}}, {3, 8}).submit, 2) << "but the minimum is kept";
}

TEST(PilotPlan, SubmitsThePilotsThatGangsNeed) {
  EXPECT_EQ(Make({Gangs(1, 1)}, {}, {}, {0, 8}).submit, 1);
  EXPECT_EQ(Make({Gangs(2, 1)}, {}, {}, {0, 8}).submit, 1) << "two workers of 8 CPUs share one";
  EXPECT_EQ(Make({Gangs(5, 1)}, {}, {}, {0, 8}).submit, 3);
  EXPECT_EQ(Make({Gangs(1, 4)}, {}, {}, {0, 8}).submit, 2) << "a gang over two";
  EXPECT_EQ(Make({Gangs(3, 1, 1, 2)}, {}, {}, {0, 8}).submit, 3) << "GPUs bind";
}

TEST(PilotPlan, SubmitsAtMostTheLimit) {
  EXPECT_EQ(Make({Gangs(1000, 2)}, {}, {}, {0, 3}).submit, 3);
  EXPECT_EQ(Make({Gangs(1000, 2)}, {Joined("a", 0)}, {{"a"}, {"b"}}, {0, 3}).submit, 1);
  EXPECT_EQ(Make({Gangs(1000, 2)}, {}, {{"a", 1, true}, {"b"}, {"c"}}, {0, 3}).submit, 0)
      << "one that ends still has its node";
}

TEST(PilotPlan, GangsOnAPilotThatEndsSoonNeedAnother) {
  const Pilot closing{.name = "a", .closing = true};
  EXPECT_EQ(Make({}, {Joined("a", 4)}, {closing}, {0, 8}).submit, 1);
  EXPECT_EQ(Make({}, {Joined("a", 4)}, {closing}, {0, 1}).submit, 0) << "it still has its node";
  EXPECT_EQ(Make({}, {Joined("a")}, {closing}, {0, 8}).submit, 0) << "nothing runs there";
  const Plan plan = Make({}, {Joined("a", 4)}, {closing, {"b"}}, {0, 8});
  EXPECT_EQ(plan.submit, 0);
  EXPECT_THAT(plan.needed, ElementsAre("b"));
  EXPECT_EQ(Make({Gangs(1, 1)}, {Joined("a")}, {closing}, {0, 8}).submit, 1)
      << "waiting gangs must not start there";
}

TEST(PilotPlan, AGangGetsAllMissingPilotsOrNone) {
  const Plan plan = Make({Gangs(1, 6)}, {Joined("a", 0)}, {{"a"}}, {0, 3});
  EXPECT_EQ(plan.submit, 0) << "two pilots would wait for a third";
  EXPECT_THAT(plan.impossible, IsEmpty()) << "once `a` is free it can run";
  EXPECT_EQ(Make({Gangs(1, 6)}, {Joined("a", 8)}, {{"a"}}, {0, 4}).submit, 3);
}

TEST(PilotPlan, SubmitsNoPilotsWithoutRequiredLabels) {
  GangDemand labelled = Gangs(1, 4);
  labelled.missing_labels = "gpu=h100";
  const Plan plan = Make({labelled}, {}, {}, {0, 8});
  EXPECT_EQ(plan.submit, 0);
  EXPECT_THAT(plan.impossible, ElementsAre(Field(&Hindrance::text, HasSubstr("gpu=h100"))));
}

TEST(PilotPlan, DoesNotCountExecutorsWithoutRequiredLabels) {
  GangDemand labelled = Gangs(1, 2);
  EXPECT_EQ(Make({labelled}, {NoPilot("desk")}, {}, {0, 8}).submit, 0);
  labelled.excluded_executors = {"desk"};
  EXPECT_EQ(Make({labelled}, {NoPilot("desk")}, {}, {0, 8}).submit, 1);
}

TEST(PilotPlan, CountsSubmittedPilots) {
  const Plan plan = Make({Gangs(1, 4)}, {}, {{"a"}, {"b"}}, {0, 8});
  EXPECT_EQ(plan.submit, 0);
  EXPECT_THAT(plan.needed, ElementsAre("a", "b"));
}

TEST(PilotPlan, PlansTheLargestGangFirst) {
  EXPECT_EQ(Make({Gangs(1, 1), Gangs(1, 6)}, {}, {}, {0, 3}).submit, 3)
      << "after the small gang, the large one would not fit";
}

TEST(PilotPlan, NeedsAnIdlePilotWhoseGangWaitsForAnotherPilot) {
  const Plan plan = Make({Gangs(1, 4)}, {Joined("a")}, {{"a"}, {"b"}, {"c"}}, {0, 8});
  EXPECT_TRUE(plan.needed.contains("a"));
  EXPECT_EQ(plan.needed.size(), 2u);
}

TEST(PilotPlan, CountsExecutorsOutsidePilotsAndNeverReleasesThem) {
  const Plan plan = Make({Gangs(2, 1)}, {NoPilot("login")}, {}, {0, 8});
  EXPECT_EQ(plan.submit, 0);
  EXPECT_THAT(plan.needed, IsEmpty());
}

TEST(PilotPlan, ReportsImpossibleGangsAndSubmitsNothing) {
  const Plan wide = Make({Gangs(1, 7)}, {}, {}, {0, 3});
  EXPECT_EQ(wide.submit, 0);
  ASSERT_EQ(wide.impossible.size(), 1u);
  EXPECT_THAT(wide.impossible[0].text, HasSubstr("4 pilots"));
  EXPECT_THAT(wide.impossible[0].text, HasSubstr("be 3"));
  const Plan deep = Make({Gangs(1, 1, 1, 3)}, {}, {}, {0, 3});
  EXPECT_EQ(deep.submit, 0);
  EXPECT_THAT(deep.impossible[0].text, HasSubstr("16 CPUs, 2 GPUs"));
  EXPECT_THAT(deep.impossible[0].text, HasSubstr("--gres"));
  EXPECT_EQ(Make({Gangs(1, 7), Gangs(1, 1)}, {}, {}, {0, 3}).submit, 1)
      << "the impossible gang does not block others";
}

TEST(PilotPlan, AnElasticGangGetsPilotsUpToTheLimit) {
  GangDemand elastic = Gangs(1, 100);
  elastic.min_workers = 2;
  const Plan plan = Make({elastic}, {}, {}, {0, 3});
  EXPECT_EQ(plan.submit, 3);
  EXPECT_THAT(plan.impossible, IsEmpty());
}

TEST(PilotPlan, CountsPilotsWithSeveralNodesByNodes) {
  EXPECT_EQ(Make({Gangs(1, 1)}, {}, {}, {0, 8, 4}).submit, 1);
  EXPECT_EQ(Make({Gangs(1, 8)}, {}, {}, {0, 8, 4}).submit, 1) << "four nodes of two workers";
  EXPECT_EQ(Make({Gangs(1, 9)}, {}, {}, {0, 8, 4}).submit, 2);
  EXPECT_EQ(Make({Gangs(1000, 1)}, {}, {}, {0, 8, 3}).submit, 2) << "a third would be nine nodes";
  EXPECT_EQ(Make({Gangs(1000, 1)}, {}, {{"a", 4}}, {0, 8, 4}).submit, 1);
  EXPECT_EQ(Make({Gangs(1000, 1)}, {}, {{"a", 2}}, {0, 5, 2}).submit, 1)
      << "a pilot of another size, from an earlier manager";
}

TEST(PilotPlan, RoundsTheMinimumUpToPilotsWithinTheMaximum) {
  EXPECT_EQ(Make({}, {}, {}, {1, 8, 4}).submit, 1);
  EXPECT_EQ(Make({}, {}, {}, {5, 8, 4}).submit, 2);
  EXPECT_EQ(Make({}, {}, {{"a", 3}}, {4, 6, 4}).submit, 0) << "one more would be seven nodes";
}

TEST(PilotPlan, AGangOnAllNodesOfAPilotNeedsOnlyThatPilot) {
  const Plan plan = Make({Gangs(1, 4)}, {Node("a", 0), Node("a", 1), Node("b", 0), Node("b", 1)},
                         {{"a", 2}, {"b", 2}}, {0, 8, 2});
  EXPECT_EQ(plan.submit, 0);
  EXPECT_THAT(plan.needed, ElementsAre("a"));
}

TEST(PilotPlan, CountsNodesThatHaveNotJoined) {
  const Plan plan = Make({Gangs(1, 4)}, {Node("a", 1)}, {{"a", 2}}, {0, 8, 2});
  EXPECT_EQ(plan.submit, 0);
  EXPECT_THAT(plan.needed, ElementsAre("a"));
}

TEST(PilotPlan, DoesNotCountNodesOfAnEndingPilot) {
  EXPECT_EQ(Make({Gangs(1, 1)}, {Node("a", 0)}, {{"a", 2, true}}, {0, 8, 2}).submit, 1);
  EXPECT_EQ(Make({Gangs(1, 1)}, {Node("a", 0)}, {{"a", 2, true}}, {0, 3, 2}).submit, 0);
}

TEST(PilotPlan, DoesNotCountADrainedNode) {
  Host drained = Node("a", 0);
  drained.takes_gangs = false;
  EXPECT_EQ(Make({Gangs(1, 4)}, {drained, Node("a", 1)}, {{"a", 2}}, {0, 2, 2}).submit, 0);
  EXPECT_EQ(Make({Gangs(1, 4)}, {drained, Node("a", 1)}, {{"a", 2}}, {0, 4, 2}).submit, 1);
}

TEST(PilotPlan, ReportsImpossibleGangsInPilots) {
  const Plan plan = Make({Gangs(1, 13)}, {}, {}, {0, 6, 3});
  EXPECT_EQ(plan.submit, 0);
  ASSERT_EQ(plan.impossible.size(), 1u);
  EXPECT_THAT(plan.impossible[0].text, HasSubstr("3 pilots of 3 nodes"));
  EXPECT_THAT(plan.impossible[0].text, HasSubstr("be 2"));
}

}  // namespace
}  // namespace attune::pilots
