#include "core/decide.h"

#include <algorithm>
#include <utility>

namespace attune {
namespace {

// A sweep in which nothing has reported yet and this many trials have failed has a broken program.
constexpr int kFailedBeforeAnyReport = 3;

std::string Restarting(const Sweep& sweep, const Trial& trial) {
  const std::string from = trial.checkpoint
                               ? "from step " + std::to_string(trial.checkpoint->step.value)
                               : std::string("from the beginning");
  return "restart " + std::to_string(trial.failures + 1) + " of " +
         std::to_string(sweep.spec.failure.max_restarts) + " " + from;
}

// The step of the next decision, never past the last step; 0 when there is none.
Step NextMilestone(const Sweep& sweep, const TrialView& view, Step after) {
  const Step last = sweep.spec.max_step;
  const auto next = sweep.scheduler->NextMilestone(view, after);
  if (!next) return last;
  return last.value > 0 ? std::min(*next, last) : *next;
}

// Decides on one command. The facts it has collected are not applied yet: where a later one
// depends on an earlier one, it says so.
class Decider {
 public:
  explicit Decider(const State& state) : state_(state) {}

  Status operator()(const CreateSweep& command) {
    if (state_.FindByKey(command.idempotency_key) != nullptr) return {};
    if (auto searcher = state_.algorithms->MakeSearcher(command.spec); !searcher.ok())
      return searcher.error();
    if (auto scheduler = state_.algorithms->MakeScheduler(command.spec); !scheduler.ok())
      return scheduler.error();
    Add(SweepCreated{.sweep = SweepId(state_.last_sweep.value + 1),
                     .spec = command.spec,
                     .source = command.source,
                     .idempotency_key = command.idempotency_key});
    return {};
  }

  Status operator()(const StopSweep& command) {
    const Sweep* sweep = state_.Find(command.sweep);
    if (Status refused = CheckRunning(sweep, command.sweep); !refused.ok()) return refused;
    if (!sweep->stopping_as) StopSweepAs(*sweep, SweepState::kStopped, "stopped on request");
    return {};
  }

  Status operator()(const KillSweep& command) {
    const Sweep* sweep = state_.Find(command.sweep);
    if (Status refused = CheckRunning(sweep, command.sweep); !refused.ok()) return refused;
    if (sweep->stopping_as != SweepState::kKilled) {
      Add(SweepStopping{sweep->id, SweepState::kKilled, "killed on request"});
      KillTrials(*sweep, "killed with its sweep");
    }
    return {};
  }

  Status operator()(const JoinExecutor& command) {
    if (command.name.empty())
      return Error{ErrorCode::kInvalid, "an executor must have a name: start it with --name NAME"};
    const auto known = state_.executors.find(command.name);
    if (known != state_.executors.end() && !known->second.lost) {
      if (known->second.instance == command.instance) return {};
      Lose(known->second, "its process was replaced by another");
    }
    Add(ExecutorJoined{.name = command.name,
                       .instance = command.instance,
                       .incarnation = Incarnation(state_.last_incarnation.value + 1),
                       .address = command.address,
                       .resources = command.resources});
    return {};
  }

  Status operator()(const LoseExecutor& command) {
    const auto known = state_.executors.find(command.name);
    if (known != state_.executors.end() && !known->second.lost &&
        known->second.incarnation == command.incarnation)
      Lose(known->second, command.reason);
    return {};
  }

  Status operator()(const RecordFact& command) {
    const AttemptId id = std::visit([](const auto& fact) { return fact.attempt; }, command.fact);
    const Trial* trial = state_.Find(id.trial);
    if (trial == nullptr || !trial->live || trial->live->epoch != command.epoch ||
        trial->live->id != id)
      return {};
    const Sweep& sweep = *state_.Find(id.trial.sweep);
    std::visit([&](const auto& fact) { Record(sweep, *trial, fact); }, command.fact);
    return {};
  }

  std::vector<Fact> Take() { return std::move(facts_); }

 private:
  void Add(Fact fact) { facts_.push_back(std::move(fact)); }

  static Status CheckRunning(const Sweep* sweep, SweepId id) {
    if (sweep == nullptr) return Error{ErrorCode::kNotFound, "there is no sweep " + ToString(id)};
    if (Ended(sweep->state))
      return Error{ErrorCode::kConflict, "sweep " + ToString(id) + " has already ended: it is " +
                                             std::string(Name(sweep->state))};
    return {};
  }

  // Running trials go on; those that wait for another attempt get none.
  void StopSweepAs(const Sweep& sweep, SweepState outcome, const std::string& reason) {
    Add(SweepStopping{sweep.id, outcome, reason});
    for (const Trial& trial : sweep.trials) {
      if (!Ended(trial.state) && !trial.live)
        Add(TrialEnded{trial.id, TrialState::kKilled, "not resumed: the sweep was " + reason});
    }
  }

  void KillTrials(const Sweep& sweep, const std::string& reason, const Trial* except = nullptr) {
    for (const Trial& trial : sweep.trials) {
      if (!Ended(trial.state) && &trial != except)
        Add(TrialEnded{trial.id, TrialState::kKilled, reason});
    }
  }

  // Its gangs are gone with it; their trials go on elsewhere.
  void Lose(const Executor& executor, const std::string& reason) {
    for (const auto& [id, sweep] : state_.sweeps) {
      for (TrialNumber number : sweep.live) {
        const Trial& trial = *sweep.Find(number);
        if (std::ranges::none_of(trial.live->ranks, [&](const RankSlot& slot) {
              return slot.executor == executor.name;
            }))
          continue;
        Add(AttemptEnded{trial.live->id, Outcome::kLost, {}});
        if (trial.state == TrialState::kRunning)
          Requeue(sweep, trial, "executor " + executor.name + " was lost: " + reason);
      }
    }
    Add(ExecutorLost{executor.name, executor.incarnation, reason});
  }

  void Requeue(const Sweep& sweep, const Trial& trial, const std::string& reason) {
    if (sweep.stopping_as) {
      Add(TrialEnded{trial.id, TrialState::kKilled,
                     reason + "; not resumed because the sweep was " + sweep.reason});
    } else {
      Add(TrialRequeued{trial.id, reason});
    }
  }

  // ---- facts of a live attempt -------------------------------------------------------------

  void Record(const Sweep&, const Trial& trial, const AttemptStarted& fact) {
    if (trial.live->state == AttemptState::kAssigned) Add(fact);
  }

  void Record(const Sweep&, const Trial&, const AttemptFirstStep& fact) { Add(fact); }

  void Record(const Sweep&, const Trial& trial, const CheckpointSaved& fact) {
    if (!trial.checkpoint || fact.checkpoint.step > trial.checkpoint->step) Add(fact);
  }

  // A retried attempt walks again over steps that were reported before: those change nothing.
  void Record(const Sweep& sweep, const Trial& trial, const TrialReported& fact) {
    if (fact.report.step <= trial.last_step || trial.state != TrialState::kRunning) return;
    Add(fact);

    if (!fact.report.metrics.contains(sweep.spec.objective.metric)) {
      std::string has;
      for (const auto& [name, value] : fact.report.metrics) has += (has.empty() ? "" : ", ") + name;
      EndFailed(sweep, trial,
                "the report at step " + std::to_string(fact.report.step.value) + " has no metric " +
                    sweep.spec.objective.metric + (has.empty() ? "" : "; it has " + has));
      return;
    }
    const Step last = sweep.spec.max_step;
    if (last.value > 0 && fact.report.step >= last) {
      const std::string text = "reached step " + std::to_string(last.value) + ", the last";
      Add(TrialDecided{.attempt = fact.attempt,
                       .step = fact.report.step,
                       .verdict = Verdict::Stop(
                           {.rule = "max_step",
                            .step = fact.report.step,
                            .value = fact.report.metrics.find(sweep.spec.objective.metric)->second,
                            .text = text})});
      Add(TrialEnded{trial.id, TrialState::kCompleted, text});
    } else if (trial.milestone.value > 0 && fact.report.step >= trial.milestone) {
      Judge(sweep, trial, fact);
    }
  }

  void Judge(const Sweep& sweep, const Trial& trial, const TrialReported& fact) {
    const TrialView view{trial.id, trial.config};
    TrialDecided decided{.attempt = fact.attempt,
                         .step = fact.report.step,
                         .verdict = sweep.scheduler->Judge(view, fact.report)};
    if (decided.verdict.kind == VerdictKind::kContinue)
      decided.milestone = NextMilestone(sweep, view, fact.report.step);
    const std::string text = decided.verdict.reason.text;
    const bool stop = decided.verdict.kind == VerdictKind::kStop;
    Add(std::move(decided));
    if (stop) Add(TrialEnded{trial.id, TrialState::kStopped, text});
  }

  void Record(const Sweep& sweep, const Trial& trial, const AttemptEnded& fact) {
    AttemptEnded ended = fact;
    if (fact.outcome == Outcome::kFinished && trial.state == TrialState::kStopped)
      ended.outcome = Outcome::kStopped;
    if (fact.outcome == Outcome::kFinished && trial.state == TrialState::kPaused)
      ended.outcome = Outcome::kPaused;
    Add(ended);
    if (trial.state == TrialState::kPaused && sweep.stopping_as)
      Add(TrialEnded{trial.id, TrialState::kKilled, "not resumed: the sweep was " + sweep.reason});
    if (trial.state != TrialState::kRunning) return;  // already decided; only its slots were held

    switch (fact.outcome) {
      case Outcome::kFinished:
        Add(TrialEnded{
            trial.id, TrialState::kCompleted,
            trial.last_step.value > 0
                ? "the program ended by itself after step " + std::to_string(trial.last_step.value)
                : "the program ended without reporting " + sweep.spec.objective.metric});
        return;
      case Outcome::kFailed:
        RecordFailure(sweep, trial, fact.failure);
        return;
      default:
        Requeue(
            sweep, trial,
            "attempt " + std::to_string(fact.attempt.number) + " was torn down by its executor");
    }
  }

  void RecordFailure(const Sweep& sweep, const Trial& trial, const Failure& failure) {
    const std::string what = "attempt " + std::to_string(trial.attempts) + ": " + failure.message;
    if (failure.kind == FailureKind::kLease) {
      Requeue(sweep, trial, what);
    } else if (failure.kind == FailureKind::kStart) {
      EndFailed(sweep, trial, what, /*could_not_start=*/true);
    } else if (trial.failures >= sweep.spec.failure.max_restarts) {
      EndFailed(sweep, trial, what);
    } else {
      Requeue(sweep, trial, what + "; " + Restarting(sweep, trial));
    }
  }

  // The trial has failed, and with it perhaps the sweep.
  void EndFailed(const Sweep& sweep, const Trial& trial, const std::string& reason,
                 bool could_not_start = false) {
    Add(TrialEnded{trial.id, TrialState::kFailed, reason});
    if (sweep.stopping_as) return;
    const int failed = sweep.Count(TrialState::kFailed) + 1;
    std::string why;
    if (failed > sweep.spec.failure.max_failed_trials) {
      why = std::to_string(failed) + " trials failed, more than failure.max_failed_trials allows";
    } else if (!sweep.reported && failed >= kFailedBeforeAnyReport) {
      why = "the first " + std::to_string(failed) + " trials failed before anything was reported";
    } else if (!sweep.reported && could_not_start) {
      why = "its program could not be started";
    }
    if (why.empty()) return;
    Add(SweepStopping{sweep.id, SweepState::kFailed,
                      why + "; trial " + std::to_string(trial.id.number.value) + ": " + reason});
    KillTrials(sweep, "its sweep failed", &trial);
  }

 private:
  const State& state_;
  std::vector<Fact> facts_;
};

std::vector<Host> ReachableHosts(const State& state, const Reachable& reachable) {
  std::vector<Host> hosts;
  for (const auto& [name, executor] : state.executors) {
    if (!executor.lost && reachable(name)) hosts.push_back(executor.host);
  }
  return hosts;
}

// The trial that waits for slots longest: requeued ones first, then those a scheduler promotes.
const Trial* NextWaiting(const Sweep& sweep) {
  if (sweep.Count(TrialState::kPending) > 0) {
    for (const Trial& trial : sweep.trials) {
      if (trial.state == TrialState::kPending && !trial.live) return &trial;
    }
  }
  if (sweep.Count(TrialState::kPaused) > 0) {
    if (const auto promoted = sweep.scheduler->Promote()) {
      const Trial* trial = sweep.Find(*promoted);
      if (trial != nullptr && trial->state == TrialState::kPaused && !trial->live) return trial;
    }
  }
  return nullptr;
}

bool MayCreate(const Sweep& sweep) {
  return !sweep.exhausted && (sweep.spec.max_trials == 0 || sweep.created < sweep.spec.max_trials);
}

bool MayStartGang(const Sweep& sweep) {
  return !Ended(sweep.state) && !sweep.stopping_as &&
         (sweep.spec.max_concurrent_trials == 0 ||
          std::ssize(sweep.live) < sweep.spec.max_concurrent_trials);
}

Fact Assign(const State& state, const Sweep& sweep, const TrialId& id, const Config& config,
            const Trial* trial, std::vector<RankSlot> ranks) {
  AttemptAssigned fact{.attempt = {id, trial == nullptr ? 1 : trial->attempts + 1},
                       .epoch = Epoch(state.last_epoch.value + 1),
                       .ranks = std::move(ranks)};
  if (trial != nullptr) fact.resume = trial->checkpoint;
  // A milestone that was set and not reached still holds; a fresh or promoted trial gets its next.
  fact.milestone = trial != nullptr && trial->milestone.value > 0
                       ? trial->milestone
                       : NextMilestone(sweep, TrialView{id, config},
                                       trial == nullptr ? Step{0} : trial->last_step);
  return fact;
}

// How the sweep has ended; nothing when it has not.
std::optional<SweepEnded> EndOf(const Sweep& sweep) {
  if (Ended(sweep.state) || !sweep.live.empty()) return std::nullopt;
  if (sweep.stopping_as) return SweepEnded{sweep.id, *sweep.stopping_as, sweep.reason};
  if (MayCreate(sweep) || sweep.Count(TrialState::kPending) > 0) return std::nullopt;
  if (sweep.Count(TrialState::kPaused) > 0 && sweep.scheduler->Promote()) return std::nullopt;
  if (sweep.created > 0 && sweep.Count(TrialState::kFailed) == sweep.created)
    return SweepEnded{sweep.id, SweepState::kFailed, "every trial failed"};
  return SweepEnded{sweep.id, SweepState::kCompleted, ""};
}

// The facts that start the sweep's next gang, if it has one and there is room.
std::vector<Fact> StartGang(const State& state, const Sweep& sweep,
                            const std::vector<Host>& hosts) {
  const Trial* waiting = NextWaiting(sweep);
  if (waiting == nullptr && !MayCreate(sweep)) return {};
  auto placed = Place(sweep.spec.gang, hosts);
  auto* ranks = std::get_if<std::vector<RankSlot>>(&placed);
  if (ranks == nullptr) return {};
  if (waiting != nullptr)
    return {Assign(state, sweep, waiting->id, waiting->config, waiting, std::move(*ranks))};

  const TrialId id(sweep.id, TrialNumber(static_cast<uint32_t>(sweep.created)));
  const auto& points = sweep.spec.initial_points;
  const bool given = id.number.value < points.size();
  const std::optional<Config> config =
      given ? points[id.number.value] : sweep.searcher->Suggest(id.number);
  if (!config) return {SearchExhausted{sweep.id}};
  return {TrialCreated{id, *config, given ? "initial_points" : sweep.spec.searcher.name},
          Assign(state, sweep, id, *config, nullptr, std::move(*ranks))};
}

}  // namespace

Result<std::vector<Fact>> Decide(const State& state, const Command& command, Time) {
  Decider decider(state);
  if (Status status = std::visit(decider, command); !status.ok()) return status.error();
  return decider.Take();
}

std::vector<Fact> Advance(const State& state, const Reachable& reachable) {
  std::vector<const Sweep*> open;
  for (const auto& [id, sweep] : state.sweeps) {
    if (auto end = EndOf(sweep)) return {*end};
    if (MayStartGang(sweep)) open.push_back(&sweep);
  }
  if (open.empty()) return {};
  // Fair share among equals: the sweep with the fewest gangs is served first.
  std::ranges::stable_sort(open, {}, [](const Sweep* sweep) { return sweep->live.size(); });
  const std::vector<Host> hosts = ReachableHosts(state, reachable);
  for (const Sweep* sweep : open) {
    if (auto facts = StartGang(state, *sweep, hosts); !facts.empty()) return facts;
  }
  return {};
}

std::string Waiting(const State& state, const Sweep& sweep, const Reachable& reachable) {
  if (!MayStartGang(sweep)) return "";
  // A sweep whose gangs fill the machine waits for nobody but itself.
  if (NextWaiting(sweep) == nullptr && (!MayCreate(sweep) || !sweep.live.empty())) return "";
  const auto placed = Place(sweep.spec.gang, ReachableHosts(state, reachable));
  const auto* shortage = std::get_if<std::string>(&placed);
  return shortage == nullptr ? "" : *shortage;
}

}  // namespace attune
