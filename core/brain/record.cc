#include "core/brain/record.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/random.h"
#include "core/brain/quarantine.h"
#include "core/state/stoppers.h"

namespace attune {
namespace {

// A backoff never grows beyond this many times the first one.
constexpr double kBackoffGrowth = 32;

constexpr double kRenewAfter = 0.1;  // renew a lease once this part of it is used

// If this many attempts of at least two trials fail before the first report, the program is broken,
// and more restarts would only take time.
constexpr int kFailedAttempts = 3;

// The wait before a restart. It doubles with each failure, and is drawn from the upper half of its
// range, so that trials that failed together do not restart together.
Seconds Backoff(const Sweep& sweep, const Trial& trial) {
  const double longest =
      sweep.spec.failure.backoff.value * std::min(std::exp2(trial.failures), kBackoffGrowth);
  RandomStream stream(sweep.spec.seed, trial.id.number,
                      "trial/backoff/" + std::to_string(trial.attempts));
  return Seconds(stream.Uniform(longest / 2, longest));
}

// The wait after a failure that the host caused. The host may lack disk space, or a checkpoint from
// another host, for some time.
Seconds HostFailureDelay(const Trial& trial) {
  return Seconds(std::min(std::exp2(trial.attempts - 1), kBackoffGrowth));
}

Time AddDelay(Time now, Seconds delay) {
  return Time{now.us + static_cast<int64_t>(delay.value * 1e6)};
}

// The restart after a failure, for a message.
std::string DescribeRestart(const Sweep& sweep, const Trial& trial, Seconds delay) {
  const KeptCheckpoint* source = trial.ResumeCheckpoint();
  std::string text = "restart " + std::to_string(trial.failures + 1) + " of " +
                     std::to_string(sweep.spec.failure.max_restarts) +
                     (source != nullptr ? " from step " + std::to_string(source->ref.step.value)
                                        : " from the beginning");
  if (delay.value > 0) text += " after " + FormatShort(delay.value) + " s";
  return text;
}

// What is wrong with the step of a report if a metric measures time; empty: nothing. A program that
// does not know about the metric counts steps instead.
std::string FindWrongStep(const SweepSpec& spec, const Report& report) {
  if (spec.time_attr.empty()) return "";
  const double time = report.metrics.find(spec.time_attr)->second;
  if (StepOfTime(time) == report.step) return "";
  return "the report says step " + std::to_string(report.step.value) + " where " + spec.time_attr +
         ", which the sweep measures time in, is " + FormatShort(time) +
         "; the program has to be built with this release's SDK, or has to report that as its step";
}

// Which metric of the sweep the report lacks, or what is wrong with its step; empty: nothing.
std::string FindReportFault(const SweepSpec& spec, const Report& report) {
  const std::vector<std::string> asked = spec.ReportedMetrics();
  const auto missing = std::ranges::find_if(
      asked, [&](const std::string& metric) { return !report.metrics.contains(metric); });
  if (missing == asked.end()) return FindWrongStep(spec, report);
  std::string has;
  for (const auto& [name, value] : report.metrics) has += (has.empty() ? "" : ", ") + name;
  return "the report at step " + std::to_string(report.step.value) + " has no metric " + *missing +
         (has.empty() ? "" : "; it has " + has);
}

class Recorder {
 public:
  Recorder(const State& state, const Trial& trial, std::string executor, Time now, Facts& facts)
      : state_(state),
        sweep_(*state.Find(trial.id.sweep)),
        trial_(trial),
        executor_(std::move(executor)),
        now_(now),
        facts_(facts) {}

  // A lease is not renewed before a part of it is used, so that the log does not grow with
  // heartbeats.
  void operator()(const AttemptRenewed& fact) {
    const Attempt& live = *trial_.live;
    const double used_us =
        live.lease.value * 1e6 - static_cast<double>(live.lease_until.us - now_.us);
    if (used_us >= kRenewAfter * live.lease.value * 1e6 && live.lease.value > 0)
      facts_.push_back(fact);
  }

  void operator()(const AttemptStarted& fact) {
    if (trial_.live->state != AttemptState::kAssigned) return;
    AttemptStarted started = fact;  // a faulty executor may send too many pids
    started.pids.resize(std::min(started.pids.size(), trial_.live->ranks.size()));
    facts_.push_back(std::move(started));
  }

  void operator()(const AttemptFirstStep& fact) {
    if (!trial_.live->stepped) facts_.push_back(fact);
  }

  void operator()(const RendezvousOpened& fact) {
    const auto& known = trial_.live->rendezvous;
    // An executor repeats the message if it got no answer.
    const bool adds = !known || (known->host.empty() && !fact.rendezvous.host.empty());
    if (trial_.live->SpansExecutors() && adds) facts_.push_back(fact);
  }

  void operator()(const CheckpointSaved& fact) {
    if (!trial_.checkpoints.empty()) {
      const KeptCheckpoint& newest = trial_.checkpoints.back();
      if (newest.attempt == fact.attempt.number && fact.checkpoint.step <= newest.ref.step) return;
    }
    // The message is a repetition, and the checkpoint was dropped meanwhile.
    const auto removals = state_.removals.find(executor_);
    if (removals != state_.removals.end() &&
        removals->second.contains({trial_.id, fact.attempt.number, fact.checkpoint.step}))
      return;
    facts_.push_back(fact);
  }

  // A new attempt repeats steps that were reported before. Repeated reports change nothing, but a
  // rank that waits gets an answer. Reports of an attempt that must leave are ignored.
  void operator()(const TrialReported& fact) {
    if (trial_.state != TrialState::kRunning || trial_.live->verdict != VerdictKind::kContinue ||
        trial_.live->part_outcome != Outcome::kFinished)
      return;
    const Report& report = fact.report;
    const bool waits = report.waits || IsRunByClient();
    if (report.step <= trial_.last_step) {
      if (waits && report.step > trial_.live->verdict_step)
        Decide(fact, Yield().value_or(
                         Verdict::Continue("step " + Text(report.step) + " was reported before")));
      return;
    }
    facts_.push_back(fact);
    if (const std::string fault = FindReportFault(sweep_.spec, report); !fault.empty()) {
      FailTrial(sweep_, trial_, fault, IsRunByClient() ? "" : "its program reports something else",
                facts_);
      return;
    }
    const Step last = LastStep(sweep_, trial_);
    const bool at_milestone = trial_.milestone.value > 0 && report.step >= trial_.milestone;
    if (last.value > 0 && report.step >= last) {
      Complete(fact, last);
    } else if (at_milestone || waits) {
      Decide(fact, VerdictOn(report, at_milestone));
    } else if (!trial_.yield_verdict) {
      // If it is not asked now, it reports twice more before it leaves: the next report does not
      // wait.
      auto verdict = TrialLimitReached(sweep_, trial_, report);
      if (!verdict) verdict = LeaveInTime(2);
      if (verdict) facts_.push_back(TrialYielding{trial_.id, std::move(*verdict)});
    }
  }

  void operator()(const MetricsLogged& fact) {
    if (fact.number > trial_.live->logged) facts_.push_back(fact);
  }

  void operator()(const AttemptEnded& fact) { End(fact, false); }

  void End(AttemptEnded ended, bool over) {
    const std::string silence =
        ended.outcome == Outcome::kFinished ? std::exchange(ended.failure, {}).message : "";
    if (ended.outcome == Outcome::kFailed) {
      ended.failure.executor = executor_;
      if (FindLogPolicy(sweep_.spec.failure, ended.failure) != nullptr)
        ended.failure.message += "; " + DescribeLogMatch(ended.failure);
    }
    if (trial_.live->SpansExecutors()) {
      if (ended.outcome == Outcome::kFailed)
        ended.failure.message = "on executor " + executor_ + ": " + ended.failure.message;
      // If rank 0 was told to leave, the other ranks end because of that. Their ends may arrive
      // first.
      const bool follows_rank_zero = trial_.live->verdict != VerdictKind::kContinue &&
                                     trial_.live->part_outcome == Outcome::kFinished &&
                                     executor_ != trial_.live->ranks.front().executor;
      if (follows_rank_zero && ended.outcome != Outcome::kLost)
        ended = {ended.attempt, Outcome::kFinished, {}};
    }
    if (trial_.live->HoldsSlotsElsewhere(executor_)) {
      facts_.push_back(AttemptPartEnded{ended.attempt, executor_, ended.outcome, ended.failure});
      return;
    }
    if (!trial_.live->ended_parts.empty()) {
      Attempt gang = *trial_.live;
      gang.NotePartEnd(ended.outcome, ended.failure);
      ended.outcome = gang.part_outcome;
      ended.failure = std::move(gang.failure);
    }
    const VerdictKind verdict = trial_.live->verdict;
    if (ended.outcome == Outcome::kFinished && verdict == VerdictKind::kStop &&
        trial_.state == TrialState::kStopped)
      ended.outcome = Outcome::kStopped;
    if (ended.outcome == Outcome::kFinished &&
        (verdict == VerdictKind::kPause || verdict == VerdictKind::kExploit ||
         verdict == VerdictKind::kResize))
      ended.outcome = Outcome::kPaused;
    const Failure failure = ended.failure;
    facts_.push_back(ended);
    if (ended.outcome == Outcome::kFailed) Blame(failure);
    if (over) return;
    EndIfWaiting(sweep_, trial_, facts_);
    if (trial_.state != TrialState::kRunning) return;  // its state was decided before it left

    switch (ended.outcome) {
      case Outcome::kFinished:
        EndTrial(trial_, TrialState::kCompleted, ReasonToComplete(silence), facts_);
        return;
      case Outcome::kPaused:
        Requeue(sweep_, trial_,
                verdict == VerdictKind::kResize
                    ? "continues with more workers"
                    : "continues as a clone of trial " + Text(trial_.donor),
                now_, facts_);
        return;
      case Outcome::kFailed:
        DecideFailure(failure);
        return;
      case Outcome::kLost:
        Requeue(sweep_, trial_, failure.message, now_, facts_);
        return;
      default:
        Requeue(sweep_, trial_,
                "attempt " + std::to_string(ended.attempt.number) + " was ended by its executor",
                now_, facts_);
    }
  }

 private:
  static std::string Text(Step step) { return std::to_string(step.value); }
  static std::string Text(const std::optional<CheckpointId>& donor) {
    return donor ? std::to_string(donor->trial.number.value) : "another";
  }

  // Why a trial that has not reached its last step is complete.
  std::string ReasonToComplete(const std::string& silence) const {
    const bool external = sweep_.spec.External();
    if (trial_.last_step.value > 0)
      return (external ? "its client said that it is complete after step "
                       : "the program ended by itself after step ") +
             Text(trial_.last_step);
    return (external ? "its client said that it is complete without reporting "
                     : "the program ended without reporting ") +
           sweep_.spec.objective().metric + (silence.empty() ? "" : ": " + silence);
  }

  void Complete(const TrialReported& fact, Step last) {
    const std::string text = "reached step " + Text(last) + ", the last";
    const double value = sweep_.spec.objective().ValueIn(fact.report.metrics);
    facts_.push_back(TrialDecided{
        .attempt = fact.attempt,
        .step = fact.report.step,
        .verdict = Verdict::Stop(
            {.rule = "max_step", .step = fact.report.step, .value = value, .text = text})});
    EndTrial(trial_, TrialState::kCompleted, text, facts_);
  }

  // A verdict that ends the trial takes precedence: from the scheduler, from a requested yield, or
  // from the trial's limits, in this order. Then follow other verdicts: of the scheduler, then of a
  // yield.
  Verdict VerdictOn(const Report& report, bool at_milestone) const {
    Verdict verdict = Verdict::Continue("continues at step " + Text(report.step));
    if (at_milestone && trial_.until.value == 0)
      verdict = sweep_.scheduler->Judge(TrialView{trial_.id, trial_.config}, report);
    if (verdict.kind == VerdictKind::kExploit && FindCloneable(sweep_, verdict.donor) == nullptr) {
      verdict.kind = VerdictKind::kContinue;
      verdict.reason.text += "; but trial " + std::to_string(verdict.donor.trial.number.value) +
                             " has no checkpoint of step " + Text(verdict.donor.step) + " to clone";
    }
    if (verdict.kind == VerdictKind::kStop) return verdict;
    if (trial_.yield_verdict && trial_.yield_verdict->kind == VerdictKind::kStop)
      return *trial_.yield_verdict;
    if (auto limit = TrialLimitReached(sweep_, trial_, report)) return *std::move(limit);
    return verdict.kind == VerdictKind::kContinue ? Yield().value_or(verdict) : verdict;
  }

  // The verdict that it was asked to get at its next report. It is not asked to leave an executor
  // if it would not start again.
  std::optional<Verdict> Yield() const {
    if (!trial_.yield_verdict) return LeaveInTime(1);
    if (trial_.yield_verdict->reason.rule == kExecutorDrained && !MayRunAgain())
      return std::nullopt;
    return trial_.yield_verdict;
  }

  bool MayRunAgain() const { return !sweep_.stopping_as || trial_.requested; }

  // Returns a pause if one of the gang's executors ends before the gang can send this many reports.
  std::optional<Verdict> LeaveInTime(int reports) const {
    // A program whose output is parsed has no checkpoint, and may still finish.
    if (state_.ending.empty() || !MayRunAgain() || !sweep_.spec.program.report_pattern.empty())
      return std::nullopt;
    const Seconds needs(kLeaveBefore.value + reports * sweep_.report_gap.value);
    for (const RankSlot& slot : trial_.live->ranks) {
      const auto executor = state_.executors.find(slot.executor);
      if (executor == state_.executors.end()) continue;
      const Host& host = executor->second.host;
      // If the whole lifetime of the executor is too short, leaving early does not help.
      if (host.lifetime < MinRuntimeOf(sweep_) || LivesLongEnough(host, needs, now_)) continue;
      const int64_t left_us = std::max<int64_t>(host.end_time.us - now_.us, 0);
      return Verdict::Pause(
          {.rule = std::string(kExecutorDrained),
           .text = "saved and left, to continue elsewhere: executor " + slot.executor +
                   " ends in " + std::to_string(left_us / 1'000'000) + " s, and a report takes " +
                   FormatShort(std::ceil(sweep_.report_gap.value * 100) / 100) + " s"});
    }
    return std::nullopt;
  }

  void Decide(const TrialReported& fact, Verdict verdict) {
    verdict.reason.step = fact.report.step;
    TrialDecided decided{.attempt = fact.attempt, .step = fact.report.step, .verdict = verdict};
    if (verdict.kind == VerdictKind::kContinue) {
      decided.milestone =
          NextMilestone(sweep_, trial_, std::max(fact.report.step, trial_.last_step));
    }
    if (verdict.kind == VerdictKind::kExploit)
      decided.cloned = *FindCloneable(sweep_, verdict.donor);
    facts_.push_back(std::move(decided));

    switch (verdict.kind) {
      case VerdictKind::kContinue:
        return;
      case VerdictKind::kResize:  // only gangs get this verdict
        return;
      case VerdictKind::kStop:
        EndTrial(trial_, TrialState::kStopped, verdict.reason.text, facts_);
        return;
      case VerdictKind::kPause:
        if (IsRunByClient()) facts_.push_back(AttemptEnded{fact.attempt, Outcome::kPaused, {}});
        if (verdict.reason.rule == kExecutorDrained)
          Requeue(sweep_, trial_, verdict.reason.text, now_, facts_);
        return;
      case VerdictKind::kExploit:
        if (!IsRunByClient()) return;
        facts_.push_back(AttemptEnded{fact.attempt, Outcome::kPaused, {}});
        Requeue(sweep_, trial_, "continues as a clone of trial " + Text(verdict.donor), now_,
                facts_);
        return;
    }
  }

  // Records the failure against its host, independent of the consequences for the trial.
  void Blame(const Failure& failure) {
    if (!BlamesHost(failure)) return;
    const LogPolicy* policy = FindLogPolicy(sweep_.spec.failure, failure);
    if (policy != nullptr && policy->action == LogAction::kExcludeHost &&
        !ExcludedFrom(state_, sweep_).contains(failure.executor))
      facts_.push_back(ExecutorExcluded{sweep_.id, failure.executor, DescribeLogMatch(failure)});
    QuarantineIfItKeepsFailing(state_, trial_.id, failure.executor, now_, facts_);
  }

  // Describes the log line that matched a rule of failure.on_log.
  static std::string DescribeLogMatch(const Failure& failure) {
    return "its log says \"" + failure.line + "\" (failure.on_log: " + failure.pattern + ")";
  }

  void DecideFailure(const Failure& failure) {
    const std::string what = "attempt " + std::to_string(trial_.attempts) + ": " + failure.message;
    const LogPolicy* policy = FindLogPolicy(sweep_.spec.failure, failure);
    if (failure.kind == FailureKind::kLease) {
      Requeue(sweep_, trial_, what, now_, facts_);
    } else if (policy != nullptr && policy->action == LogAction::kFail) {
      FailTrial(sweep_, trial_, what, "", facts_);
    } else if (policy != nullptr && !trial_.avoided.contains(failure.executor)) {
      Requeue(sweep_, trial_, what + "; it continues on another executor than " + failure.executor,
              now_, facts_, failure.executor);
    } else if (failure.kind == FailureKind::kEnvironment) {
      DecideFailedBuild(failure, what);
    } else if (failure.kind == FailureKind::kHost || IsFirstFullDisk(trial_, failure)) {
      const Seconds delay = HostFailureDelay(trial_);
      Requeue(sweep_, trial_, what + "; again after " + FormatShort(delay.value) + " s",
              AddDelay(now_, delay), facts_);
    } else if (failure.kind == FailureKind::kStart) {
      FailTrial(sweep_, trial_, what, "its program could not be started", facts_);
    } else if (const std::string broken = DescribeBrokenProgram(failure);
               HasNoRestartLeft() || !broken.empty()) {
      FailTrial(sweep_, trial_, what, broken, facts_);
    } else {
      const Seconds delay = Backoff(sweep_, trial_);
      Requeue(sweep_, trial_, what + "; " + DescribeRestart(sweep_, trial_, delay),
              AddDelay(now_, delay), facts_);
    }
  }

  // The first failure is the host's. The sweep fails if a second host fails, or the only host fails
  // again, and no host has built the environment.
  void DecideFailedBuild(const Failure& failure, const std::string& what) {
    if (IsBrokenEnvironment(failure))
      return FailTrial(sweep_, trial_, what, "its environment could not be built", facts_);
    const Seconds delay = HostFailureDelay(trial_);
    Requeue(sweep_, trial_, what + "; again after " + FormatShort(delay.value) + " s",
            AddDelay(now_, delay), facts_, failure.executor);
  }

  bool IsBrokenEnvironment(const Failure& failure) const {
    const auto has_started = [&](TrialNumber number) {
      return sweep_.Find(number)->live->state == AttemptState::kRunning;
    };
    if (sweep_.reported || std::ranges::any_of(sweep_.live, has_started)) return false;
    const auto here = sweep_.failed_builds.find(failure.executor);
    const bool is_new_host = here == sweep_.failed_builds.end();
    if (sweep_.failed_builds.size() > (is_new_host ? 0u : 1u)) return true;
    // Attempts that waited for the same build fail together.
    const bool has_failed_again = !is_new_host && trial_.live->assigned_at > here->second;
    return has_failed_again && (CountExecutors() == 1 || trial_.avoided.contains(failure.executor));
  }

  int64_t CountExecutors() const {
    return std::ranges::count_if(state_.executors,
                                 [](const auto& entry) { return !entry.second.lost; });
  }

  // Why the program would fail everywhere; "" if the host or the configuration may be the cause.
  std::string DescribeBrokenProgram(const Failure& failure) const {
    if (sweep_.reported || IsRunByClient()) return "";
    for (const TrialNumber number : sweep_.live) {
      const Trial& other = *sweep_.Find(number);
      const bool lives_longer = other.live->assigned_at <= trial_.live->assigned_at;
      if (&other != &trial_ && (other.live->stepped || lives_longer)) return "";
    }
    EarlyFailures early = sweep_.early_failures;
    early.Note(trial_.id.number, failure);
    if (early.count < kFailedAttempts || early.trials.size() < 2 ||
        (early.executors.size() < 2 && CountExecutors() > 1))
      return "";
    return "the first " + std::to_string(early.count) +
           " attempts failed before anything was reported";
  }

  // Whether a client runs the trial over the ask/tell API. It waits for every verdict and obeys it
  // at once.
  bool IsRunByClient() const { return trial_.live->ranks.empty(); }

  bool HasNoRestartLeft() const { return trial_.failures >= sweep_.spec.failure.max_restarts; }

  const State& state_;
  const Sweep& sweep_;
  const Trial& trial_;
  const std::string executor_;  // the sender
  const Time now_;
  Facts& facts_;
};

}  // namespace

void Record(const State& state, const RecordFact& command, Time now, Facts& facts) {
  const AttemptId id = std::visit([](const auto& fact) { return fact.attempt; }, command.fact);
  const Trial* trial = state.Find(id.trial);
  if (trial == nullptr || !trial->live || trial->live->epoch != command.epoch ||
      trial->live->id != id)
    return;
  const auto& ranks = trial->live->ranks;
  std::string executor = command.executor;
  if (!ranks.empty()) {
    const std::string& first = ranks.front().executor;
    if (executor.empty() && trial->live->HoldsSlotsElsewhere(first))
      return;  // the sender is unknown
    if (executor.empty()) executor = first;
    if (!trial->live->HoldsSlotsOn(executor)) return;
    if (executor != first && !std::holds_alternative<AttemptEnded>(command.fact)) return;
  }
  std::visit(Recorder(state, *trial, std::move(executor), now, facts), command.fact);
}

void EndPart(const State& state, const Trial& trial, const std::string& executor,
             const AttemptEnded& end, bool over, Time now, Facts& facts) {
  Recorder(state, trial, executor, now, facts).End(end, over);
}

}  // namespace attune
