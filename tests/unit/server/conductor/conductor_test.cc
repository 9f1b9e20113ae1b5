#include "server/conductor/conductor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "tests/support/memory_store.h"
#include "tests/support/toy_algorithms.h"

namespace attune::server {
namespace {

constexpr int kPatienceMs = 10'000;

class Recorder final : public Listener {
 public:
  void OnDurable(std::span<const Event> events, const Brain&) override {
    for (const Event& event : events) seen.push_back(event.seq);
  }
  std::vector<EventSeq> seen;
};

class ConductorTest : public ::testing::Test {
 protected:
  ConductorTest() {
    conductor.SetReachable([](const std::string&) { return true; });
    conductor.Subscribe(&recorder);
    EXPECT_TRUE(conductor.Start().ok());
  }

  Result<std::vector<Event>> Join() {
    return conductor.Execute(JoinExecutor{"box", "a", "127.0.0.1", {.cpus = 2}});
  }
  Result<std::vector<Event>> Create() {
    return conductor.Execute(CreateSweep{attune::testing::ToySpec(), "text", ""});
  }

  attune::testing::MemoryStore store;
  const Algorithms algorithms = attune::testing::ToyAlgorithms();
  std::atomic<int64_t> now = 0;
  Recorder recorder;
  Conductor conductor{algorithms, store, [this] { return Time{++now}; }};
};

TEST_F(ConductorTest, AnswersAfterTheCommit) {
  const auto events = Create();
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(events->size(), 1u);
  EXPECT_GE(conductor.WaitForEvents(EventSeq{0}, kPatienceMs), EventSeq{1});
}

TEST_F(ConductorTest, WhatFollowsACommandIsWrittenInItsTransaction) {
  ASSERT_TRUE(Join().ok());
  ASSERT_TRUE(Create().ok());
  conductor.Query([](const Brain&) {});
  EXPECT_EQ(store.commits, 2);
  EXPECT_EQ(store.events.size(), 6u);  // joined, created, 2 × (trial, attempt)
}

TEST_F(ConductorTest, ListenersSeeEveryEventInOrder) {
  ASSERT_TRUE(Join().ok());
  ASSERT_TRUE(Create().ok());
  conductor.Query([&](const Brain&) {
    ASSERT_EQ(recorder.seen.size(), 6u);
    for (size_t i = 0; i < recorder.seen.size(); ++i) EXPECT_EQ(recorder.seen[i].value, i + 1);
  });
}

TEST_F(ConductorTest, ARefusedCommandLeavesNoTrace) {
  const auto events = conductor.Execute(StopSweep{SweepId{7}});
  ASSERT_FALSE(events.ok());
  EXPECT_EQ(events.error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(store.events.empty());
}

TEST_F(ConductorTest, AFullDiskRefusesTheBatchAndItGoesOnWhenThereIsSpace) {
  ASSERT_TRUE(Join().ok());
  conductor.Query([&](const Brain&) {
    store.full = Error{ErrorCode::kStorageFull, "the disk is full"};
  });
  const auto refused = Create();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kStorageFull);
  EXPECT_FALSE(conductor.Ready().ok());
  EXPECT_FALSE(Create().ok());
  conductor.Query([&](const Brain& brain) {
    EXPECT_TRUE(brain.state().sweeps.empty());
    store.full.reset();
  });
  auto again = Create();
  while (!again.ok()) again = Create();  // until the next probe of the store
  EXPECT_TRUE(conductor.Ready().ok());
  conductor.Query([&](const Brain& brain) {
    EXPECT_EQ(brain.state().last_seq.value, store.events.size());
    EXPECT_EQ(brain.state().sweeps.size(), 1u);
  });
}

TEST_F(ConductorTest, ARestartGoesOnWithTheLog) {
  ASSERT_TRUE(Create().ok());
  conductor.Stop();
  Conductor next(algorithms, store, [this] { return Time{++now}; });
  next.SetReachable([](const std::string&) { return true; });
  ASSERT_TRUE(next.Start().ok());
  ASSERT_TRUE(next.Execute(JoinExecutor{"box", "a", "127.0.0.1", {.cpus = 2}}).ok());
  next.Query([](const Brain& brain) {
    EXPECT_EQ(brain.state().Find(SweepId{1})->Count(TrialState::kRunning), 2);
  });
}

TEST_F(ConductorTest, AStoppedConductorRefusesAndEndsWaits) {
  auto wait = std::async(std::launch::async,
                         [&] { return conductor.WaitForEvents(EventSeq{5}, kPatienceMs); });
  conductor.Stop();
  EXPECT_EQ(wait.get(), EventSeq{0});
  const auto refused = Create();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
}

TEST_F(ConductorTest, ManyThreadsAreServedInBatches) {
  constexpr int kThreads = 8;
  constexpr int kEach = 50;
  std::vector<std::thread> threads;
  std::atomic<int> created = 0;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kEach; ++k) created += Create().ok() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(created, kThreads * kEach);
  conductor.Query([&](const Brain& brain) {
    EXPECT_EQ(brain.state().sweeps.size(), static_cast<size_t>(kThreads * kEach));
    EXPECT_EQ(store.events.size(), recorder.seen.size());
  });
}

}  // namespace
}  // namespace attune::server
