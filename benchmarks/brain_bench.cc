#include <benchmark/benchmark.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "benchmarks/bench_sweep.h"
#include "core/brain/brain.h"
#include "schedulers/register.h"
#include "searchers/register.h"

namespace attune {
namespace {

const Algorithms& All() {
  static const Algorithms algorithms = [] {
    Algorithms all;
    searchers::RegisterSearchers(all);
    schedulers::RegisterSchedulers(all);
    return all;
  }();
  return algorithms;
}

SweepSpec Spec(int max_trials) {
  SweepSpec spec = BenchSweep();
  spec.scheduler = {"asha", {{"min", int64_t{1}}, {"reduction_factor", int64_t{3}}}};
  spec.max_step = Step(81);
  spec.stop.max_trials = max_trials;
  return spec;
}

// A sweep on CPUs in which every trial reports steps 1, 2, … until it is stopped.
class Service {
 public:
  Service(int max_trials, int slots) {
    Execute(JoinExecutor{"box", "a", "127.0.0.1", {.cpus = slots}});
    Execute(CreateSweep{Spec(max_trials), "", ""});
  }

  // Null when it has ended.
  const Sweep* sweep() const { return brain_.state().Find(SweepId{1}); }

  // One word of each gang.
  void Turn() {
    const std::set<TrialNumber> live = sweep()->live;
    for (const TrialNumber number : live) {
      const Trial& trial = *sweep()->Find(number);
      const Attempt& attempt = *trial.live;
      const double loss = std::get<double>(*trial.config.Find("lr")) + 1.0 / (1 + now_ % 97);
      if (attempt.verdict == VerdictKind::kStop) {
        Execute(RecordFact{attempt.epoch, AttemptEnded{attempt.id, Outcome::kFinished, {}}});
      } else {
        Execute(RecordFact{
            attempt.epoch,
            TrialReported{attempt.id, {Step(trial.last_step.value + 1), {{"loss", loss}}}}});
      }
    }
  }

  std::vector<Event> log;

 private:
  void Execute(const Command& command) {
    for (auto events :
         {std::move(brain_.Execute(command, Time{++now_})).value(), brain_.Advance(Time{now_})}) {
      log.insert(log.end(), std::make_move_iterator(events.begin()),
                 std::make_move_iterator(events.end()));
    }
  }

  Brain brain_{All(), [](const std::string&) { return true; }};
  int64_t now_ = 0;
};

std::vector<Event> RunSweep(int max_trials, int slots) {
  Service service(max_trials, slots);
  while (service.sweep() != nullptr) service.Turn();
  return std::move(service.log);
}

void SweepFromBeginningToEnd(benchmark::State& state) {
  int64_t events = 0;
  for (auto _ : state) {
    events += std::ssize(RunSweep(static_cast<int>(state.range(0)), 64));
  }
  state.SetItemsProcessed(events);
  state.SetLabel("events");
}
BENCHMARK(SweepFromBeginningToEnd)->Arg(100)->Arg(10'000)->Unit(benchmark::kMillisecond);

void ReplayOfTheLog(benchmark::State& state) {
  const std::vector<Event> log = RunSweep(static_cast<int>(state.range(0)), 64);
  for (auto _ : state) {
    Brain brain(All(), [](const std::string&) { return true; });
    for (const Event& event : log) brain.Replay(event);
    benchmark::DoNotOptimize(brain.state().last_seq);
  }
  state.SetItemsProcessed(state.iterations() * std::ssize(log));
  state.SetLabel("events");
}
BENCHMARK(ReplayOfTheLog)->Arg(10'000)->Unit(benchmark::kMillisecond);

// What the brain decides, beside what it is told: proposals, assignments, verdicts, ends.
bool IsDecision(const Event& event) {
  return !std::holds_alternative<TrialReported>(event.fact) &&
         !std::holds_alternative<AttemptEnded>(event.fact);
}

void Decisions(benchmark::State& state) {
  int64_t decisions = 0;
  for (auto _ : state) decisions += std::ranges::count_if(RunSweep(10'000, 64), IsDecision);
  state.SetItemsProcessed(decisions);
  state.SetLabel("decisions");
}
BENCHMARK(Decisions)->Unit(benchmark::kMillisecond);

// The latency of one more proposal and of one more verdict when so many trials have ended.
void SuggestAfter(benchmark::State& state) {
  Service service(static_cast<int>(state.range(0)) + 100, 64);
  while (service.sweep()->created < state.range(0)) service.Turn();
  const Sweep& sweep = *service.sweep();
  for (auto _ : state) benchmark::DoNotOptimize(sweep.searcher->Suggest(sweep.next_proposal));
}
BENCHMARK(SuggestAfter)->Arg(100)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

void JudgeAfter(benchmark::State& state) {
  Service service(static_cast<int>(state.range(0)) + 100, 64);
  while (service.sweep()->created < state.range(0)) service.Turn();
  const Sweep& sweep = *service.sweep();
  const Config config;
  const TrialView fresh{{sweep.id, TrialNumber(static_cast<uint32_t>(sweep.created))}, config};
  const Report report{Step(1), {{"loss", 0.05}}};
  for (auto _ : state) benchmark::DoNotOptimize(sweep.scheduler->Judge(fresh, report));
}
BENCHMARK(JudgeAfter)->Arg(100)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

void SaveTheState(benchmark::State& state) {
  const std::vector<Event> log = RunSweep(static_cast<int>(state.range(0)), 64);
  Brain brain(All(), [](const std::string&) { return true; });
  for (size_t i = 0; i + 1 < log.size(); ++i) brain.Replay(log[i]);
  size_t bytes = 0;
  for (auto _ : state) bytes = SaveState(brain.state()).size();
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(SaveTheState)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attune
