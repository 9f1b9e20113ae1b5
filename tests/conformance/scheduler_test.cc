#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/random.h"
#include "schedulers/register.h"
#include "tests/conformance/seed.h"

namespace attune::conformance {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kMaxStep = 50;  // not a power of a reduction factor
constexpr uint32_t kTrials = 40;

Algorithms Registered() {
  Algorithms algorithms;
  schedulers::RegisterSchedulers(algorithms);
  return algorithms;
}

std::vector<std::string> Names() {
  const Algorithms algorithms = Registered();
  std::vector<std::string> names;
  for (const auto& entry : algorithms.schedulers()) names.push_back(entry.name);
  return names;
}

TrialId Id(uint32_t trial) { return {SweepId(1), TrialNumber(trial)}; }

bool AreEqual(const Verdict& a, const Verdict& b) {
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return a.kind == b.kind && a.donor == b.donor && a.config == b.config &&
         a.reason.text == b.reason.text && a.reason.rule == b.reason.rule &&
         a.reason.rung == b.reason.rung && a.reason.rank == b.reason.rank &&
         a.reason.peers == b.reason.peers && same(a.reason.value, b.reason.value) &&
         same(a.reason.cutoff, b.reason.cutoff);
}

bool AreEqual(const NextMove& a, const NextMove& b) {
  if (a.index() != b.index()) return false;
  const auto* one = std::get_if<Promote>(&a);
  if (one == nullptr) return true;
  const auto& other = std::get<Promote>(b);
  return one->trial == other.trial && one->config == other.config && one->donor == other.donor &&
         one->reason.text == other.reason.text;
}

// A sweep whose trials run in a random order, skip steps, fail, repeat steps and report NaN. All
// events are kept for a replay.
class SweepOfScheduler {
 public:
  SweepOfScheduler(const std::string& name, uint64_t seed, Mode mode)
      : random_(seed, TrialNumber(0), "conformance/sweep") {
    const auto& entry = *algorithms_.FindScheduler(name);
    spec_ = {.objectives = {{"accuracy", mode}},
             .seed = seed,
             .scheduler = WithFallbacks(name, entry.options),
             .max_step = Step(kMaxStep),
             .stop = {.max_trials = 2 * kTrials}};
    scheduler_ = algorithms_.MakeScheduler(spec_).value();
    for (uint32_t trial = 0; trial < kTrials; ++trial) {
      Observe(TrialCreated{.trial = Id(trial), .config = config_});
      live_[trial] = 0;
      attempts_[trial] = 1;
    }
  }

  std::unique_ptr<Scheduler> Replayed() const {
    auto scheduler = algorithms_.MakeScheduler(spec_).value();
    for (const Event& event : log_) scheduler->Observe(event);
    return scheduler;
  }

  // A new instance with the saved state of this one.
  std::unique_ptr<Scheduler> Restored() const {
    ArchiveWriter bytes;
    scheduler_->Save(bytes);
    auto scheduler = algorithms_.MakeScheduler(spec_).value();
    const std::string held = bytes.Take();
    ArchiveReader archive(held);
    scheduler->Load(archive);
    EXPECT_TRUE(archive.AtEnd());
    return scheduler;
  }

  // A copy of this scheduler after an extension of its sweep.
  std::unique_ptr<Scheduler> Extended(Step max_step) const {
    SweepSpec spec = spec_;
    spec.max_step = max_step;
    auto scheduler = Restored();
    scheduler->Adapt(spec);
    return scheduler;
  }

  // Makes the next report of a random trial. Returns false if all trials have ended.
  bool Draw(uint32_t* trial, Report* report) {
    if (live_.empty()) return false;
    auto chosen = live_.begin();
    std::advance(chosen, random_.Integer(0, std::ssize(live_) - 1));
    *trial = chosen->first;
    const int64_t jump = random_.Integer(0, 9) == 0 ? random_.Integer(2, 9) : 1;
    *report = {Step(std::min(chosen->second + jump, kMaxStep)), {{"accuracy", Value()}}};
    return true;
  }

  // Handles a report like the brain: judges it only at a milestone, then observes it and the
  // decision.
  void Record(uint32_t trial, const Report& report) {
    const TrialView view{Id(trial), config_};
    const auto milestone = scheduler_->NextMilestone(view, Step(live_.at(trial)));
    Verdict verdict = Verdict::Continue("");
    if (milestone && report.step >= *milestone) verdict = scheduler_->Judge(view, report);
    Observe(TrialReported{{Id(trial), attempts_[trial]}, report});
    if (verdict.kind == VerdictKind::kExploit) {
      ASSERT_TRUE(saved_.contains(verdict.donor)) << "clones a checkpoint that is not there";
      Observe(TrialDecided{
          .attempt = {Id(trial), attempts_[trial]}, .step = report.step, .verdict = verdict});
      ++attempts_[trial];
      live_[trial] = verdict.donor.step.value;
      return;
    }
    if (random_.Integer(0, 1) == 0) {
      const AttemptId attempt{Id(trial), attempts_[trial]};
      Observe(CheckpointSaved{.attempt = attempt, .checkpoint = {.step = report.step}});
      saved_.insert({attempt.trial, attempt.number, report.step});
    }
    if (verdict.kind == VerdictKind::kPause) {
      Observe(TrialDecided{
          .attempt = {Id(trial), attempts_[trial]}, .step = report.step, .verdict = verdict});
      paused_[TrialNumber(trial)] = report.step;
      live_.erase(trial);
      PromoteOne();
    } else if (verdict.kind != VerdictKind::kContinue || report.step.value >= kMaxStep) {
      Observe(TrialEnded{Id(trial), TrialState::kStopped, verdict.reason.text});
      live_.erase(trial);
    } else {
      const bool fails = random_.Integer(0, 19) == 0;  // and resumes from an older checkpoint
      live_[trial] = fails ? random_.Integer(0, report.step.value) : report.step.value;
    }
  }

  void PromoteOne() {
    const NextMove next = scheduler_->Next(View());
    const auto* promote = std::get_if<Promote>(&next);
    if (promote == nullptr) return;
    ASSERT_TRUE(paused_.contains(promote->trial)) << "promotes a trial that is not paused";
    EXPECT_FALSE(promote->reason.rule.empty() || promote->reason.text.empty());
    live_[promote->trial.value] = paused_.at(promote->trial).value;
    paused_.erase(promote->trial);
    Observe(TrialPromoted{.trial = Id(promote->trial.value), .reason = promote->reason});
  }

  void Observe(Fact fact) {
    log_.push_back({EventSeq(log_.size() + 1), Time{0}, std::move(fact)});
    scheduler_->Observe(log_.back());
  }

  // The view that a scheduler gets when a slot is free.
  SweepView View() const {
    return {.paused = paused_,
            .running = static_cast<int>(live_.size()),
            .created = static_cast<int>(kTrials),
            .may_create = true};
  }

  const Scheduler& scheduler() const { return *scheduler_; }
  const Config& config() const { return config_; }
  const Objective& objective() const { return spec_.objective(); }

 private:
  double Value() {
    constexpr double kBad[] = {kNaN, kInf, -kInf};
    const int64_t luck = random_.Integer(0, 40);
    if (luck < 3) return kBad[luck];
    return static_cast<double>(random_.Integer(0, 30)) / 30;  // many values are equal
  }

  Algorithms algorithms_ = Registered();
  SweepSpec spec_;
  std::unique_ptr<Scheduler> scheduler_;
  RandomStream random_;
  Config config_;
  std::vector<Event> log_;
  std::map<uint32_t, int64_t> live_;       // last step by trial
  std::map<TrialNumber, Step> paused_;     // trials that wait for a promotion
  std::map<uint32_t, uint32_t> attempts_;  // attempts by trial; a clone starts a new attempt
  std::set<CheckpointId> saved_;
};

class SchedulerConformance : public testing::TestWithParam<std::string> {
 protected:
  // Runs the body before every report of many random sweeps, in both modes.
  template <class Body>
  void BeforeEachReport(Body body) {
    for (uint64_t seed = BaseSeed(); seed < BaseSeed() + kRounds; ++seed) {
      SCOPED_TRACE(SeedNote(seed));
      SweepOfScheduler sweep(GetParam(), seed, seed % 2 == 0 ? Mode::kMin : Mode::kMax);
      uint32_t trial = 0;
      Report report;
      while (sweep.Draw(&trial, &report)) {
        body(sweep, TrialView{Id(trial), sweep.config()}, report);
        if (HasFailure()) return;
        sweep.Record(trial, report);
      }
    }
  }
};

TEST_P(SchedulerConformance, RungsGrowAndEndWithinMax) {
  const SweepOfScheduler sweep(GetParam(), 1, Mode::kMax);
  Step last(0);
  for (const Step rung : sweep.scheduler().Rungs()) {
    EXPECT_GT(rung, last);
    EXPECT_LE(rung, Step(kMaxStep));
    last = rung;
  }
}

TEST_P(SchedulerConformance, MilestonesAreLaterStepsWithinMax) {
  BeforeEachReport([](const SweepOfScheduler& sweep, const TrialView& trial, const Report& report) {
    std::optional<Step> last = Step(0);
    for (int64_t after = 0; after <= kMaxStep; ++after) {
      const auto next = sweep.scheduler().NextMilestone(trial, Step(after));
      if (next) {
        ASSERT_TRUE(last.has_value()) << "a milestone after there was none";
        EXPECT_GT(*next, Step(after));
        EXPECT_GE(*next, *last) << "a milestone moved back";
        EXPECT_LE(*next, Step(kMaxStep));
      }
      last = next;
    }
    static_cast<void>(report);
  });
}

TEST_P(SchedulerConformance, JudgingChangesNothing) {
  BeforeEachReport([](const SweepOfScheduler& sweep, const TrialView& trial, const Report& report) {
    const Verdict first = sweep.scheduler().Judge(trial, report);
    static_cast<void>(sweep.scheduler().Judge({Id(kTrials), sweep.config()}, report));
    EXPECT_TRUE(AreEqual(sweep.scheduler().Judge(trial, report), first));
  });
}

TEST_P(SchedulerConformance, EveryVerdictHasAReason) {
  BeforeEachReport([](const SweepOfScheduler& sweep, const TrialView& trial, const Report& report) {
    const Verdict verdict = sweep.scheduler().Judge(trial, report);
    EXPECT_FALSE(verdict.reason.rule.empty());
    EXPECT_FALSE(verdict.reason.text.empty());
    EXPECT_EQ(verdict.reason.step, report.step);
    EXPECT_LE(verdict.reason.rank, verdict.reason.peers);
  });
}

TEST_P(SchedulerConformance, AReplayMakesTheSameDecisions) {
  int reports = 0;
  BeforeEachReport([&](const SweepOfScheduler& sweep, const TrialView& trial,
                       const Report& report) {
    if (++reports % 17 != 0) return;
    const auto replayed = sweep.Replayed();
    EXPECT_TRUE(AreEqual(replayed->Judge(trial, report), sweep.scheduler().Judge(trial, report)));
    EXPECT_EQ(replayed->NextMilestone(trial, report.step),
              sweep.scheduler().NextMilestone(trial, report.step));
    EXPECT_TRUE(AreEqual(replayed->Next(sweep.View()), sweep.scheduler().Next(sweep.View())));
    EXPECT_EQ(replayed->Retained(), sweep.scheduler().Retained());
    EXPECT_EQ(replayed->Rungs(), sweep.scheduler().Rungs());
  });
}

TEST_P(SchedulerConformance, ARestoredSchedulerMakesTheSameDecisions) {
  int reports = 0;
  BeforeEachReport([&](const SweepOfScheduler& sweep, const TrialView& trial,
                       const Report& report) {
    if (++reports % 17 != 0) return;
    const auto restored = sweep.Restored();
    EXPECT_TRUE(AreEqual(restored->Judge(trial, report), sweep.scheduler().Judge(trial, report)));
    EXPECT_EQ(restored->NextMilestone(trial, report.step),
              sweep.scheduler().NextMilestone(trial, report.step));
    EXPECT_TRUE(AreEqual(restored->Next(sweep.View()), sweep.scheduler().Next(sweep.View())));
    EXPECT_EQ(restored->Retained(), sweep.scheduler().Retained());
  });
}

TEST_P(SchedulerConformance, AnExtensionChangesNoVerdictAtEarlyRungs) {
  // The ranks of `extrapolate` depend on the predicted last value, which the extension changes.
  const bool ranks_alike = GetParam() != "extrapolate";
  int reports = 0;
  BeforeEachReport(
      [&](const SweepOfScheduler& sweep, const TrialView& trial, const Report& report) {
        if (++reports % 17 != 0) return;
        const auto rungs = sweep.scheduler().Rungs();
        if (rungs.size() > 1 && report.step >= rungs[rungs.size() - 2]) return;
        const auto extended = sweep.Extended(Step(4 * kMaxStep));
        const Verdict before = sweep.scheduler().Judge(trial, report);
        const Verdict after = extended->Judge(trial, report);
        EXPECT_EQ(after.reason.rung, before.reason.rung);
        EXPECT_EQ(after.reason.peers, before.reason.peers);
        if (!ranks_alike) return;
        EXPECT_EQ(after.kind, before.kind);
        EXPECT_EQ(after.reason.rank, before.reason.rank);
      });
}

TEST_P(SchedulerConformance, ARepeatedReportChangesNothing) {
  int reports = 0;
  BeforeEachReport([&](SweepOfScheduler& sweep, const TrialView& trial, const Report& report) {
    if (++reports % 17 != 0) return;
    const auto once = sweep.Replayed();
    const auto twice = sweep.Replayed();
    const Event event{EventSeq(1), Time{0}, TrialReported{{trial.id, 1}, report}};
    once->Observe(event);
    twice->Observe(event);
    twice->Observe(event);

    const TrialView fresh{Id(kTrials), sweep.config()};
    for (const Step step : {report.step, Step(1), Step(kMaxStep)}) {
      const Report next{step, {{"accuracy", 0.5}}};
      EXPECT_TRUE(AreEqual(twice->Judge(fresh, next), once->Judge(fresh, next)));
      EXPECT_EQ(twice->NextMilestone(trial, step), once->NextMilestone(trial, step));
    }
  });
}

TEST_P(SchedulerConformance, ATrialIsNotJudgedTwiceAtARung) {
  BeforeEachReport([](const SweepOfScheduler& sweep, const TrialView& trial, const Report& report) {
    const auto after = sweep.Replayed();
    after->Observe({EventSeq(1), Time{0}, TrialReported{{trial.id, 1}, report}});
    EXPECT_EQ(after->Judge(trial, report).kind, VerdictKind::kContinue);
    EXPECT_EQ(after->Judge(trial, report).reason.rung, Step(0));
  });
}

// Only a paused trial may be promoted, and a sweep without running trials must not wait.
TEST_P(SchedulerConformance, AnEmptySweepStartsATrial) {
  const SweepOfScheduler sweep(GetParam(), 1, Mode::kMax);
  const std::map<TrialNumber, Step> none;
  const NextMove next = sweep.scheduler().Next({.paused = none, .may_create = true});
  EXPECT_TRUE(std::holds_alternative<StartNew>(next));
}

TEST_P(SchedulerConformance, PromotesNothingWithoutPausedTrials) {
  const SweepOfScheduler sweep(GetParam(), 1, Mode::kMax);
  const std::map<TrialNumber, Step> none;
  const NextMove next = sweep.scheduler().Next({.paused = none, .created = 1});
  EXPECT_FALSE(std::holds_alternative<Promote>(next));
}

TEST_P(SchedulerConformance, TheBestOfAllIsNeverStopped) {
  BeforeEachReport([](const SweepOfScheduler& sweep, const TrialView&, const Report& report) {
    const double best = sweep.objective().mode == Mode::kMax ? 1e9 : -1e9;
    const Verdict verdict =
        sweep.scheduler().Judge({Id(kTrials), sweep.config()}, {report.step, {{"accuracy", best}}});
    EXPECT_TRUE(verdict.kind == VerdictKind::kContinue || verdict.kind == VerdictKind::kPause)
        << verdict.reason.text;
  });
}

TEST_P(SchedulerConformance, IsDescribedInOneLine) {
  const Algorithms algorithms = Registered();
  const auto& entry = *algorithms.FindScheduler(GetParam());
  EXPECT_FALSE(entry.help.empty());
  EXPECT_EQ(entry.help.find('\n'), std::string::npos);
  for (const Option& option : entry.options) EXPECT_FALSE(option.help.empty()) << option.name;
}

INSTANTIATE_TEST_SUITE_P(Registered, SchedulerConformance, testing::ValuesIn(Names()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace attune::conformance
