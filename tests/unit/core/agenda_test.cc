#include "core/brain/agenda.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/brain/brain.h"
#include "tests/conformance/seed.h"
#include "tests/support/every_fact.h"
#include "tests/support/toy_algorithms.h"

namespace attune {
namespace {

// Sends random commands for executors and for sweeps of many kinds.
class RandomService {
 public:
  explicit RandomService(uint64_t seed) : random_(seed, TrialNumber{}, "test/agenda") {}

  // Executes a random command.
  void ExecuteRandomCommand() {
    now_ += OneIn(3) ? 0 : Integer(1, 3'000'000);
    if (IsGrowing() && OneIn(3)) return OneIn(2) ? Lose() : Create();
    switch (Integer(0, 11)) {
      case 0:
        return Join();
      case 1:
        if (OneIn(3)) return OneIn(2) ? Lose() : Drain();
        return ChangeConnection();
      case 2:
        if (state().sweeps.size() < 6) Create();
        return;
      case 3:
        return ControlSweep();
      default:
        for (int64_t i = Integer(1, 4); i > 0; --i) SendMessage();
    }
  }

  // Advances in portions, and at once on a copy of the state whose agenda is new. Returns the
  // events of both.
  std::pair<std::string, std::string> Advance() {
    Brain copy(algorithms_, MakeReachable());
    EXPECT_TRUE(copy.Load(SaveState(state())).ok());
    const std::string fresh = Text(copy.Advance(Time{now_}));
    std::string with_history;
    for (;;) {
      Brain::Portion portion = brain_.Advance(Time{now_}, static_cast<size_t>(Integer(1, 3)));
      with_history += Text(portion.events);
      for (const Event& event : portion.events) {
        const auto* yielding = std::get_if<TrialYielding>(&event.fact);
        if (yielding != nullptr && yielding->verdict.kind == VerdictKind::kResize) ++growths_;
        if (yielding != nullptr && yielding->verdict.kind == VerdictKind::kContinue) ++cancelled_;
      }
      if (!portion.more) break;
    }
    EXPECT_EQ(brain_.Due(Time{now_}), Due(state(), Time{now_}));
    return {with_history, fresh};
  }

  int growths() const { return growths_; }
  int cancelled() const { return cancelled_; }

 private:
  const State& state() const { return brain_.state(); }
  Reachable MakeReachable() {
    return [this](const std::string& name) { return !disconnected_.contains(name); };
  }
  int64_t Integer(int64_t low, int64_t high) { return random_.Integer(low, high); }
  bool OneIn(int64_t n) { return Integer(1, n) == 1; }
  std::string SomeHost() { return "h" + std::to_string(Integer(1, 5)); }

  static std::string Text(const std::vector<Event>& events) {
    std::string text;
    for (const Event& event : events) text += testing::Bytes(event.fact);
    return text;
  }

  // Executes a command and ignores errors.
  void Do(const Command& command) {
    const auto done = brain_.Execute(command, Time{now_});
    static_cast<void>(done);
  }

  void Join() {
    const std::string name = SomeHost();
    disconnected_.erase(name);
    Do(JoinExecutor{.name = name,
                    .instance = std::to_string(Integer(1, 2)),
                    .resources = {.cpus = static_cast<int>(Integer(1, 6)),
                                  .gpus = static_cast<int>(Integer(0, 3)),
                                  .memory_bytes = Integer(0, 8)},
                    .spans = OneIn(2),
                    .folder = OneIn(2)   ? "folder of " + name
                              : OneIn(2) ? "shared"
                                         : "",
                    .labels = OneIn(2) ? Labels{{"kind", "new"}} : Labels(),
                    .time_left = Seconds(OneIn(4) ? static_cast<double>(Integer(30, 300)) : 0)});
    brain_.RecheckReachable();
  }
  void Drain() {
    const std::string name = SomeHost();
    if (OneIn(3)) return Do(DrainExecutor{name, "", OneIn(2)});
    Do(ResumeExecutor{name});
  }
  void Lose() {
    const auto executor = state().executors.find(SomeHost());
    if (executor != state().executors.end())
      Do(LoseExecutor{executor->first, executor->second.incarnation, "silent"});
  }
  void ChangeConnection() {
    if (OneIn(2)) {
      disconnected_.insert(SomeHost());
    } else {
      disconnected_.erase(SomeHost());
      brain_.RecheckReachable();
    }
  }

  void Create() {
    SweepSpec spec = testing::ToySpec();
    spec.gang = {.workers = static_cast<int>(Integer(1, 5)),
                 .per_worker = {.cpus = static_cast<int>(Integer(0, 2)),
                                .gpus = OneIn(3) ? 1 : 0,
                                .memory_bytes = Integer(0, 2)},
                 .placement = OneIn(2) ? PlacementPolicy::kPack : PlacementPolicy::kSpread};
    if (OneIn(2)) spec.gang.min_workers = static_cast<int>(Integer(1, spec.gang.workers));
    spec.gang.grow_after = Seconds(static_cast<double>(Integer(0, 6)));
    if (spec.gang.per_worker.cpus == 0) spec.gang.per_worker.gpus = 1;
    if (spec.gang.workers == 1 && spec.gang.per_worker.gpus == 1)
      spec.gang.gpu_percent = static_cast<int>(Integer(1, 4)) * 25;
    if (OneIn(4)) spec.gang.required = {{"kind", {"new"}}};
    spec.priority = static_cast<int>(Integer(0, 1));
    spec.stop.max_trials = static_cast<int>(Integer(1, 8));
    if (OneIn(4)) spec.max_concurrent_trials = 2;
    if (OneIn(4)) spec.stop.max_time = Seconds(static_cast<double>(Integer(1, 60)));
    if (OneIn(4)) spec.stop.max_gpu_hours = static_cast<double>(Integer(1, 30)) / 3600;
    if (OneIn(4)) spec.scheduler.name = "cloner";
    spec.failure.backoff = Seconds(static_cast<double>(Integer(0, 4)));
    Do(CreateSweep{.spec = spec});
  }

  const Sweep* SomeSweep() {
    if (state().sweeps.empty()) return nullptr;
    auto sweep = state().sweeps.begin();
    std::advance(sweep, Integer(0, std::ssize(state().sweeps) - 1));
    return &sweep->second;
  }
  void ControlSweep() {
    const Sweep* sweep = SomeSweep();
    if (sweep == nullptr) return;
    const SweepId id = sweep->id;
    switch (Integer(0, 6)) {
      case 0:
        return Do(PauseSweep{id});
      case 1:
      case 2:
        return Do(ResumeSweep{id});
      case 3:
        return Do(EnqueueTrial{id, {{"x", int64_t{7}}}, ""});
      case 4:
        if (OneIn(4)) Do(KillSweep{id});
        return;
      case 5:
        return Do(ExtendSweep{.sweep = id, .max_trials = sweep->created + 1});
      default:
        if (!sweep->live.empty()) Do(KillTrial{{id, *sweep->live.begin()}});
    }
  }

  // Whether a gang was asked to leave so that it can start with more workers.
  bool IsGrowing() const {
    for (const auto& [id, sweep] : state().sweeps) {
      for (const auto& [time, number] : sweep.small) {
        const Trial& trial = *sweep.Find(number);
        if (trial.yield_verdict && trial.yield_verdict->kind == VerdictKind::kResize) return true;
      }
    }
    return false;
  }

  // An executor sends a message about one of its gangs.
  void SendMessage() {
    const Sweep* sweep = SomeSweep();
    if (sweep == nullptr || sweep->live.empty()) return;
    auto number = sweep->live.begin();
    std::advance(number, Integer(0, std::ssize(sweep->live) - 1));
    const Trial& trial = *sweep->Find(*number);
    const Attempt live = *trial.live;
    const RankSlot& slot = live.ranks[static_cast<size_t>(Integer(0, std::ssize(live.ranks) - 1))];
    const auto tell = [&](auto fact, const std::string& executor) {
      fact.attempt = live.id;
      Do(RecordFact{live.epoch, std::move(fact), executor});
    };
    const Step next(trial.last_step.value + 1);
    switch (Integer(0, 5)) {
      case 0:
        return tell(AttemptEnded{.outcome = Outcome::kFinished}, slot.executor);
      case 1:
        return tell(AttemptEnded{.outcome = Outcome::kFailed,
                                 .failure = {.kind = OneIn(8) ? FailureKind::kEnvironment
                                                              : FailureKind::kExit,
                                             .message = "it broke"}},
                    slot.executor);
      case 2:
        return tell(
            CheckpointSaved{
                .checkpoint = {next, "/" + ToString(live.id) + "/" + std::to_string(next.value),
                               ""}},
            live.ranks.front().executor);
      default:
        return tell(
            TrialReported{.report = {next,
                                     {{"score", random_.Uniform(0, 2)}},
                                     Seconds(trial.live->seconds.value +
                                             static_cast<double>(OneIn(40) ? Integer(0, 150) : 0)),
                                     OneIn(2)}},
            live.ranks.front().executor);
    }
  }

  RandomStream random_;
  int64_t now_ = 1;
  int growths_ = 0;
  int cancelled_ = 0;
  const Algorithms algorithms_ = testing::ToyAlgorithms();
  std::set<std::string> disconnected_;
  Brain brain_{algorithms_, MakeReachable()};
};

TEST(Agenda, DecidesTheSameWithAndWithoutHistory) {
  constexpr int kTurns = 250;
  int growths = 0;
  int cancelled = 0;
  for (uint64_t round = 0; round < conformance::kRounds * 8; ++round) {
    const uint64_t seed = conformance::BaseSeed() + round;
    RandomService service(seed);
    for (int turn = 0; turn < kTurns; ++turn) {
      service.ExecuteRandomCommand();
      const auto [with_history, fresh] = service.Advance();
      ASSERT_EQ(with_history, fresh) << conformance::SeedNote(seed) << ", turn " << turn;
    }
    growths += service.growths();
    cancelled += service.cancelled();
  }
  EXPECT_GT(growths, 0) << "the test must cover growth";
  EXPECT_GT(cancelled, 0);
}

}  // namespace
}  // namespace attune
