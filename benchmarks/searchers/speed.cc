// Measures the time of asking and telling, in one process and one thread. The loss takes no time.

#include <benchmark/benchmark.h>

#include "benchmarks/searchers/ask_tell.h"
#include "core/base/random.h"
#include "searchers/register.h"

namespace attune::benchmarks {
namespace {

SearchSpace Box(int64_t dimensions) {
  std::vector<Parameter> parameters;
  for (int64_t i = 0; i < dimensions; ++i) {
    parameters.push_back({"x" + std::to_string(i), FloatDomain{.min = -5, .max = 5}, {}});
  }
  return SearchSpace(std::move(parameters));
}

double Sphere(const Config& config) {
  double sum = 0;
  for (const auto& [name, value] : config.entries()) {
    sum += std::get<double>(value) * std::get<double>(value);
  }
  return sum;
}

// A whole loop. state.range: dimensions, trials.
void Loop(benchmark::State& state, const char* searcher) {
  for (auto _ : state) {
    AskTell tuner(Box(state.range(0)), searcher, 1);
    for (int64_t i = 0; i < state.range(1); ++i) {
      const auto trial = tuner.Ask();
      tuner.Tell(trial->number, Sphere(trial->config));
    }
  }
}
BENCHMARK_CAPTURE(Loop, random, "random")->Args({10, 2000})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Loop, sobol, "sobol")->Args({10, 2000})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Loop, tpe, "tpe")
    ->Args({3, 2000})
    ->Args({10, 2000})
    ->Unit(benchmark::kMillisecond);

BENCHMARK_CAPTURE(Loop, evolution, "evolution")->Args({10, 2000})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Loop, nsga2, "nsga2")->Args({10, 2000})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Loop, cmaes, "cmaes")
    ->Args({5, 10'000})
    ->Args({100, 2000})
    ->Unit(benchmark::kMillisecond);

// A suggestion after state.range(0) observations of random search.
void SuggestAfter(benchmark::State& state, const char* searcher, int64_t dimensions) {
  const SearchSpace space = Box(dimensions);
  Algorithms algorithms;
  searchers::RegisterSearchers(algorithms);
  SweepSpec spec{.objectives = {Minimise("loss")}, .space = space, .searcher = {.name = searcher}};
  algorithms.Complete(spec);
  const auto searcher_under_test = algorithms.MakeSearcher(spec).value();
  spec.searcher = {.name = "random"};
  const auto random = algorithms.MakeSearcher(spec).value();
  const auto count = static_cast<uint32_t>(state.range(0));
  for (uint32_t i = 0; i < count; ++i) {
    const TrialId id(SweepId(1), TrialNumber(i));
    const Config config = std::get<Proposed>(random->Suggest(ProposalNumber(i))).config;
    searcher_under_test->Observe(
        {EventSeq(0), Time{0}, TrialCreated{.trial = id, .config = config}});
    searcher_under_test->Observe(
        {EventSeq(0), Time{0}, TrialReported{{id, 1}, {Step(1), {{"loss", Sphere(config)}}}}});
    searcher_under_test->Observe(
        {EventSeq(0), Time{0}, TrialEnded{id, TrialState::kCompleted, ""}});
  }
  uint32_t proposal = count;
  for (auto _ : state)
    benchmark::DoNotOptimize(searcher_under_test->Suggest(ProposalNumber(proposal++)));
}
BENCHMARK_CAPTURE(SuggestAfter, tpe_10, "tpe", 10)
    ->Arg(1'000)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SuggestAfter, gp_5, "gp", 5)
    ->Arg(50)
    ->Arg(200)
    ->Arg(1'000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SuggestAfter, gp_20, "gp", 20)->Arg(200)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attune::benchmarks
