#include "server/conductor/thinker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <variant>

#include "server/conductor/conductor.h"
#include "tests/support/memory_store.h"
#include "tests/support/toy_algorithms.h"

namespace attune::server {
namespace {

constexpr int kPatienceMs = 10'000;

class ThinkerTest : public ::testing::Test {
 protected:
  // A process of a server, which thinks or not.
  void Begin(bool thinks) {
    conductor = std::make_unique<Conductor>(algorithms, store, [this] { return Time{++now}; });
    conductor->SetReachable([](const std::string&) { return true; });
    if (thinks) {
      thinker = std::make_unique<Thinker>(*conductor);
      conductor->Subscribe(thinker.get());
    }
    ASSERT_TRUE(conductor->Start().ok());
  }
  void End() {
    conductor->Stop();
    thinker.reset();
    conductor.reset();
  }
  void Create() {
    SweepSpec spec = attune::testing::ToySpec();
    spec.searcher.name = "thinker";
    ASSERT_TRUE(conductor->Execute(JoinExecutor{"box", "a", "127.0.0.1", {.cpus = 2}}).ok());
    ASSERT_TRUE(conductor->Execute(CreateSweep{spec, "text", ""}).ok());
  }
  int Running() {
    int running = 0;
    conductor->Query([&](const Brain& brain) {
      running = brain.state().Find(SweepId(1))->Count(TrialState::kRunning);
    });
    return running;
  }
  void AwaitRunning(int trials) {
    EventSeq seen{0};
    while (Running() < trials) seen = conductor->WaitForEvents(seen, kPatienceMs);
  }

  attune::testing::MemoryStore store;
  const Algorithms algorithms = attune::testing::ToyAlgorithms();
  std::atomic<int64_t> now = 0;
  std::unique_ptr<Conductor> conductor;
  std::unique_ptr<Thinker> thinker;
};

TEST_F(ThinkerTest, WhatASearcherThinksOfStarts) {
  Begin(true);
  Create();
  AwaitRunning(2);
  End();
}

TEST_F(ThinkerTest, WhatWasBegunWhenTheLastProcessEndedIsThoughtAgain) {
  Begin(false);
  Create();
  EXPECT_EQ(Running(), 0);
  End();
  Begin(true);
  AwaitRunning(2);
  End();
}

}  // namespace
}  // namespace attune::server
