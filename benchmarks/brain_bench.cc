#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "benchmarks/bench_sweep.h"
#include "cli/algorithms.h"
#include "core/brain/brain.h"

namespace attune {
namespace {

SweepSpec Spec(int max_trials) {
  SweepSpec spec = BenchSweep();
  spec.scheduler = {
      "asha",
      {{"min", int64_t{1}}, {"mode", std::string("stop")}, {"reduction_factor", int64_t{3}}}};
  spec.max_step = Step(81);
  spec.stop.max_trials = max_trials;
  cli::AllAlgorithms().Complete(spec);
  return spec;
}

// A sweep in which every trial reports steps 1, 2, … until the scheduler stops it.
class Service {
 public:
  Service(int max_trials, int slots) {
    Execute(JoinExecutor{"box", "a", "127.0.0.1", {.cpus = slots}});
    Execute(CreateSweep{Spec(max_trials), "", ""});
  }

  // Null after the sweep has ended.
  const Sweep* sweep() const { return brain_.state().Find(SweepId{1}); }

  // Each gang reports once, or ends.
  void ReportAll() {
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

  Brain brain_{cli::AllAlgorithms(), [](const std::string&) { return true; }};
  int64_t now_ = 0;
};

std::vector<Event> RunSweep(int max_trials, int slots) {
  Service service(max_trials, slots);
  while (service.sweep() != nullptr) service.ReportAll();
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
    Brain brain(cli::AllAlgorithms(), [](const std::string&) { return true; });
    for (const Event& event : log) brain.Replay(event);
    benchmark::DoNotOptimize(brain.state().last_seq);
  }
  state.SetItemsProcessed(state.iterations() * std::ssize(log));
  state.SetLabel("events");
}
BENCHMARK(ReplayOfTheLog)->Arg(10'000)->Unit(benchmark::kMillisecond);

// Events that the brain decides (proposals, assignments, verdicts, ends), not those that it
// receives.
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

// The latency of a proposal after state.range(0) trials. JudgeAfter measures the latency of a
// verdict.
void SuggestAfter(benchmark::State& state) {
  Service service(static_cast<int>(state.range(0)) + 100, 64);
  while (service.sweep()->created < state.range(0)) service.ReportAll();
  const Sweep& sweep = *service.sweep();
  for (auto _ : state) benchmark::DoNotOptimize(sweep.searcher->Suggest(sweep.next_proposal));
}
BENCHMARK(SuggestAfter)->Arg(100)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

void JudgeAfter(benchmark::State& state) {
  Service service(static_cast<int>(state.range(0)) + 100, 64);
  while (service.sweep()->created < state.range(0)) service.ReportAll();
  const Sweep& sweep = *service.sweep();
  const Config config;
  const TrialView fresh{{sweep.id, TrialNumber(static_cast<uint32_t>(sweep.created))}, config};
  const Report report{Step(1), {{"loss", 0.05}}};
  for (auto _ : state) benchmark::DoNotOptimize(sweep.scheduler->Judge(fresh, report));
}
BENCHMARK(JudgeAfter)->Arg(100)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

void SaveTheState(benchmark::State& state) {
  const std::vector<Event> log = RunSweep(static_cast<int>(state.range(0)), 64);
  Brain brain(cli::AllAlgorithms(), [](const std::string&) { return true; });
  for (size_t i = 0; i + 1 < log.size(); ++i) brain.Replay(log[i]);
  size_t bytes = 0;
  for (auto _ : state) bytes = SaveState(brain.state()).size();
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(SaveTheState)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

// ---- many sweeps on many executors -----------------------------------------------------------

constexpr int kSweeps = 1'000;
constexpr int kExecutors = 1'000;
constexpr int kSlots = 8;           // of each executor
constexpr size_t kPortion = 2'000;  // maximum number of events of one Advance()

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Cluster {
 public:
  Cluster() {
    for (int i = 0; i < kExecutors; ++i)
      Execute(JoinExecutor{"n" + std::to_string(i), "a", "", {.cpus = kSlots}});
    SweepSpec spec = BenchSweep();
    spec.stop.max_trials = 1'000'000;  // never reached: random search must have a limit
    for (int i = 0; i < kSweeps; ++i) Execute(CreateSweep{spec, "", ""});
  }

  // Starts all gangs that can start. Returns the seconds of the longest portion.
  double Fill() {
    double longest = 0;
    for (bool more = true; more;) {
      const auto begin = std::chrono::steady_clock::now();
      more = brain.Advance(Time{++now}, kPortion).more;
      longest = std::max(longest, SecondsSince(begin));
    }
    return longest;
  }

  // Processes the next report of a gang and its consequences. Returns the seconds.
  double Report() {
    const Sweep& sweep =
        *brain.state().Find(SweepId{static_cast<uint64_t>(++reports % kSweeps) + 1});
    const Trial& trial = *sweep.Find(*sweep.live.begin());
    const Attempt& live = *trial.live;
    const RecordFact fact{
        live.epoch, TrialReported{live.id, {Step(trial.last_step.value + 1), {{"loss", 0.5}}}},
        live.ranks.front().executor};
    const auto begin = std::chrono::steady_clock::now();
    Execute(fact);
    brain.Advance(Time{now}, kPortion);
    return SecondsSince(begin);
  }

  Brain brain{cli::AllAlgorithms(), [](const std::string&) { return true; }};
  int64_t now = 0;
  int64_t reports = 0;

 private:
  void Execute(const Command& command) {
    benchmark::DoNotOptimize(brain.Execute(command, Time{++now}).value().size());
  }
};

void ColdFill(benchmark::State& state) {
  double longest = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto cluster = std::make_unique<Cluster>();
    state.ResumeTiming();
    longest = std::max(longest, cluster->Fill());
    state.PauseTiming();
    cluster.reset();
    state.ResumeTiming();
  }
  state.counters["longest_portion_ms"] = longest * 1e3;
  state.SetItemsProcessed(state.iterations() * kExecutors * kSlots);
  state.SetLabel("gangs");
}
BENCHMARK(ColdFill)->Unit(benchmark::kMillisecond);

void IdlePass(benchmark::State& state) {
  Cluster cluster;
  cluster.Fill();
  for (auto _ : state)
    benchmark::DoNotOptimize(cluster.brain.Advance(Time{++cluster.now}, kPortion).events.size());
}
BENCHMARK(IdlePass)->Unit(benchmark::kMicrosecond);

// As after a network event: the brain checks again which executors are reachable.
void IdlePassAfterNetworkEvent(benchmark::State& state) {
  Cluster cluster;
  cluster.Fill();
  for (auto _ : state) benchmark::DoNotOptimize(cluster.brain.Advance(Time{++cluster.now}).size());
}
BENCHMARK(IdlePassAfterNetworkEvent)->Unit(benchmark::kMicrosecond);

void ReportWhileAllWait(benchmark::State& state) {
  Cluster cluster;
  cluster.Fill();
  std::vector<double> seconds;
  for (auto _ : state) seconds.push_back(cluster.Report());
  std::ranges::sort(seconds);
  state.counters["p99_us"] = seconds[seconds.size() * 99 / 100] * 1e6;
}
BENCHMARK(ReportWhileAllWait)->Unit(benchmark::kMicrosecond);

// The trials run in a client, so that KillSweep must end an attempt of each.
void KillASweep(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    auto brain =
        std::make_unique<Brain>(cli::AllAlgorithms(), [](const std::string&) { return true; });
    SweepSpec spec = BenchSweep();
    spec.program = {};
    benchmark::DoNotOptimize(brain->Execute(CreateSweep{spec, "", ""}, Time{1}).value().size());
    for (int64_t i = 0; i < state.range(0); ++i)
      benchmark::DoNotOptimize(brain->Execute(AskTrial{SweepId{1}, ""}, Time{2}).value().size());
    state.ResumeTiming();
    benchmark::DoNotOptimize(brain->Execute(KillSweep{SweepId{1}}, Time{3}).value().size());
    state.PauseTiming();
    brain.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetLabel("trials");
}
BENCHMARK(KillASweep)->Arg(1'000)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attune
