#include "searchers/auto.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "searchers/bohb.h"
#include "searchers/gp.h"
#include "searchers/model/cube.h"
#include "searchers/model/limit.h"
#include "searchers/nsga2.h"
#include "searchers/tpe.h"

namespace attune::searchers {
namespace {

// gp uses at most 500 results and takes about ten milliseconds per proposal. From this number of
// results on, tpe is better: it uses all results, and takes a tenth of a millisecond.
constexpr int64_t kGpUntil = 1'000;
constexpr size_t kGpDimensions = 60;
// With several metrics gp fits one model per metric.
constexpr size_t kGpMetrics = 3;
constexpr int64_t kGpFrontsUntil = 250;
constexpr int64_t kFrontsUntil = 1'000;
// Under a scheduler that ends trials early, most results come from few steps. gp ranks such trials
// below completed ones, which misleads it if early values are misleading. bohb is better there, but
// only from this number of results on.
constexpr int64_t kBohbFrom = 100;
constexpr std::array<std::string_view, 6> kEndTrialsEarly{"asha",   "extrapolate", "hyperband",
                                                          "median", "pasha",       "percentile"};

const Algorithms& AvailableSearchers() {
  static const Algorithms available = [] {
    Algorithms searchers;
    searchers.Add(BohbEntry());
    searchers.Add(GpEntry());
    searchers.Add(TpeEntry());
    searchers.Add(Nsga2Entry());
    return searchers;
  }();
  return available;
}

// The spec with this searcher, which has its default options.
SweepSpec SpecOf(const SweepSpec& spec, const std::string& searcher) {
  SweepSpec changed = spec;
  changed.searcher = {.name = searcher, .options = {}};
  AvailableSearchers().Complete(changed);
  return changed;
}

Result<std::unique_ptr<Searcher>> MakeAuto(const SweepSpec& spec) {
  if (auto error = CheckHasEndIfInfinite(spec, "auto")) return *error;
  for (const Auto::Stage& stage : Auto::StagesFor(spec)) {
    for (const std::string& searcher : stage.searchers) {
      auto made = AvailableSearchers().MakeSearcher(SpecOf(spec, searcher));
      if (!made.ok()) return made.error();
    }
  }
  return {std::make_unique<Auto>(spec)};
}

bool IsResult(const Event& event) {
  if (const auto* decided = std::get_if<TrialDecided>(&event.fact)) {
    const Verdict& verdict = decided->verdict;
    return verdict.kind == VerdictKind::kPause && !IsOrder(verdict.reason.rule);
  }
  const auto* ended = std::get_if<TrialEnded>(&event.fact);
  return ended != nullptr && ended->state != TrialState::kFailed;
}

}  // namespace

std::vector<Auto::Stage> Auto::StagesFor(const SweepSpec& spec) {
  const auto results = [](int64_t least) { return std::to_string(least) + " results or more"; };
  const size_t metrics = spec.objectives.size();
  const bool many = Cube(spec.space).size() > kGpDimensions;
  if (metrics > 1) {
    const std::vector<Stage> later{{{"tpe"}, kFrontsUntil, "several metrics"},
                                   {{"nsga2"}, 0, results(kFrontsUntil)}};
    if (many || metrics > kGpMetrics) return later;
    std::vector<Stage> all{{{"gp"}, kGpFrontsUntil, std::to_string(metrics) + " metrics"}};
    all.insert(all.end(), later.begin(), later.end());
    return all;
  }
  const std::string many_parameters = "more than " + std::to_string(kGpDimensions) + " parameters";
  if (std::ranges::find(kEndTrialsEarly, spec.scheduler.name) != kEndTrialsEarly.end()) {
    const Stage bohb{{"bohb"}, 0, results(kBohbFrom) + " with " + spec.scheduler.name};
    if (many) return {{{"tpe"}, kBohbFrom, many_parameters}, bohb};
    return {{{"gp"}, kBohbFrom, "one metric"}, bohb};
  }
  if (many) return {{{"tpe"}, 0, many_parameters}};
  return {{{"gp", "tpe"}, kGpUntil, "one metric"}, {{"tpe"}, 0, results(kGpUntil)}};
}

Auto::Auto(const SweepSpec& spec) : stages_(StagesFor(spec)) {
  for (const Stage& stage : stages_) {
    for (const std::string& name : stage.searchers) {
      if (searchers_.contains(name)) continue;
      auto made = AvailableSearchers().MakeSearcher(SpecOf(spec, name));
      ATTUNE_CHECK(made.ok());
      searchers_[name] = std::move(made).value();
    }
  }
}

bool Auto::NeedsThread() const {
  return std::ranges::any_of(stage().searchers, [this](const std::string& name) {
    return searchers_.at(name)->NeedsThread();
  });
}

Suggestion Auto::Suggest(ProposalNumber proposal) const {
  const std::vector<std::string>& searchers = stage().searchers;
  const std::string& name = searchers[proposal.value % searchers.size()];
  Suggestion suggestion = searchers_.at(name)->Suggest(proposal);
  if (auto* proposed = std::get_if<Proposed>(&suggestion)) {
    const std::string turn = searchers.size() > 1 ? "'s turn, for " : ", for ";
    proposed->rationale.text = name + turn + stage().reason + ": " + proposed->rationale.text;
  }
  return suggestion;
}

void Auto::Observe(const Event& event) {
  for (auto& [name, searcher] : searchers_) searcher->Observe(event);
  if (!IsResult(event)) return;
  ++results_;
  DropFinishedStages();
}

void Auto::DropFinishedStages() {
  while (stage().until > 0 && results_ >= stage().until) {
    stages_.erase(stages_.begin());
    std::erase_if(searchers_, [this](const auto& searcher) {
      return std::ranges::none_of(stages_, [&](const Stage& stage) {
        return std::ranges::find(stage.searchers, searcher.first) != stage.searchers.end();
      });
    });
  }
}

void Auto::Adapt(const SweepSpec& spec) {
  for (auto& [name, searcher] : searchers_) searcher->Adapt(SpecOf(spec, name));
}

void Auto::Save(ArchiveWriter& archive) const {
  archive(results_);
  for (const auto& [name, searcher] : searchers_) searcher->Save(archive);
}

void Auto::Load(ArchiveReader& archive) {
  archive(results_);
  DropFinishedStages();
  for (auto& [name, searcher] : searchers_) searcher->Load(archive);
}

Entry<Searcher> AutoEntry() {
  return {.name = "auto",
          .help = "Chooses another searcher, from the space, the metrics and the results so far",
          .options = {},
          .make = MakeAuto};
}

}  // namespace attune::searchers
