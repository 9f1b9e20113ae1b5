#include <array>
#include <limits>

#include <gtest/gtest.h>

#include "core/brain/audit.h"
#include "server/store/event_codec.h"
#include "tests/conformance/whole_sweep.h"

// The audit must accept the decisions of every scheduler, read back from the log, for any reports.
namespace attune::conformance {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Values whose means and differences may be NaN, with either sign.
double Diverging(uint32_t trial, int64_t step, const Config&) {
  constexpr std::array kValues = {kInf, -kInf, 1.0, std::numeric_limits<double>::quiet_NaN(), 0.5};
  return kValues[(trial + (step > 3 ? 1 : 0)) % kValues.size()];
}

double Falling(uint32_t trial, int64_t step, const Config&) {
  return 1.0 / static_cast<double>(trial + 1) - 0.01 * static_cast<double>(step);
}

Event ReadBack(const Event& event) {
  const server::EncodedFact encoded = server::Encode(event.fact);
  return {event.seq, event.time,
          server::Decode({.kind = encoded.kind,
                          .version = encoded.version,
                          .sweep = encoded.sweep,
                          .trial = encoded.trial,
                          .payload = encoded.payload})
              .value(),
          event.actor};
}

class Audit : public testing::TestWithParam<std::string> {};

TEST_P(Audit, RederivesDecisionsOnDivergingTrials) {
  const Algorithms algorithms = AllAlgorithms();
  Auditor auditor(algorithms);
  int verdicts = 0;
  const WholeSweep sweep({.scheduler = GetParam(), .loss = Diverging});
  for (const Event& event : sweep.whole_log()) {
    EXPECT_EQ(auditor.Next(ReadBack(event)), std::nullopt) << "event " << event.seq.value;
    if (std::holds_alternative<TrialDecided>(event.fact)) ++verdicts;
  }
  if (GetParam() != "fifo") {
    EXPECT_GT(verdicts, 0);
  }
}

// The event with other words, as another version of Attune may write it.
Event Reworded(Event event) {
  if (auto* created = std::get_if<TrialCreated>(&event.fact); created && created->rationale)
    (*created->rationale)->text = "other words";
  if (auto* decided = std::get_if<TrialDecided>(&event.fact))
    decided->verdict.reason.text = "other words";
  if (auto* promoted = std::get_if<TrialPromoted>(&event.fact))
    promoted->reason.text = "other words";
  if (auto* ended = std::get_if<TrialEnded>(&event.fact)) ended->reason = "other words";
  return event;
}

TEST_P(Audit, AcceptsOtherWords) {
  const Algorithms algorithms = AllAlgorithms();
  Auditor auditor(algorithms);
  const WholeSweep sweep({.scheduler = GetParam(), .loss = Falling});
  for (const Event& event : sweep.whole_log())
    EXPECT_EQ(auditor.Next(Reworded(event)), std::nullopt) << "event " << event.seq.value;
}

TEST_P(Audit, FindsAnotherRule) {
  const Algorithms algorithms = AllAlgorithms();
  Auditor auditor(algorithms);
  const WholeSweep sweep({.scheduler = GetParam(), .loss = Falling});
  for (Event event : sweep.whole_log()) {
    auto* decided = std::get_if<TrialDecided>(&event.fact);
    if (decided != nullptr) decided->verdict.reason.rule = "another rule";
    const auto fault = auditor.Next(event);
    if (decided == nullptr) continue;
    EXPECT_NE(fault, std::nullopt);
    return;
  }
}

INSTANTIATE_TEST_SUITE_P(Schedulers, Audit, testing::ValuesIn(SchedulerNames()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace attune::conformance
