#include <cstdlib>
#include <random>

#include "base/result.h"
#include "sweepfile/codec.h"
#include "tests/unit/sweepfile/harness.h"

namespace attune::sweepfile {
namespace {

constexpr int kMutations = 20'000;

const char* const kSeeds[] = {
    R"(apiVersion: attune/v1
name: resnet
tags: [baseline, "x y"]
command: [./train, --data, /data, "${args}"]
env: {OMP_NUM_THREADS: 1}
reports: {pattern: 'epoch (?P<step>\d+).* loss=(?P<loss>\S+)'}
metric: {name: loss, goal: minimize}
parameters:
  lr: {min: 1e-5, max: 0.1, scale: log}
  layers: &l {min: 2, max: 8}
  width: {min: 64, max: 512, step: 64}
  optimizer: {values: [sgd, adamw, 1, 0.5, true]}
  momentum: {min: 0.5, max: 0.99, when: {optimizer: sgd}}
  warmup: {min: 0, max: 5, when: {optimizer: [adamw], layers: {gte: 4}}}
  batch: {value: 256}
  depth: *l
initial_points: [{lr: 0.001, layers: 4, width: 128, optimizer: sgd, momentum: 0.9, depth: 3}]
searcher: {name: random, seed: 7}
scheduler: {name: asha, min: 1, max: 81, reduction_factor: 3}
resources: {workers: 8, memory_per_worker: 16GiB}
priority: 2
checkpoint: {every: 1, keep_last: 2, keep_best: 1}
failure: {max_restarts: 3, backoff: 10s, stall_timeout: 10m, grace: 5s,
          on_log: [{pattern: "CUDA|ECC", action: exclude_host}]}
stop: {max_trials: 500, max_time: 24h, max_gpu_hours: 0.5, patience: 9, trial_patience: 3,
       plateau: {metric: loss, mode: min, patience: 4, min_delta: 0.1, grace_period: 2},
       threshold: {loss: {at_least: 9, at_most: 0.5}, accuracy: {at_least: 0.9}}}
)",
    R"({"command": ["train", "\u00e9\ud83d\ude80"], "metric": {"name": "acc", "mode": "max"},
"parameters": {"n": {"min": 1, "max": 4}, "x": {"values": ["a", "1", 2.5]},
"y": {"value": -0.0, "when": {"n": {"lte": 3}}}}, "searcher": {"name": "random"},
"failure": {"stall_timeout": "1.5h"}, "stop": {"max_trials": 20}})",
    R"(name: asked
metric: {name: loss, mode: min, target: 0.05}
parameters: {lr: {min: 1e-5, max: 0.1, scale: log}, n: {min: 1, max: 4}}
max_concurrent_trials: 3
failure: {max_restarts: 0, backoff: 0s}
stop: {max_time: 1h, max_trial_time: 90s}
)",
    R"(name: many
metrics: [{name: accuracy, mode: max, target: 0.9}, {name: latency, goal: minimize}]
constraints: {latency: {max: 20}, recall: {min: 0.5, max: 1}}
parameters: {lr: {min: 1e-5, max: 0.1, scale: log}}
stop: {max_trials: 5}
)"};

const char* const kTokens[] = {"{",         "}",        "[",
                               "]",         ":",        ": ",
                               ",",         "-",        "- ",
                               "?",         "\n",       "\n  ",
                               "\"",        "'",        "&a ",
                               "*a",        "!!str ",   "|\n",
                               ">\n",       "#",        "~",
                               "null",      "true",     "1e999",
                               "-0.0",      ".nan",     "9223372036854775808",
                               "0x1F",      "<<",       "%",
                               "@",         "`",        "\\ud800",
                               "\xFF",      "\xC3\xA9", "---\n",
                               "...\n",     "min",      "max",
                               "when",      "0",        "-1",
                               "1e-320",    "values",   "value",
                               "type: int", "step: 3",  "\t"};

std::string Mutate(std::string text, std::mt19937_64& random) {
  const auto below = [&](size_t limit) { return random() % std::max<size_t>(limit, 1); };
  for (size_t changes = 1 + below(2); changes > 0; --changes) {
    const size_t at = below(text.size() + 1);
    const size_t length = std::min(below(12), text.size() - at);
    switch (below(5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kTokens[below(std::size(kTokens))]);
        break;
      case 2:
        text.replace(at, length, kTokens[below(std::size(kTokens))]);
        break;
      case 3:
        text.insert(below(text.size() + 1), text.substr(at, length * 4));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
    }
  }
  return text;
}

TEST(Mutations, NeverCrashAndWhatIsAcceptedRoundTrips) {
  const char* given = std::getenv("ATTUNE_SEED");
  const uint64_t seed = given == nullptr ? 20240229 : std::strtoull(given, nullptr, 10);
  SCOPED_TRACE("ATTUNE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  int accepted = 0;
  for (int i = 0; i < kMutations; ++i) {
    const std::string text = Mutate(kSeeds[static_cast<size_t>(i) % std::size(kSeeds)], random);
    const Parsed parsed = Parse(text);
    ASSERT_NE(parsed.spec.has_value(), !parsed.faults.empty()) << text;
    for (const Fault& fault : parsed.faults) {
      ASSERT_GE(fault.line, 1) << text;
      ASSERT_FALSE(fault.message.empty()) << text;
    }
    if (!parsed.spec) continue;
    ++accepted;
    const Result<SweepSpec> read = SpecFromJson(Json::parse(ToJson(*parsed.spec).dump()));
    ASSERT_TRUE(read.ok()) << read.error().message << "\n" << text;
    ASSERT_EQ(*read, *parsed.spec) << text;
    const Parsed resolved = Parse(ResolvedYaml(*parsed.spec));
    ASSERT_EQ(FaultLines(resolved), "") << text << "\n" << ResolvedYaml(*parsed.spec);
    ASSERT_EQ(*resolved.spec, *parsed.spec) << text << "\n" << ResolvedYaml(*parsed.spec);
  }
  EXPECT_GT(accepted, kMutations / 50);  // or the seeds exercise nothing
}

}  // namespace
}  // namespace attune::sweepfile
