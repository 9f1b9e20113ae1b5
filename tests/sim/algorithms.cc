#include "tests/sim/algorithms.h"

#include <memory>

#include "base/check.h"
#include "base/result.h"
#include "schedulers/register.h"
#include "searchers/register.h"
#include "tests/sim/toys.h"

namespace attune::sim {
namespace {

template <class Toy>
Entry<Scheduler> ToyEntry(std::string name) {
  return {.name = std::move(name), .make = [](const SweepSpec& spec) {
            return Result<std::unique_ptr<Scheduler>>(std::make_unique<Toy>(spec.objective()));
          }};
}

// A base class for schedulers with a fault: forwards every call to a real scheduler.
class SchedulerWrapper : public Scheduler {
 public:
  explicit SchedulerWrapper(std::unique_ptr<Scheduler> wrapped) : wrapped_(std::move(wrapped)) {}

  Verdict Judge(const TrialView& trial, const Report& report) const override {
    return wrapped_->Judge(trial, report);
  }
  std::optional<Step> NextMilestone(const TrialView& trial, Step after) const override {
    return wrapped_->NextMilestone(trial, after);
  }
  NextMove Next(const SweepView& view) const override { return wrapped_->Next(view); }
  const std::set<CheckpointId>& Retained() const override { return wrapped_->Retained(); }
  void Observe(const Event& event) override { wrapped_->Observe(event); }
  void Adapt(const SweepSpec& spec) override { wrapped_->Adapt(spec); }
  void Save(ArchiveWriter& archive) const override { wrapped_->Save(archive); }
  void Load(ArchiveReader& archive) override { wrapped_->Load(archive); }
  std::vector<Step> Rungs() const override { return wrapped_->Rungs(); }

 private:
  std::unique_ptr<Scheduler> wrapped_;
};

// Observes each report for two trials.
class DoubleRecorder final : public SchedulerWrapper {
 public:
  using SchedulerWrapper::SchedulerWrapper;

  void Observe(const Event& event) override {
    SchedulerWrapper::Observe(event);
    Event copy = event;
    auto* reported = std::get_if<TrialReported>(&copy.fact);
    if (reported == nullptr) return;
    reported->attempt.trial.number.value += 1'000'000;
    SchedulerWrapper::Observe(copy);
  }
};

// Promotes no trial while another one runs.
class LatePromoter final : public SchedulerWrapper {
 public:
  using SchedulerWrapper::SchedulerWrapper;

  NextMove Next(const SweepView& view) const override {
    NextMove next = SchedulerWrapper::Next(view);
    const bool delay = std::holds_alternative<Promote>(next) && view.running > 0;
    return delay ? Wait{"wrong on purpose"} : next;
  }
};

template <class Fault>
Entry<Scheduler> WithFault(Entry<Scheduler> entry) {
  entry.make =
      [make = std::move(entry.make)](const SweepSpec& spec) -> Result<std::unique_ptr<Scheduler>> {
    auto made = make(spec);
    if (!made.ok()) return made.error();
    return {std::make_unique<Fault>(std::move(made).value())};
  };
  return entry;
}

Algorithms MakeAlgorithms(Variant variant) {
  Algorithms algorithms;
  searchers::RegisterSearchers(algorithms);
  Algorithms schedulers;
  schedulers::RegisterSchedulers(schedulers);
  for (const Entry<Scheduler>& entry : schedulers.schedulers()) {
    if (variant == Variant::kForgetsPaused) {
      algorithms.Add(WithFault<LatePromoter>(entry));
    } else {
      const bool records_twice = variant == Variant::kRecordsTwice && entry.name == "asha";
      algorithms.Add(records_twice ? WithFault<DoubleRecorder>(entry) : entry);
    }
  }
  algorithms.Add(Entry<Searcher>{
      .name = std::string(kSlowSearcher), .make = [](const SweepSpec& spec) {
        return Result<std::unique_ptr<Searcher>>(std::make_unique<SlowSearcher>(spec));
      }});
  algorithms.Add(ToyEntry<PausingHalving>("halving"));
  algorithms.Add(ToyEntry<ExploitScheduler>("exploiting"));
  return algorithms;
}

template <class Algorithm>
std::vector<std::string> NamesOf(const std::vector<Entry<Algorithm>>& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(entry.name);
  return names;
}

}  // namespace

const Algorithms& TestAlgorithms() {
  static const Algorithms algorithms = MakeAlgorithms(Variant::kNone);
  return algorithms;
}

const Algorithms& AlgorithmsFor(Variant variant) {
  static const Algorithms records_twice = MakeAlgorithms(Variant::kRecordsTwice);
  static const Algorithms late_promotions = MakeAlgorithms(Variant::kForgetsPaused);
  if (variant == Variant::kForgetsPaused) return late_promotions;
  return variant == Variant::kRecordsTwice ? records_twice : TestAlgorithms();
}

const std::vector<std::string>& SearcherNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> fast_names = NamesOf(TestAlgorithms().searchers());
    std::erase(fast_names, kSlowSearcher);
    return fast_names;
  }();
  return names;
}

const std::vector<std::string>& SchedulerNames() {
  static const std::vector<std::string> names = NamesOf(TestAlgorithms().schedulers());
  return names;
}

AlgorithmSpec SpecOf(const std::string& name) {
  const Entry<Searcher>* searcher = TestAlgorithms().FindSearcher(name);
  const Entry<Scheduler>* scheduler = TestAlgorithms().FindScheduler(name);
  ATTUNE_CHECK(searcher != nullptr || scheduler != nullptr);
  AlgorithmSpec spec{.name = name};
  for (const Option& option : searcher != nullptr ? searcher->options : scheduler->options)
    spec.options.emplace(option.name, option.fallback);
  return spec;
}

}  // namespace attune::sim
