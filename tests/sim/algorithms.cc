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

// A scheduler that a fault is put around.
class Wrapped : public Scheduler {
 public:
  explicit Wrapped(std::unique_ptr<Scheduler> seeing) : seeing_(std::move(seeing)) {}

  Verdict Judge(const TrialView& trial, const Report& report) const override {
    return seeing_->Judge(trial, report);
  }
  std::optional<Step> NextMilestone(const TrialView& trial, Step after) const override {
    return seeing_->NextMilestone(trial, after);
  }
  NextMove Next(const SweepView& view) const override { return seeing_->Next(view); }
  const std::set<CheckpointId>& Retained() const override { return seeing_->Retained(); }
  void Observe(const Event& event) override { seeing_->Observe(event); }
  void Adapt(const SweepSpec& spec) override { seeing_->Adapt(spec); }
  void Save(ArchiveWriter& archive) const override { seeing_->Save(archive); }
  void Load(ArchiveReader& archive) override { seeing_->Load(archive); }
  std::vector<Step> Rungs() const override { return seeing_->Rungs(); }

 private:
  std::unique_ptr<Scheduler> seeing_;
};

// Takes every trial for two.
class SeesDouble final : public Wrapped {
 public:
  using Wrapped::Wrapped;

  void Observe(const Event& event) override {
    Wrapped::Observe(event);
    Event again = event;
    auto* reported = std::get_if<TrialReported>(&again.fact);
    if (reported == nullptr) return;
    reported->attempt.trial.number.value += 1'000'000;
    Wrapped::Observe(again);
  }
};

// Promotes nobody while something runs.
class ForgetsPaused final : public Wrapped {
 public:
  using Wrapped::Wrapped;

  NextMove Next(const SweepView& view) const override {
    NextMove next = Wrapped::Next(view);
    const bool forgets = std::holds_alternative<Promote>(next) && view.running > 0;
    return forgets ? Wait{"wrong on purpose"} : next;
  }
};

template <class Fault>
Entry<Scheduler> With(Entry<Scheduler> entry) {
  entry.make =
      [make = std::move(entry.make)](const SweepSpec& spec) -> Result<std::unique_ptr<Scheduler>> {
    auto made = make(spec);
    if (!made.ok()) return made.error();
    return {std::make_unique<Fault>(std::move(made).value())};
  };
  return entry;
}

Algorithms Known(Variant variant) {
  Algorithms made;
  searchers::RegisterSearchers(made);
  Algorithms schedulers;
  schedulers::RegisterSchedulers(schedulers);
  for (const Entry<Scheduler>& entry : schedulers.schedulers()) {
    if (variant == Variant::kForgetsPaused) {
      made.Add(With<ForgetsPaused>(entry));
    } else {
      const bool doubled = variant == Variant::kRecordsTwice && entry.name == "asha";
      made.Add(doubled ? With<SeesDouble>(entry) : entry);
    }
  }
  made.Add(Entry<Searcher>{.name = std::string(kPondering), .make = [](const SweepSpec& spec) {
                             return Result<std::unique_ptr<Searcher>>(
                                 std::make_unique<Pondering>(spec));
                           }});
  made.Add(ToyEntry<Halving>("halving"));
  made.Add(ToyEntry<Exploiting>("exploiting"));
  return made;
}

template <class Algorithm>
std::vector<std::string> NamesOf(const std::vector<Entry<Algorithm>>& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(entry.name);
  return names;
}

}  // namespace

const Algorithms& TestAlgorithms() {
  static const Algorithms algorithms = Known(Variant::kNone);
  return algorithms;
}

const Algorithms& AlgorithmsFor(Variant variant) {
  static const Algorithms doubled = Known(Variant::kRecordsTwice);
  static const Algorithms forgetful = Known(Variant::kForgetsPaused);
  if (variant == Variant::kForgetsPaused) return forgetful;
  return variant == Variant::kRecordsTwice ? doubled : TestAlgorithms();
}

const std::vector<std::string>& SearcherNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> quick = NamesOf(TestAlgorithms().searchers());
    std::erase(quick, kPondering);
    return quick;
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
