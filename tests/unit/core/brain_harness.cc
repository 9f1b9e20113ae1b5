#include "tests/unit/core/brain_harness.h"

#include <utility>

#include "base/result.h"

namespace attune {

BrainTest::BrainTest() { Join("box", {.cpus = 2}); }

BrainTest::~BrainTest() = default;

std::vector<Event> BrainTest::Do(const Command& command) {
  auto events = brain.Execute(command, Tick());
  EXPECT_TRUE(events.ok()) << events.error().message;
  auto following = brain.Advance(Tick());
  events->insert(events->end(), following.begin(), following.end());
  log.insert(log.end(), events->begin(), events->end());
  return *events;
}

Error BrainTest::RefusalOf(const Command& command) {
  const auto events = brain.Execute(command, Tick());
  EXPECT_FALSE(events.ok());
  return events.ok() ? Error{} : events.error();
}

std::vector<Event> BrainTest::Wait(double seconds) {
  now += static_cast<int64_t>(seconds * 1e6);
  auto events = brain.Advance(Tick());
  log.insert(log.end(), events.begin(), events.end());
  return events;
}

std::vector<Event> BrainTest::Join(const std::string& executor, Resources resources,
                                   const std::string& instance) {
  return Do(JoinExecutor{executor, instance, "127.0.0.1", resources});
}

std::vector<Event> BrainTest::JoinSpanning(const std::string& executor, Resources resources,
                                           const std::string& folder) {
  return Do(JoinExecutor{executor, "a", "127.0.0.1", resources, true, folder});
}

std::vector<Event> BrainTest::JoinWithFolder(const std::string& executor, Resources resources,
                                             const std::string& folder) {
  return Do(JoinExecutor{executor, "a", "127.0.0.1", resources, false, folder});
}

std::vector<Event> BrainTest::Lose(const std::string& executor) {
  return Do(LoseExecutor{executor, brain.state().executors.at(executor).incarnation, "silent"});
}

SweepId BrainTest::Create(SweepSpec spec) {
  Do(CreateSweep{.spec = std::move(spec), .source = "text"});
  return brain.state().last_sweep;
}

SweepState BrainTest::StateOf(SweepId id) const {
  const Sweep* open = brain.state().Find(id);
  return open != nullptr ? open->state : brain.state().ended.at(id).state;
}

TrialState BrainTest::StateOf(uint32_t number) const {
  const Sweep* open = brain.state().Find(id());
  if (open != nullptr && open->Find(TrialNumber(number)) != nullptr) return trial(number).state;
  return Last<TrialEnded>([&](const TrialEnded& fact) { return fact.trial == Id(number); }).state;
}

SweepEnded BrainTest::DescribeEnding() const {
  return Last<SweepEnded>([&](const SweepEnded& fact) { return fact.sweep == id(); });
}

std::vector<Event> BrainTest::Report(uint32_t number, int64_t step, double score, bool waits) {
  return Tell(number, TrialReported{.report = {Step(step), {{"score", score}}, Seconds(0), waits}});
}

std::vector<Event> BrainTest::Save(uint32_t number, int64_t step) {
  return Tell(number, CheckpointSaved{.checkpoint = {Step(step), Path(number, step), "sha256:"}});
}

std::vector<Event> BrainTest::SaveAndReport(uint32_t number, int64_t step) {
  Save(number, step);
  return Report(number, step, 0.5 + 0.01 * static_cast<double>(step));
}

std::string BrainTest::Path(uint32_t number, int64_t step) const {
  return "/" + std::to_string(number) + "/" + std::to_string(step);
}

std::vector<Event> BrainTest::Fail(uint32_t number, FailureKind kind) {
  return Tell(number, AttemptEnded{.outcome = Outcome::kFailed,
                                   .failure = {.kind = kind, .rank = 1, .message = "it broke"}});
}

std::vector<Event> BrainTest::Finish(uint32_t number) {
  return Tell(number, AttemptEnded{.outcome = Outcome::kFinished});
}

TrialRecord BrainTest::RecordOf(uint32_t number, Step last_step,
                                std::vector<KeptCheckpoint> checkpoints) const {
  return {.id = Id(number),
          .config = {{"x", static_cast<int64_t>(number)}},
          .state = StateOf(number),
          .attempts = 1,
          .last_step = last_step,
          .checkpoints = std::move(checkpoints),
          .seen = brain.state().last_seq};
}

}  // namespace attune
