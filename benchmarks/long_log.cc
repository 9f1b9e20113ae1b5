// Writes the database of a server that was killed in the middle of a long sweep. TRIALS trials have
// ended after REPORTS reports each, and a few are still running. With `asked`, the sweep has no
// program, and a client asked for its trials.
//
//     long_log FILE [TRIALS [REPORTS [asked [SEARCHER]]]]

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "benchmarks/arguments.h"
#include "benchmarks/bench_sweep.h"
#include "cli/algorithms.h"
#include "server/conductor/conductor.h"
#include "server/store/sqlite_store.h"

namespace attune::server {
namespace {

constexpr int kSlots = 64;

SweepSpec Spec(int trials, int reports, bool asked, const std::string& searcher) {
  SweepSpec spec = BenchSweep();
  if (!searcher.empty()) spec.searcher = {.name = searcher};
  if (asked) {
    spec.program = {};
  } else {
    spec.scheduler = {
        "asha",
        {{"min", int64_t{1}}, {"mode", std::string("stop")}, {"reduction_factor", int64_t{4}}}};
  }
  spec.max_step = Step(reports);
  if (!asked) spec.stop.max_trials = trials + kSlots;
  return spec;
}

Time Now() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return Time{std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count()};
}

// Each trial is better than all earlier trials, so the scheduler stops none early. With `asked`,
// the loss depends on the configuration, so that a searcher can learn.
double Loss(const Sweep& sweep, const Trial& trial, Step step) {
  if (sweep.spec.External()) {
    const double lr = std::log10(std::get<double>(*trial.config.Find("lr"))) + 3;
    const double layers = static_cast<double>(std::get<int64_t>(*trial.config.Find("layers"))) - 5;
    return lr * lr + layers * layers / 9;
  }
  return 1.0 / (1.0 + trial.id.number.value) + 1e-9 / static_cast<double>(step.value);
}

// The next report, or the end, of each gang.
std::vector<Command> NextFacts(const Sweep& sweep) {
  std::vector<Command> facts;
  for (const TrialNumber number : sweep.live) {
    const Trial& trial = *sweep.Find(number);
    const Attempt& attempt = *trial.live;
    if (attempt.verdict == VerdictKind::kStop) {
      facts.push_back(RecordFact{attempt.epoch, AttemptEnded{attempt.id, Outcome::kFinished, {}}});
      continue;
    }
    const Step step(trial.last_step.value + 1);
    const double loss = Loss(sweep, trial, step);
    facts.push_back(RecordFact{
        attempt.epoch, TrialReported{attempt.id,
                                     {.step = step,
                                      .metrics = {{"accuracy", 1.0 - loss}, {"loss", loss}},
                                      .seconds = Seconds(0.1 * static_cast<double>(step.value))}}});
  }
  return facts;
}

void Write(const std::string& path, int trials, int reports, bool asked,
           const std::string& searcher) {
  const Algorithms& algorithms = cli::AllAlgorithms();
  const auto store = std::move(SqliteStore::Open(path)).value();
  Conductor conductor(algorithms, *store, Now);
  conductor.SetReachable([](const std::string&) { return true; });
  ATTUNE_CHECK(conductor.Start().ok());
  const auto exit_on_error = [](const auto& result) {
    if (result.ok()) return;
    std::fprintf(stderr, "long_log: %s\n", result.error().message.c_str());
    std::_Exit(1);
  };
  exit_on_error(conductor.Execute(JoinExecutor{"box", "a", "127.0.0.1", {.cpus = kSlots}}));
  SweepSpec spec = Spec(trials, reports, asked, searcher);
  algorithms.Complete(spec);
  exit_on_error(conductor.Execute(CreateSweep{std::move(spec), "", ""}));
  for (bool done = false; !done;) {
    std::vector<Command> facts;
    conductor.Query([&](const Brain& brain) {
      const Sweep& sweep = *brain.state().Find(SweepId(1));
      done = sweep.created - std::ssize(sweep.live) >= trials;
      facts = NextFacts(sweep);
      if (asked) facts.resize(facts.size() + kSlots - sweep.live.size(), AskTrial{SweepId(1)});
    });
    conductor.Record(std::move(facts), exit_on_error);
  }
  std::printf("%llu events\n", static_cast<unsigned long long>(store->LastSeq().value));
  std::fflush(stdout);
  std::_Exit(0);  // like a killed server, without a last snapshot
}

}  // namespace
}  // namespace attune::server

int main(int argc, char** argv) {
  const char* usage = "long_log FILE [TRIALS [REPORTS [asked [SEARCHER]]]]";
  const int trials = attune::benchmarks::CountArgument(argc, argv, 2, 100'000, usage);
  const int reports = attune::benchmarks::CountArgument(argc, argv, 3, 100, usage);
  const bool asked = argc > 4 && std::string_view(argv[4]) == "asked";
  if (argc < 2 || asked != (argc > 4) || std::string_view(argv[1]).starts_with('-')) {
    attune::benchmarks::EndWithUsage(usage);
  }
  attune::server::Write(argv[1], trials, reports, asked, argc > 5 ? argv[5] : "");
}
