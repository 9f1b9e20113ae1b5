#include <benchmark/benchmark.h>

#include <utility>
#include <vector>

#include "core/brain.h"
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
  SweepSpec spec;
  spec.name = "bench";
  spec.program.command = {"/bin/true"};
  spec.objective = Minimise("loss");
  spec.space = SearchSpace(
      {{.name = "lr", .domain = FloatDomain{.min = 1e-5, .max = 0.1, .scale = Scale::kLog}},
       {.name = "layers", .domain = IntDomain{.min = 2, .max = 8}}});
  spec.searcher = {"random", {}};
  spec.scheduler = {"asha", {{"min", int64_t{1}}, {"reduction_factor", int64_t{3}}}};
  spec.max_step = Step(81);
  spec.max_trials = max_trials;
  return spec;
}

// A sweep on `slots` CPUs in which every trial reports steps 1, 2, … until it is stopped.
std::vector<Event> RunSweep(int max_trials, int slots) {
  Brain brain(All(), [](const std::string&) { return true; });
  std::vector<Event> log;
  int64_t now = 0;
  const auto execute = [&](const Command& command) {
    for (auto events :
         {std::move(brain.Execute(command, Time{++now})).value(), brain.Advance(Time{now})}) {
      log.insert(log.end(), std::make_move_iterator(events.begin()),
                 std::make_move_iterator(events.end()));
    }
  };
  execute(JoinExecutor{"box", "a", "127.0.0.1", {.cpus = slots}});
  execute(CreateSweep{Spec(max_trials), "", ""});
  const Sweep& sweep = *brain.state().Find(SweepId{1});
  while (!Ended(sweep.state)) {
    const std::vector<TrialNumber> live(sweep.live.begin(), sweep.live.end());
    for (const TrialNumber number : live) {
      const Trial& trial = *sweep.Find(number);
      const Attempt attempt = *trial.live;
      const double loss = std::get<double>(*trial.config.Find("lr")) + 1.0 / (1 + now % 97);
      if (attempt.verdict == VerdictKind::kStop) {
        execute(RecordFact{attempt.epoch, AttemptEnded{attempt.id, Outcome::kFinished, {}}});
      } else {
        execute(RecordFact{
            attempt.epoch,
            TrialReported{attempt.id, {Step(trial.last_step.value + 1), {{"loss", loss}}}}});
      }
    }
  }
  return log;
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

}  // namespace
}  // namespace attune
