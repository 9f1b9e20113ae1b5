#include "searchers/auto.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/base/check.h"
#include "searchers/bohb.h"
#include "searchers/gp.h"
#include "searchers/model/cube.h"
#include "searchers/model/limit.h"
#include "searchers/nsga2.h"
#include "searchers/tpe.h"

namespace attune::searchers {
namespace {

// From here on gp, which looks at 500 results at most, leaves more than half of them unread, for
// some ten milliseconds a proposal; tpe reads all in a tenth of one.
constexpr int64_t kGpUntil = 1'000;
constexpr size_t kGpDimensions = 60;
// With several metrics gp has to fit a model for each of them.
constexpr size_t kGpMetrics = 3;
constexpr int64_t kGpFrontsUntil = 250;
constexpr int64_t kFrontsUntil = 1'000;
// Beside schedulers that judge trials before the last step most results are of few steps. To gp
// these are bad ones, which misleads it where early values mislead. bohb does better then, but only
// once it has seen so many.
constexpr int64_t kBohbFrom = 100;
constexpr std::array<std::string_view, 6> kEndTrialsEarly{"asha",   "extrapolate", "hyperband",
                                                          "median", "pasha",       "percentile"};

const Algorithms& Parts() {
  static const Algorithms parts = [] {
    Algorithms made;
    made.Add(BohbEntry());
    made.Add(GpEntry());
    made.Add(TpeEntry());
    made.Add(Nsga2Entry());
    return made;
  }();
  return parts;
}

// The sweep as the stage's searcher would have it, with its options as they are by default.
SweepSpec SpecOf(const SweepSpec& spec, const Auto::Stage& stage) {
  SweepSpec own = spec;
  own.searcher = {.name = stage.searcher, .options = {}};
  Parts().Complete(own);
  return own;
}

Result<std::unique_ptr<Searcher>> MakeStage(const SweepSpec& spec, const Auto::Stage& stage) {
  return Parts().MakeSearcher(SpecOf(spec, stage));
}

Result<std::unique_ptr<Searcher>> Make(const SweepSpec& spec) {
  if (auto error = WithoutEndInRange(spec, "auto")) return *error;
  for (const Auto::Stage& stage : Auto::StagesFor(spec)) {
    if (auto made = MakeStage(spec, stage); !made.ok()) return made.error();
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
    const std::vector<Stage> later{{"tpe", kFrontsUntil, "several metrics"},
                                   {"nsga2", 0, results(kFrontsUntil)}};
    if (many || metrics > kGpMetrics) return later;
    std::vector<Stage> all{{"gp", kGpFrontsUntil, std::to_string(metrics) + " metrics"}};
    all.insert(all.end(), later.begin(), later.end());
    return all;
  }
  Stage first{"gp", kGpUntil, "one metric"};
  if (many) first = {"tpe", 0, "more than " + std::to_string(kGpDimensions) + " parameters"};
  if (std::ranges::find(kEndTrialsEarly, spec.scheduler.name) != kEndTrialsEarly.end()) {
    first.until = kBohbFrom;
    return {first, {"bohb", 0, results(kBohbFrom) + " beside " + spec.scheduler.name}};
  }
  if (many) return {first};
  return {first, {"tpe", 0, results(kGpUntil)}};
}

Auto::Auto(const SweepSpec& spec) : stages_(StagesFor(spec)) {
  for (const Stage& stage : stages_) {
    auto made = MakeStage(spec, stage);
    ATTUNE_CHECK(made.ok());
    searchers_.push_back(std::move(made).value());
  }
}

Suggestion Auto::Suggest(ProposalNumber proposal) const {
  Suggestion suggestion = searchers_[at_]->Suggest(proposal);
  if (auto* proposed = std::get_if<Proposed>(&suggestion)) {
    proposed->rationale.text =
        stage().searcher + ", for " + stage().reason + ": " + proposed->rationale.text;
  }
  return suggestion;
}

void Auto::Observe(const Event& event) {
  for (auto& searcher : searchers_) {
    if (searcher) searcher->Observe(event);
  }
  if (!IsResult(event)) return;
  ++results_;
  HandOver();
}

void Auto::HandOver() {
  while (stage().until > 0 && results_ >= stage().until) searchers_[at_++].reset();
}

void Auto::Adapt(const SweepSpec& spec) {
  for (size_t i = at_; i < stages_.size(); ++i) searchers_[i]->Adapt(SpecOf(spec, stages_[i]));
}

void Auto::Save(ArchiveWriter& archive) const {
  archive(results_);
  for (size_t i = at_; i < stages_.size(); ++i) searchers_[i]->Save(archive);
}

void Auto::Load(ArchiveReader& archive) {
  archive(results_);
  HandOver();
  for (size_t i = at_; i < stages_.size(); ++i) searchers_[i]->Load(archive);
}

Entry<Searcher> AutoEntry() {
  return {.name = "auto",
          .help = "chooses among the others by the space, the metrics and the results so far",
          .options = {},
          .make = Make};
}

}  // namespace attune::searchers
