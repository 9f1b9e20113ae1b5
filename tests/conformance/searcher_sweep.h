#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/space/domain.h"
#include "core/space/draw.h"
#include "searchers/register.h"
#include "tests/conformance/random_space.h"
#include "tests/conformance/seed.h"

namespace attune::conformance {

inline Algorithms RegisteredSearchers() {
  Algorithms algorithms;
  searchers::RegisterSearchers(algorithms);
  return algorithms;
}

inline std::vector<std::string> SearcherNames() {
  const Algorithms algorithms = RegisteredSearchers();
  std::vector<std::string> names;
  for (const auto& entry : algorithms.searchers()) names.push_back(entry.name);
  return names;
}

// Independent of SearchSpace::Resolve, because a searcher may use that function itself.
inline void ExpectInSpace(const SearchSpace& space, const Config& config) {
  size_t present = 0;
  for (const Parameter& parameter : space.parameters()) {
    const Value* value = config.Find(parameter.name);
    ASSERT_EQ(value != nullptr, space.IsActive(parameter, config)) << parameter.name;
    if (value == nullptr) continue;
    EXPECT_EQ(config.entries()[present++].first, parameter.name) << "not in the file's order";
    if (const auto* real = std::get_if<FloatDomain>(&parameter.domain)) {
      EXPECT_GE(std::get<double>(*value), real->min);
      EXPECT_LE(std::get<double>(*value), real->max);
      if (real->step) {
        const double steps = std::round((std::get<double>(*value) - real->min) / *real->step);
        EXPECT_EQ(*value, ValueAt(parameter.domain, static_cast<int64_t>(steps)));
      }
    } else if (const auto* integer = std::get_if<IntDomain>(&parameter.domain)) {
      EXPECT_GE(std::get<int64_t>(*value), integer->min);
      EXPECT_LE(std::get<int64_t>(*value), integer->max);
      EXPECT_EQ((std::get<int64_t>(*value) - integer->min) % integer->step, 0);
    } else if (const auto* choice = std::get_if<CategoricalDomain>(&parameter.domain)) {
      EXPECT_EQ(std::count(choice->values.begin(), choice->values.end(), *value), 1);
    } else {
      EXPECT_EQ(*value, std::get<ConstantDomain>(parameter.domain).value);
    }
  }
  EXPECT_EQ(config.entries().size(), present);
}

// Makes a new searcher for the spec and loads the saved state of `from`.
inline std::unique_ptr<Searcher> Restored(const Searcher& from, const SweepSpec& spec) {
  ArchiveWriter bytes;
  from.Save(bytes);
  auto searcher = RegisteredSearchers().MakeSearcher(spec).value();
  const std::string held = bytes.Take();
  ArchiveReader archive(held);
  searcher->Load(archive);
  EXPECT_TRUE(archive.AtEnd());
  return searcher;
}

// A sweep with a random space. Depending on the seed, it has several metrics, constraints, initial
// points and results of an earlier sweep, if the searcher accepts them. `RunTrial` makes proposals,
// and trials run and end in every possible way. All events are kept for a replay.
class SweepOfSearcher {
 public:
  static constexpr uint32_t kTrials = 30;

  SweepOfSearcher(const std::string& name, uint64_t seed)
      : random_(seed, TrialNumber(0), "conformance/sweep") {
    const auto& entry = *algorithms_.FindSearcher(name);
    spec_ = {.objectives = {Maximise("accuracy")},
             .space = RandomSpaceWithSteps(seed, /*countable=*/false),
             .searcher = WithFallbacks(name, entry.options),
             .seed = seed,
             .max_step = Step(27),
             .stop = {.max_trials = kTrials}};
    const auto population = spec_.searcher.options.find("population");
    if (population != spec_.searcher.options.end())
      population->second = int64_t{6};  // complete after few trials
    if (seed / 2 % 2 == 1) spec_.constraints = {{.metric = "memory", .max = 0.7}};
    auto made = algorithms_.MakeSearcher(spec_);
    if (seed % 3 == 0) {  // a searcher may refuse several metrics
      SweepSpec several = spec_;
      several.objectives.push_back(Minimise("cost"));
      if (algorithms_.MakeSearcher(several).ok()) {
        spec_ = several;
        made = algorithms_.MakeSearcher(spec_);
      }
    }
    if (!made.ok()) {  // a searcher may refuse a space and name a parameter, but not a countable
                       // space
      EXPECT_TRUE(made.error().message.starts_with("parameters.")) << made.error().message;
      spec_.space = RandomSpaceWithSteps(seed, /*countable=*/true);
      made = algorithms_.MakeSearcher(spec_);
    }
    searcher_ = std::move(made).value();
    if (seed % 2 == 1) BeginWarm();
    if (seed % 4 < 2) {
      for (int i = 0; i < 2; ++i) Create(DrawConfig(), std::string(kInitialPoints), std::nullopt);
    }
  }

  // A new instance that has observed the same events.
  std::unique_ptr<Searcher> Replayed() const {
    auto searcher = algorithms_.MakeSearcher(spec_).value();
    for (const Event& event : log_) searcher->Observe(event);
    return searcher;
  }

  // Like the previous function, but the new instance is also asked, saved and restored in between.
  std::unique_ptr<Searcher> ReplayedWithBreaks() const {
    auto searcher = algorithms_.MakeSearcher(spec_).value();
    RandomStream random(spec_.seed, TrialNumber(0), "conformance/breaks");
    for (const Event& event : log_) {
      if (random.Integer(0, 49) == 0)
        static_cast<void>(
            searcher->Suggest(ProposalNumber(static_cast<uint32_t>(random.Integer(0, 50)))));
      if (random.Integer(0, 9) == 0) searcher = conformance::Restored(*searcher, spec_);
      searcher->Observe(event);
    }
    return searcher;
  }

  // A new instance with the saved state of this one.
  std::unique_ptr<Searcher> Restored() const { return conformance::Restored(*searcher_, spec_); }

  // Starts one more trial, sometimes also an enqueued one, and lets some trials report or end.
  // Returns false if the searcher is exhausted.
  bool RunTrial() {
    const Suggestion suggestion = searcher_->Suggest(next());
    const auto* proposed = std::get_if<Proposed>(&suggestion);
    if (proposed == nullptr) return false;
    Create(proposed->config, spec_.searcher.name, next());
    ++next_;
    if (random_.Integer(0, 7) == 0) Create(Asked(), std::string(kEnqueued), std::nullopt);
    for (int64_t left = random_.Integer(2, 7); left > 0; --left) GoOn();
    return true;
  }

  // Makes a random event of one of the trials.
  void GoOn() {
    if (open_.empty() || random_.Integer(0, 15) == 0) return Reopen();
    const auto at = random_.Integer(0, std::ssize(open_) - 1);
    const auto place = open_.begin() + static_cast<ptrdiff_t>(at);
    constexpr TrialState kEnds[] = {TrialState::kCompleted, TrialState::kCompleted,
                                    TrialState::kStopped, TrialState::kFailed, TrialState::kKilled};
    const auto end = [&] {
      Observe(TrialEnded{Id(place->number), kEnds[random_.Integer(0, 4)], "it was time"});
      ended_.push_back(*place);
      open_.erase(place);
    };
    if (place->paused) {
      if (random_.Integer(0, 2) == 0) return end();
      TrialPromoted promoted{.trial = Id(place->number)};
      if (random_.Integer(0, 3) == 0) promoted.config = DrawConfig();
      place->paused = false;
      ++place->attempt;
      return Observe(std::move(promoted));
    }
    switch (random_.Integer(0, 7)) {
      case 0:
      case 1:
      case 2:
        return end();
      case 3:  // paused by the scheduler or with the sweep
        return Pause(*place, random_.Integer(0, 2) > 0 ? "asha" : std::string(kSweepPaused));
      case 4:
        if (random_.Integer(0, 3) == 0) return Exploit(*place);
        [[fallthrough]];
      default:
        return Report(*place);
    }
  }

  // Changes only a limit.
  void Extend() {
    spec_.max_step.value *= 3;
    spec_.stop.max_trials += 7;
    searcher_->Adapt(spec_);
  }

  // Reduces every range to its lower half.
  void Narrow() {
    std::vector<Parameter> parameters = spec_.space.parameters();
    for (Parameter& parameter : parameters) {
      if (auto* real = std::get_if<FloatDomain>(&parameter.domain)) {
        real->max = real->min + (real->max - real->min) / 2;
      } else if (auto* integer = std::get_if<IntDomain>(&parameter.domain)) {
        integer->max = integer->min + (integer->max - integer->min) / 2;
      }
    }
    if (!SearchSpace::Check(parameters).empty()) return;  // a condition would never hold
    spec_.space = SearchSpace(std::move(parameters));
    searcher_->Adapt(spec_);
  }

  void Observe(Fact fact) {
    log_.push_back({EventSeq(log_.size() + 1), Time{0}, std::move(fact)});
    searcher_->Observe(log_.back());
  }

  const Searcher& searcher() const { return *searcher_; }
  const SearchSpace& space() const { return spec_.space; }
  ProposalNumber next() const { return ProposalNumber(next_); }
  uint64_t seed() const { return spec_.seed; }
  const std::vector<Config>& configs() const {
    return configs_;
  }  // initial configurations, by trial
  uint32_t trials() const { return static_cast<uint32_t>(configs_.size()); }

 private:
  struct Open {
    uint32_t number = 0;
    uint32_t attempt = 1;
    int64_t step = 0;
    bool paused = false;
  };
  static constexpr uint32_t kPrior = 15;

  static TrialId Id(uint32_t trial) { return {SweepId(1), TrialNumber(trial)}; }

  // Adds results of an earlier sweep, if the searcher accepts them.
  void BeginWarm() {
    SweepSpec warm = spec_;
    warm.warm_start = {SweepId(8)};
    auto made = algorithms_.MakeSearcher(warm);
    if (!made.ok()) {
      EXPECT_TRUE(made.error().message.starts_with("warm_start: ")) << made.error().message;
      return;
    }
    spec_ = warm;
    searcher_ = std::move(made).value();
    WarmStart start{.from = SweepId(8), .results = kPrior};
    for (uint32_t i = 0; i < kPrior; ++i)
      start.taken.push_back({{start.from, TrialNumber(i)}, DrawConfig(), (i + 0.5) / kPrior});
    Observe(SweepCreated{.sweep = SweepId(1), .spec = spec_, .warm_start = {{start}}});
  }

  Config DrawConfig() {
    Config config;
    for (const size_t place : spec_.space.order()) {
      const Parameter& parameter = spec_.space.parameters()[place];
      if (spec_.space.IsActive(parameter, config))
        config.Set(parameter.name, Draw(parameter.domain, random_));
    }
    return spec_.space.Resolve(config).value();
  }

  // The configuration of an enqueued trial. It may have been tried before.
  Config Asked() {
    const Config& known = configs_[static_cast<size_t>(random_.Integer(0, trials() - 1))];
    const bool again = random_.Integer(0, 1) == 0 && spec_.space.Resolve(known).ok();
    return again ? known : DrawConfig();
  }

  void Create(Config config, std::string origin, std::optional<ProposalNumber> proposal) {
    const uint32_t number = trials();
    configs_.push_back(config);
    open_.push_back({.number = number});
    Observe(TrialCreated{.trial = Id(number),
                         .config = std::move(config),
                         .origin = std::move(origin),
                         .proposal = proposal});
  }

  // Draws metrics. Some are not finite, violate a constraint or are missing.
  void Report(Open& trial) {
    constexpr double kBad[] = {std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity()};
    const int64_t luck = random_.Integer(0, 8);
    const double value = luck < 3 ? kBad[luck] : random_.Uniform();
    Metrics metrics{{"accuracy", value}, {"cost", static_cast<double>(luck)}};
    if (luck != 4) metrics["memory"] = luck == 5 ? kBad[0] : random_.Uniform();
    trial.step += random_.Integer(1, 3);
    Observe(TrialReported{{Id(trial.number), trial.attempt},
                          {Step(trial.step), std::move(metrics), Seconds(1)}});
  }

  void Pause(Open& trial, std::string rule) {
    Report(trial);
    trial.paused = true;
    Observe(TrialDecided{{Id(trial.number), trial.attempt},
                         Step(trial.step),
                         Verdict::Pause({.rule = std::move(rule)}),
                         Step(0),
                         {}});
  }

  void Exploit(Open& trial) {
    Report(trial);
    const CheckpointId donor;
    Observe(TrialDecided{{Id(trial.number), trial.attempt},
                         Step(trial.step),
                         Verdict::Exploit(donor, DrawConfig(), {.rule = "pbt"}),
                         Step(0),
                         {}});
    ++trial.attempt;
  }

  void Reopen() {
    if (ended_.empty()) return;
    const auto at = random_.Integer(0, std::ssize(ended_) - 1);
    Open trial = ended_[static_cast<size_t>(at)];
    ended_.erase(ended_.begin() + static_cast<ptrdiff_t>(at));
    ++trial.attempt;
    trial.paused = false;
    open_.push_back(trial);
    Observe(TrialReopened{.record = {.id = Id(trial.number)}, .reason = "a person asked"});
  }

  Algorithms algorithms_ = RegisteredSearchers();
  SweepSpec spec_;
  std::unique_ptr<Searcher> searcher_;
  RandomStream random_;
  std::vector<Event> log_;
  std::vector<Config> configs_;
  std::vector<Open> open_;  // running, waiting and paused trials
  std::vector<Open> ended_;
  uint32_t next_ = 0;
};

// Observes that the trial of the searcher's proposal has ended with this loss.
inline void TellDone(Searcher& searcher, const std::string& name, uint32_t proposal,
                     const Config& config, double loss, TrialState state = TrialState::kCompleted) {
  const TrialId id(SweepId(1), TrialNumber(proposal));
  for (Fact fact : std::initializer_list<Fact>{
           TrialCreated{
               .trial = id, .config = config, .origin = name, .proposal = ProposalNumber(proposal)},
           TrialReported{{id, 1}, {Step(1), {{"loss", loss}}, Seconds(1)}},
           TrialEnded{id, state, "done"}}) {
    searcher.Observe({EventSeq(proposal + 1), Time{0}, std::move(fact)});
  }
}

}  // namespace attune::conformance
