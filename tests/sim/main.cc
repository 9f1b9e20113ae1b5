// The simulator's driver: runs seeds one after another and stops at the first finding.

#include <unistd.h>

#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include <csignal>
#include <cstdio>
#include <string>

#include "tests/sim/checkers/describe.h"
#include "tests/sim/run.h"

namespace {

using attune::sim::Outcome;
using attune::sim::Variant;

constexpr size_t kLastEvents = 25;

struct Flags {
  uint64_t seed = 1;
  uint64_t seeds = 1;
  std::string variant = "none";
  bool trace = false;
};

Flags flags;
uint64_t current_seed = 0;

bool ExpectsFinding() { return flags.variant != "none"; }

void Print(const std::vector<attune::Event>& log, size_t last) {
  const size_t from = log.size() > last ? log.size() - last : 0;
  for (size_t i = from; i < log.size(); ++i) std::puts(attune::sim::Describe(log[i]).c_str());
}

// Prints a finding and returns the exit status. A finding is a success for a variant and a failure
// otherwise.
int ReportFinding(const std::string& finding, const std::vector<attune::Event>& log) {
  if (ExpectsFinding()) {
    std::printf("%s: caught at seed %llu: %s\n", flags.variant.c_str(),
                static_cast<unsigned long long>(current_seed), finding.c_str());
    return 0;
  }
  if (!flags.trace) Print(log, kLastEvents);
  std::printf("seed %llu: %s\nrepeat with: sim --seed %llu --trace\n",
              static_cast<unsigned long long>(current_seed), finding.c_str(),
              static_cast<unsigned long long>(current_seed));
  return 1;
}

// Handles abort(), which core calls if an invariant is broken. The process ends here, so the code
// does not need to be safe for signals at other moments.
void OnAbort(int) {
  const auto* log = attune::sim::CurrentLog();
  const int code = ReportFinding("an invariant of core is broken; see the message above",
                                 log == nullptr ? std::vector<attune::Event>() : *log);
  std::fflush(stdout);
  _exit(code);
}

// Whether the event is a decision of the brain. Other events are recorded from messages.
bool IsDecision(const attune::Event& event) {
  return !attune::IsOneOf<attune::AttemptRenewed, attune::AttemptStarted, attune::AttemptFirstStep,
                          attune::RendezvousOpened, attune::TrialReported, attune::MetricsLogged,
                          attune::CheckpointSaved, attune::CheckpointRemoved,
                          attune::CheckpointStored, attune::AttemptEnded, attune::ExecutorJoined,
                          attune::ExecutorLost, attune::SweepAnnotated, attune::TrialAnnotated>(
      event.fact);
}

int Run(Variant variant) {
  const auto begin = std::chrono::steady_clock::now();
  size_t events = 0;
  int64_t decisions = 0;
  double virtual_seconds = 0;
  for (current_seed = flags.seed; current_seed < flags.seed + flags.seeds; ++current_seed) {
    const Outcome outcome = attune::sim::RunSeed(current_seed, variant);
    if (flags.trace) Print(outcome.log, outcome.log.size());
    if (outcome.finding) return ReportFinding(*outcome.finding, outcome.log);
    events += outcome.log.size();
    decisions += std::ranges::count_if(outcome.log, IsDecision);
    virtual_seconds += outcome.virtual_seconds;
  }
  const std::chrono::duration<double> duration = std::chrono::steady_clock::now() - begin;
  std::printf("%llu seeds, %zu events, %lld decisions, %.0f virtual hours in %.1f s%s\n",
              static_cast<unsigned long long>(flags.seeds), events,
              static_cast<long long>(decisions), virtual_seconds / 3600, duration.count(),
              ExpectsFinding() ? ": the variant was not caught" : "");
  return ExpectsFinding() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Simulates a whole service from a seed, once for each seed, and checks it");
  app.add_option("--seed", flags.seed, "First seed");
  app.add_option("--seeds", flags.seeds, "Number of seeds");
  app.add_option("--variant", flags.variant,
                 "Run a service with a deliberate fault; succeeds if the fault is found");
  app.add_flag("--trace", flags.trace, "Print every event");
  CLI11_PARSE(app, argc, argv);
  const auto variant = attune::sim::FindVariant(flags.variant);
  if (!variant) {
    std::fprintf(stderr, "sim: unknown variant %s; tests/sim/variant.cc lists the variants\n",
                 flags.variant.c_str());
    return 2;
  }
  std::signal(SIGABRT, OnAbort);
  spdlog::set_level(spdlog::level::off);  // the faults would log too much
  return Run(*variant);
}
