#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "simulator/simulation.h"
#include "sweepfile/sweepfile.h"
#include "tests/conformance/whole_sweep.h"

// Whole sweeps in virtual time must make the decisions that were worked out by hand
// (tests/data/golden_traces). tests/e2e/golden_test.py runs the same files with real processes.
namespace attune::conformance {
namespace {

using Json = nlohmann::json;

const std::filesystem::path kFolder = ATTUNE_SOURCE_DIR "/tests/data/golden_traces";

// The written curves. A trial must not train past the end of its curve.
class WrittenCurves final : public simulate::Curves {
 public:
  explicit WrittenCurves(std::vector<std::vector<double>> curves) : curves_(std::move(curves)) {}

  double ValueAt(TrialNumber trial, const Config&, Step step) const override {
    const auto& curve = curves_.at(trial.value);
    const auto index = static_cast<size_t>(step.value) - 1;
    if (index < curve.size()) return curve[index];
    ADD_FAILURE() << "trial " << trial.value << " trains beyond its curve, at step " << step.value;
    return std::numeric_limits<double>::quiet_NaN();
  }

 private:
  std::vector<std::vector<double>> curves_;
};

std::string Short(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

// Collects decisions in the format of the files.
class DecisionLog {
 public:
  void Observe(const Event& event) {
    if (const auto* decided = std::get_if<TrialDecided>(&event.fact)) {
      const TrialNumber trial = decided->attempt.trial.number;
      const Verdict& verdict = decided->verdict;
      at_[trial] = decided->step;
      const bool last = verdict.reason.rule == "max_step";
      Tell(trial,
           verdict.kind == VerdictKind::kExploit ? Clones(verdict.donor, verdict.config)
           : last                                ? "complete"
                                                 : std::string(Name(verdict.kind)),
           last ? Reason() : verdict.reason);
    } else if (const auto* promoted = std::get_if<TrialPromoted>(&event.fact)) {
      Tell(promoted->trial.number,
           promoted->donor ? Clones(*promoted->donor, *promoted->config) : "promoted",
           promoted->reason);
    } else if (const auto* ended = std::get_if<TrialEnded>(&event.fact)) {
      ends_[std::string(Name(ended->state))].push_back(ended->trial.number.value);
    }
  }

  const std::vector<std::string>& decisions() const { return decisions_; }
  std::vector<uint32_t> Ends(const std::string& state) const {
    const auto found = ends_.find(state);
    if (found == ends_.end()) return {};
    std::vector<uint32_t> trials = found->second;
    std::ranges::sort(trials);
    return trials;
  }

 private:
  static std::string Clones(const CheckpointId& donor, const Config& config) {
    return "clones " + std::to_string(donor.trial.number.value) + "@" +
           std::to_string(donor.step.value) + " with x " +
           Short(std::get<double>(*config.Find("x")));
  }
  void Tell(TrialNumber trial, std::string text, const Reason& reason) {
    if (reason.peers > 0)
      text += ", rank " + std::to_string(reason.rank) + " of " + std::to_string(reason.peers);
    if (std::isfinite(reason.cutoff)) text += ", cutoff " + Short(reason.cutoff);
    decisions_.push_back(std::to_string(trial.value) + "@" + std::to_string(at_[trial].value) +
                         " " + text);
  }

  std::map<TrialNumber, Step> at_;  // step of the last verdict
  std::vector<std::string> decisions_;
  std::map<std::string, std::vector<uint32_t>> ends_;
};

std::vector<std::string> Traces() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

class GoldenTraces : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenTraces, MakesTheDecisionsWorkedOutByHand) {
  std::ifstream file(kFolder / (GetParam() + ".json"));
  const Json trace = Json::parse(file);
  Json sweep = trace.at("sweep");
  sweep["command"] = {"train"};
  const auto parsed =
      sweepfile::ParseSweep(sweep.dump(), {.directory = "/", .algorithms = &AllAlgorithms()});
  ASSERT_TRUE(parsed.spec) << sweepfile::FormatFault("sweep", parsed.faults.front());

  DecisionLog story;
  const auto summary =
      simulate::Simulate(*parsed.spec, AllAlgorithms(),
                         WrittenCurves(trace.at("curves").get<std::vector<std::vector<double>>>()),
                         {.slots = 1}, [&story](const Event& event) { story.Observe(event); });
  ASSERT_TRUE(summary.ok()) << summary.error().message;

  std::vector<std::string> expected;
  for (const Json& line : trace.at("decisions")) expected.push_back(line.at(0));
  EXPECT_THAT(story.decisions(), ::testing::ElementsAreArray(expected));
  for (const auto& [state, trials] : trace.at("ends").items())
    EXPECT_EQ(story.Ends(state), trials.get<std::vector<uint32_t>>()) << state;
}

INSTANTIATE_TEST_SUITE_P(Traces, GoldenTraces, ::testing::ValuesIn(Traces()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace attune::conformance
