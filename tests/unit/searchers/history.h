#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/algorithms/searcher.h"

namespace attune::searchers {

// Makes the events of an imaginary sweep, and passes them to `listener.Observe(event)`.
template <class Listener>
class History {
 public:
  explicit History(Listener& listener) : listener_(listener) {}

  uint32_t Create(Config config, std::string origin = "enqueued") {
    Tell(
        TrialCreated{.trial = Id(next_), .config = std::move(config), .origin = std::move(origin)});
    return next_++;
  }
  uint32_t Create(Config config, ProposalNumber proposal) {
    Tell(TrialCreated{.trial = Id(next_), .config = std::move(config), .proposal = proposal});
    return next_++;
  }
  void Report(uint32_t trial, Metrics metrics, int64_t step = 1) {
    Tell(TrialReported{{Id(trial), 1}, {Step(step), std::move(metrics), Seconds(1)}});
  }
  void End(uint32_t trial, TrialState state = TrialState::kCompleted) {
    Tell(TrialEnded{Id(trial), state, "for the test"});
  }
  void Pause(uint32_t trial, std::string rule = "asha") {
    Tell(TrialDecided{{Id(trial), 1}, Step(1), Verdict::Pause({.rule = std::move(rule)}), Step(0)});
  }
  // Adds a trial that completed with this loss.
  uint32_t Done(Config config, double loss) {
    const uint32_t trial = Create(std::move(config));
    Report(trial, {{"loss", loss}});
    End(trial);
    return trial;
  }
  void Tell(Fact fact) { listener_.Observe({EventSeq(++events_), Time{0}, std::move(fact)}); }

  static TrialId Id(uint32_t trial) { return {SweepId(1), TrialNumber(trial)}; }

 private:
  Listener& listener_;
  uint32_t next_ = 0;
  uint64_t events_ = 0;
};

}  // namespace attune::searchers
