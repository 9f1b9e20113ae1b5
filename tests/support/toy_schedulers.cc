#include "tests/support/toy_schedulers.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/result.h"
#include "core/log/fields.h"

namespace attune::testing {
namespace {

// Pauses every trial at step 2.
class PausingScheduler : public Scheduler {
 public:
  Verdict Judge(const TrialView&, const Report& report) const override {
    if (report.step >= Step(4)) return Verdict::Continue("was promoted");
    return Verdict::Pause({.rule = "pausing", .step = report.step, .text = "waits for the others"});
  }
  std::optional<Step> NextMilestone(const TrialView&, Step after) const override {
    if (after >= Step(2)) return std::nullopt;
    return Step(2);
  }
  void Adapt(const SweepSpec&) override {}
  void Observe(const Event&) override {}
  void Save(ArchiveWriter&) const override {}
  void Load(ArchiveReader&) override {}
};

// A synchronous bracket of three trials. When all have reached step 2, it promotes the best one and
// nothing else.
class Bracket final : public PausingScheduler {
 public:
  static constexpr int kSize = 3;

  NextMove Next(const SweepView& view) const override {
    if (view.created < kSize && view.may_create) return StartNew{};
    if (promoted_) return Done{"the bracket is complete"};
    if (view.running + view.waiting > 0) return Wait{"the bracket is not full"};
    if (view.paused.empty()) return Done{"nobody has come to the rung"};
    auto best = view.paused.begin();
    for (auto it = view.paused.begin(); it != view.paused.end(); ++it) {
      if (values_.at(it->first) > values_.at(best->first)) best = it;
    }
    return Promote{.trial = best->first,
                   .reason = {.rule = "bracket", .peers = std::ssize(values_), .text = "the best"}};
  }
  void Observe(const Event& event) override {
    if (const auto* reported = std::get_if<TrialReported>(&event.fact))
      values_[reported->attempt.trial.number] = reported->report.metrics.begin()->second;
    if (std::holds_alternative<TrialPromoted>(event.fact)) promoted_ = true;
  }
  void Save(ArchiveWriter& archive) const override { archive(values_, promoted_); }
  void Load(ArchiveReader& archive) override { archive(values_, promoted_); }

 private:
  std::map<TrialNumber, double> values_;
  bool promoted_ = false;
};

// Starts two trials and waits for a third one, which it never starts.
class Stuck final : public PausingScheduler {
 public:
  NextMove Next(const SweepView& view) const override {
    if (view.created < 2) return StartNew{};
    return Wait{"there are to be three"};
  }
};

// Keeps the first checkpoint of trial 0 and promotes each paused trial from it once, with x = 999,
// up to `kMaxClones` trials.
class Donors final : public PausingScheduler {
 public:
  static constexpr size_t kMaxClones = 2;

  NextMove Next(const SweepView& view) const override {
    for (const auto& [trial, step] : view.paused) {
      if (promoted_.contains(trial) || retained_.empty()) continue;
      return Promote{.trial = trial,
                     .reason = {.rule = "donors", .text = "goes on from trial 0's"},
                     .config = Config{{"x", int64_t{999}}},
                     .donor = *retained_.begin()};
    }
    return StartNew{};
  }
  const std::set<CheckpointId>& Retained() const override { return retained_; }
  void Observe(const Event& event) override {
    if (const auto* saved = std::get_if<CheckpointSaved>(&event.fact);
        saved != nullptr && saved->attempt.trial.number == TrialNumber(0) && retained_.empty() &&
        promoted_.empty())
      retained_.insert({saved->attempt.trial, saved->attempt.number, saved->checkpoint.step});
    if (const auto* promoted = std::get_if<TrialPromoted>(&event.fact))
      promoted_.insert(promoted->trial.number);
    if (promoted_.size() == kMaxClones) retained_.clear();
  }
  void Save(ArchiveWriter& archive) const override { archive(retained_, promoted_); }
  void Load(ArchiveReader& archive) override { archive(retained_, promoted_); }

 private:
  std::set<CheckpointId> retained_;
  std::set<TrialNumber> promoted_;
};

template <class Toy>
Entry<Scheduler> ToyScheduler(std::string name) {
  return {.name = std::move(name), .make = [](const SweepSpec&) {
            return Result<std::unique_ptr<Scheduler>>(std::make_unique<Toy>());
          }};
}

}  // namespace

void AddToySchedulers(Algorithms& algorithms) {
  algorithms.Add(ToyScheduler<Bracket>("bracket"));
  algorithms.Add(ToyScheduler<Stuck>("stuck"));
  algorithms.Add(ToyScheduler<Donors>("donors"));
}

}  // namespace attune::testing
