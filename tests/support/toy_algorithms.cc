#include "tests/support/toy_algorithms.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/log/fields.h"
#include "tests/support/toy_schedulers.h"

namespace attune::testing {
namespace {

// Proposes x = proposal number, up to a limit.
class CountingSearcher final : public Searcher {
 public:
  explicit CountingSearcher(uint32_t limit) : limit_(limit) {}
  Suggestion Suggest(ProposalNumber proposal) const override {
    if (proposal.value >= limit_) return Exhausted{};
    return Proposed{{{"x", static_cast<int64_t>(proposal.value)}},
                    {.rule = "counting", .text = "number " + std::to_string(proposal.value)}};
  }
  void Observe(const Event&) override {}
  void Adapt(const SweepSpec&) override {}
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}

 private:
  uint32_t limit_;
};

// Proposes x = proposal number in generations. It waits until all trials of a generation have ended
// before it proposes the next one. With an empty generation, it waits forever.
class GenerationsSearcher final : public Searcher {
 public:
  explicit GenerationsSearcher(int64_t generation, bool thinks = false)
      : generation_(generation), thinks_(thinks) {}
  bool NeedsThread() const override { return thinks_; }
  Suggestion Suggest(ProposalNumber proposal) const override {
    if (proposed_ - ended_ >= generation_ ||
        (generation_ > 0 && proposed_ % generation_ == 0 && proposed_ > ended_))
      return Wait{"the generation has not ended"};
    return Proposed{{{"x", static_cast<int64_t>(proposal.value)}},
                    {.rule = "generations", .text = "one of its generation"}};
  }
  void Observe(const Event& event) override {
    if (std::holds_alternative<TrialCreated>(event.fact)) ++proposed_;
    if (std::holds_alternative<TrialEnded>(event.fact)) ++ended_;
  }
  void Adapt(const SweepSpec&) override {}
  void Save(ArchiveWriter& archive) const override { archive(proposed_, ended_); }
  void Load(ArchiveReader& archive) override { archive(proposed_, ended_); }

 private:
  int64_t generation_;
  bool thinks_;
  int64_t proposed_ = 0;
  int64_t ended_ = 0;
};

// Proposes the number of reports that it has observed, up to a limit of proposals. Each proposal
// takes time.
class ThinkingSearcher final : public Searcher {
 public:
  explicit ThinkingSearcher(uint32_t limit) : limit_(limit) {}
  Suggestion Suggest(ProposalNumber proposal) const override {
    if (proposal.value >= limit_) return Exhausted{"it has thought enough"};
    return Proposed{{{"x", reports_}}, {.rule = "thinker", .text = "reports seen"}};
  }
  bool NeedsThread() const override { return true; }
  void Observe(const Event& event) override {
    if (std::holds_alternative<TrialReported>(event.fact)) ++reports_;
  }
  void Adapt(const SweepSpec&) override {}
  void Save(ArchiveWriter& archive) const override { archive(reports_); }
  void Load(ArchiveReader& archive) override { archive(reports_); }

 private:
  uint32_t limit_;
  int64_t reports_ = 0;
};

// Judges every second step. It stops trials below 0.5, pauses them at exactly 0.5, and promotes the
// paused trial with the smallest number.
class EverySecondStep final : public Scheduler {
 public:
  Verdict Judge(const TrialView&, const Report& report) const override {
    const double value = report.metrics.begin()->second;
    Reason reason{.rule = "toy", .step = report.step, .value = value, .text = "judged"};
    if (value == 0.5) return Verdict::Pause(reason);
    return value < 0.5 ? Verdict::Stop(reason) : Verdict::Continue(reason);
  }
  std::optional<Step> NextMilestone(const TrialView&, Step after) const override {
    return Step(after.value / 2 * 2 + 2);
  }
  NextMove Next(const SweepView& view) const override {
    if (view.paused.empty()) return StartNew{};
    return Promote{.trial = view.paused.begin()->first, .reason = {.rule = "toy", .text = "first"}};
  }
  void Observe(const Event&) override {}
  void Adapt(const SweepSpec&) override {}
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}
};

// A trial that reports less than 1 becomes a clone of trial 0 with x = 999.
class Cloner final : public Scheduler {
 public:
  Verdict Judge(const TrialView& trial, const Report& report) const override {
    const Reason reason{.rule = "cloner", .step = report.step, .text = "judged"};
    if (trial.id.number == TrialNumber(0) || report.metrics.begin()->second >= 1)
      return Verdict::Continue(reason);
    return Verdict::Exploit(newest_.value_or(CheckpointId{{trial.id.sweep, TrialNumber(0)}}),
                            {{"x", int64_t{999}}}, reason);
  }
  std::optional<Step> NextMilestone(const TrialView&, Step after) const override {
    return Step(after.value / 4 * 4 + 4);
  }
  void Observe(const Event& event) override {
    const auto* saved = std::get_if<CheckpointSaved>(&event.fact);
    if (saved != nullptr && saved->attempt.trial.number == TrialNumber(0))
      newest_ = {saved->attempt.trial, saved->attempt.number, saved->checkpoint.step};
  }
  void Adapt(const SweepSpec&) override {}
  void Save(ArchiveWriter& archive) const override { archive(newest_); }
  void Load(ArchiveReader& archive) override { archive(newest_); }

 private:
  std::optional<CheckpointId> newest_;  // newest checkpoint of trial 0
};

}  // namespace

Algorithms ToyAlgorithms() {
  Algorithms algorithms;
  AddToySchedulers(algorithms);
  for (const auto& [name, limit] : {std::pair("counting", 1000u), std::pair("three", 3u)}) {
    algorithms.Add(Entry<Searcher>{
        .name = name,
        .make = [limit = limit](const SweepSpec&) -> Result<std::unique_ptr<Searcher>> {
          return std::unique_ptr<Searcher>(std::make_unique<CountingSearcher>(limit));
        }});
  }
  for (const auto& [name, size, thinks] :
       {std::tuple("pairs", 2, false), {"idle", 0, false}, {"thinking_pairs", 2, true}}) {
    algorithms.Add(
        Entry<Searcher>{.name = name, .make = [size = size, thinks = thinks](const SweepSpec&) {
                          return Result<std::unique_ptr<Searcher>>(
                              std::make_unique<GenerationsSearcher>(size, thinks));
                        }});
  }
  algorithms.Add(Entry<Searcher>{
      .name = "thinker", .make = [](const SweepSpec&) -> Result<std::unique_ptr<Searcher>> {
        return std::unique_ptr<Searcher>(std::make_unique<ThinkingSearcher>(100));
      }});
  algorithms.Add(Entry<Scheduler>{
      .name = "toy", .make = [](const SweepSpec&) -> Result<std::unique_ptr<Scheduler>> {
        return std::unique_ptr<Scheduler>(std::make_unique<EverySecondStep>());
      }});
  algorithms.Add(Entry<Scheduler>{
      .name = "cloner", .make = [](const SweepSpec&) -> Result<std::unique_ptr<Scheduler>> {
        return std::unique_ptr<Scheduler>(std::make_unique<Cloner>());
      }});
  return algorithms;
}

SweepSpec ToySpec() {
  SweepSpec spec;
  spec.name = "toy";
  spec.program.command = {"/bin/true"};
  spec.objectives = {Maximise("score")};
  spec.space = SearchSpace({{.name = "x", .domain = IntDomain{.min = 0, .max = 999}}});
  spec.searcher.name = "counting";
  spec.scheduler.name = "toy";
  spec.max_step = Step(6);
  spec.stop.max_trials = 4;
  spec.failure.backoff = Seconds(0);
  return spec;
}

}  // namespace attune::testing
