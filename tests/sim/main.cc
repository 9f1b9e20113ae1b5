// The simulator's driver: runs seeds one after the other and stops at the first that goes wrong.

#include <unistd.h>

#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include <csignal>
#include <cstdio>
#include <string>

#include "tests/sim/checkers/words.h"
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
uint64_t seed_now = 0;

bool Expected() { return flags.variant != "none"; }

void Print(const std::vector<attune::Event>& log, size_t last) {
  const size_t from = log.size() > last ? log.size() - last : 0;
  for (size_t i = from; i < log.size(); ++i) std::puts(attune::sim::Describe(log[i]).c_str());
}

// A variant is to be caught; anything else is to be repeated.
int Caught(const std::string& finding, const std::vector<attune::Event>& log) {
  if (Expected()) {
    std::printf("%s: caught at seed %llu: %s\n", flags.variant.c_str(),
                static_cast<unsigned long long>(seed_now), finding.c_str());
    return 0;
  }
  if (!flags.trace) Print(log, kLastEvents);
  std::printf("seed %llu: %s\nrepeat with: sim --seed %llu --trace\n",
              static_cast<unsigned long long>(seed_now), finding.c_str(),
              static_cast<unsigned long long>(seed_now));
  return 1;
}

// A broken invariant of core: abort() was called with the log as it is. The process ends here, so
// what is printed need not be safe for a signal that comes at any other moment.
void OnAbort(int) {
  const auto* log = attune::sim::LogUnderWay();
  const int code = Caught("an invariant of core is broken (above)",
                          log == nullptr ? std::vector<attune::Event>() : *log);
  std::fflush(stdout);
  _exit(code);
}

template <class... Told>
bool IsOneOf(const attune::Fact& fact) {
  return (std::holds_alternative<Told>(fact) || ...);
}

// Of the brain, beside what it was told.
bool IsDecision(const attune::Event& event) {
  return !IsOneOf<attune::AttemptRenewed, attune::AttemptStarted, attune::AttemptFirstStep,
                  attune::RendezvousOpened, attune::TrialReported, attune::MetricsLogged,
                  attune::CheckpointSaved, attune::CheckpointRemoved, attune::AttemptEnded,
                  attune::ExecutorJoined, attune::ExecutorLost>(event.fact);
}

int Run(Variant variant) {
  const auto begin = std::chrono::steady_clock::now();
  size_t events = 0;
  int64_t decisions = 0;
  double virtual_seconds = 0;
  for (seed_now = flags.seed; seed_now < flags.seed + flags.seeds; ++seed_now) {
    const Outcome outcome = attune::sim::RunSeed(seed_now, variant);
    if (flags.trace) Print(outcome.log, outcome.log.size());
    if (outcome.finding) return Caught(*outcome.finding, outcome.log);
    events += outcome.log.size();
    decisions += std::ranges::count_if(outcome.log, IsDecision);
    virtual_seconds += outcome.virtual_seconds;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%llu seeds, %zu events, %lld decisions, %.0f virtual hours in %.1f s%s\n",
              static_cast<unsigned long long>(flags.seeds), events,
              static_cast<long long>(decisions), virtual_seconds / 3600, took.count(),
              Expected() ? ": the variant was not caught" : "");
  return Expected() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs a whole simulated service from a seed, many times, and checks it");
  app.add_option("--seed", flags.seed, "The first seed");
  app.add_option("--seeds", flags.seeds, "How many, one after the other");
  app.add_option("--variant", flags.variant,
                 "A service that is wrong on purpose: succeeds when that is found");
  app.add_flag("--trace", flags.trace, "Print every event");
  CLI11_PARSE(app, argc, argv);
  const auto variant = attune::sim::FindVariant(flags.variant);
  if (!variant) {
    std::fprintf(stderr, "sim: there is no variant %s\n", flags.variant.c_str());
    return 2;
  }
  std::signal(SIGABRT, OnAbort);
  spdlog::set_level(spdlog::level::off);  // of executors, whose lives are full of trouble
  return Run(*variant);
}
