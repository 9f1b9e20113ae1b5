#include "tests/sim/world.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/state/snapshot.h"

namespace attune::sim {
namespace {

using simulate::kSecondUs;

constexpr int64_t kHourUs = 3600 * kSecondUs;
constexpr int64_t kMaxQuietUs =
    24 * kHourUs;  // every sweep must end within this time after the last fault
constexpr int64_t kQuietMinuteUs = 60 * kSecondUs;
constexpr int64_t kMaxAwayUs = 60 * kSecondUs;  // absence of an executor
// Time in which the server hears that files are missing, after the executor found that.
constexpr int64_t kInventoryUs = kMaxAwayUs;
constexpr int64_t kMaxGraceMs = 60'000;  // time that a leaving executor gives its gangs
constexpr int64_t kWarningUs =
    50 * kSecondUs;  // between the order to leave and the end of the lifetime
constexpr int64_t kMaxFreezeUs = 90 * kSecondUs;  // duration of a host's freeze
constexpr int64_t kCalmDelayUs = kSecondUs / 100;

}  // namespace

World::World(const Plan& plan, Disk& disk, Variant variant)
    : plan_(plan),
      disk_(disk),
      faults_(plan.faults),
      random_(plan.seed, TrialNumber{}, "sim/world"),
      checkers_(AllCheckers({books_, reality_, findings_})),
      network_(timeline_, random_, server_),
      server_({timeline_, random_, network_, reality_, faults_, *this, disk.store(), variant,
               plan.identifies, plan.seed}),
      people_(timeline_, random_, server_, books_, promises_, plan_.edits, plan_.annotates),
      environment_{.timeline = timeline_,
                   .random = random_,
                   .network = network_,
                   .reality = reality_,
                   .witness = promises_,
                   .faults = faults_,
                   .step_us = plan.step_us,
                   .value = [this](const TrialId& trial, const Config& config,
                                   Step step) { return ValueOf(trial, config, step); },
                   .ending = [this](const TrialId& trial) { return PlannedEndingOf(trial); },
                   .variant = variant} {
  network_.SetMaxDelay(faults_.delay_us);
  network_.SetSlowHellos(faults_.slow_hellos, [this](const std::string& executor, Time until) {
    reality_.OnDisturbance(executor, until);
  });
}

void World::Run() {
  Populate();
  ScheduleFaults();
  timeline_.ScheduleAt(Time{plan_.quiet_at_us}, [this] { RunQuietMinute(); });
  while (!findings_.first() && !over_) {
    timeline_.RunNext();
    if (timeline_.now().us > plan_.quiet_at_us + kMaxQuietUs) {
      findings_.Report("a day after the last fault, the world has not ended: " + UnfinishedWork());
    }
  }
  if (findings_.first()) return;
  for (const auto& checker : checkers_) checker->AtEnd();
  promises_.AtEnd(log_);
}

void World::Populate() {
  server_.Start();
  for (size_t i = 0; i < plan_.executors.size(); ++i) {
    executors_.push_back(
        std::make_unique<Host>(environment_, "host-" + std::to_string(i + 1), plan_.executors[i]));
    timeline_.ScheduleAfter(random_.Integer(0, 5 * kSecondUs),
                            [this, executor = executors_.back().get()] {
                              if (!IsGone(*executor)) StartProcess(*executor);
                            });
  }
  for (const auto& executor : executors_) {
    if (executor->planned().gone_at_us == 0) continue;
    timeline_.ScheduleAt(Time{executor->planned().gone_at_us}, [executor = executor.get()] {
      if (executor->up()) executor->Crash();
    });
  }
  for (const PlannedSweep& planned : plan_.sweeps) {
    const std::string key = "create-" + planned.spec.name;
    timeline_.ScheduleAfter(planned.created_at_us, [this, &planned] { CreateSweepOf(planned); });
    if (!planned.spec.External()) continue;
    RandomStream draws(planned.spec.seed, TrialNumber{}, "sim/askers");
    for (int i = 0; i < 2; ++i) {
      clients_.push_back(std::make_unique<AskTellClient>(
          AskTellClient::Context{timeline_, random_, server_, books_, reality_, people_,
                                 plan_.step_us, environment_.value, draws.Integer(0, 1) == 1},
          key, "client-" + std::to_string(clients_.size())));
      timeline_.ScheduleAfter(planned.created_at_us,
                              [client = clients_.back().get()] { client->Start(); });
    }
  }
}

void World::CreateSweepOf(const PlannedSweep& planned) {
  people_.SubmitUntilAnswered(CreateSweep{planned.spec, "", "create-" + planned.spec.name,
                                          planned.owner, planned.warm_start});
}

// ---- faults ---------------------------------------------------------------------------------

// Calls `act` at random times, `per_minute` times a minute on average, until the faults stop.
void World::RepeatAtRandom(double per_minute, std::function<void()> act) {
  if (per_minute <= 0) return;
  const double minutes = -std::log1p(-random_.Uniform()) / per_minute;
  timeline_.ScheduleAfter(static_cast<int64_t>(minutes * 60 * kSecondUs),
                          [this, per_minute, act = std::move(act)] {
                            if (quiet_) return;
                            act();
                            RepeatAtRandom(per_minute, act);
                          });
}

void World::WithRandomExecutor(const std::function<void(Host&)>& act) {
  Host& executor = *executors_[static_cast<size_t>(random_.Integer(0, std::ssize(executors_) - 1))];
  if (executor.up() && !executor.frozen()) act(executor);
}

bool World::IsGone(const Host& executor) const {
  const int64_t gone_at_us = executor.planned().gone_at_us;
  return gone_at_us > 0 && timeline_.now().us >= gone_at_us;
}

void World::RestartLater(Host& executor) {
  timeline_.ScheduleAfter(random_.Integer(0, kMaxAwayUs), [this, &executor] {
    if (executor.leaving()) return RestartLater(executor);
    if (!executor.up() && !IsGone(executor)) StartProcess(executor);
  });
}

// A process with a limited lifetime is told to leave before the end, as by a batch system. After
// the faults have stopped, new processes have no limit.
void World::StartProcess(Host& executor) {
  const int64_t lifetime_us = quiet_ ? 0 : executor.planned().lifetime_us;
  executor.Start(lifetime_us);
  if (lifetime_us == 0) return;
  const int64_t leave_after_us = std::max<int64_t>(lifetime_us - kWarningUs, 0);
  timeline_.ScheduleAfter(leave_after_us, [this, &executor, process = executor.process()] {
    if (executor.process() != process || !executor.up() || executor.leaving()) return;
    if (executor.frozen()) executor.Thaw();
    executor.Leave(std::chrono::milliseconds(kWarningUs / 1000));
    RestartLater(executor);
  });
}

void World::ScheduleFaults() {
  RepeatAtRandom(plan_.people, [this] { people_.DoRandomAction(); });
  RepeatAtRandom(plan_.drains, [this] { people_.DrainOrResumeRandomExecutor(); });
  RepeatAtRandom(faults_.server_crashes, [this] { server_.CrashSoon(); });
  RepeatAtRandom(faults_.backups, [this] { BackUp(); });
  RepeatAtRandom(faults_.connection_breaks, [this] {
    WithRandomExecutor([this](Host& executor) {
      if (!executor.stream()) return;
      network_.Break(*executor.stream());
      reality_.OnDisturbance(executor.name(), timeline_.now());
    });
  });
  RepeatAtRandom(faults_.executor_crashes, [this] {
    WithRandomExecutor([this](Host& executor) {
      executor.Crash();
      RestartLater(executor);
    });
  });
  RepeatAtRandom(faults_.executor_leaves, [this] {
    WithRandomExecutor([this](Host& executor) {
      const bool immediately = random_.Integer(0, 1) == 0;
      executor.Leave(std::chrono::milliseconds(immediately ? 0 : random_.Integer(1, kMaxGraceMs)));
      RestartLater(executor);
    });
  });
  RepeatAtRandom(faults_.executor_freezes, [this] {
    WithRandomExecutor([this](Host& executor) {
      executor.Freeze();
      timeline_.ScheduleAfter(random_.Integer(0, kMaxFreezeUs), [&executor] {
        if (executor.frozen()) executor.Thaw();
      });
    });
  });
  RepeatAtRandom(faults_.health_changes, [this] {
    WithRandomExecutor([](Host& executor) { executor.SetUnhealthy(!executor.unhealthy()); });
  });
  RepeatAtRandom(faults_.disk_full, [this] {
    disk_.SetFull(true);
    timeline_.ScheduleAfter(random_.Integer(0, faults_.disk_full_us),
                            [this] { disk_.SetFull(false); });
  });
  if (!clients_.empty()) {
    RepeatAtRandom(0.5, [this] {
      clients_[static_cast<size_t>(random_.Integer(0, std::ssize(clients_) - 1))]->GoAway();
    });
  }
}

// Runs once a minute after the faults have stopped. The first call stops all faults.
void World::RunQuietMinute() {
  if (quiet_) {
    for (const auto& checker : checkers_) checker->OnQuietMinute(timeline_.now());
  } else {
    quiet_ = true;
    faults_ = FaultRates{};
    network_.SetMaxDelay(kCalmDelayUs);
    network_.SetSlowHellos(0, {});
    disk_.SetFull(false);
    for (const auto& client : clients_) client->ComeBack();
  }
  for (const auto& executor : executors_) {
    if (executor->frozen()) executor->Thaw();
    if (!executor->up() && !IsGone(*executor)) StartProcess(*executor);
    if (executor->up() && executor->unhealthy()) executor->SetUnhealthy(false);
  }
  people_.ResumeEverything();
  over_ = timeline_.now().us > plan_.quiet_at_us && IsOver();
  timeline_.ScheduleAfter(kQuietMinuteUs, [this] { RunQuietMinute(); });
}

bool World::IsOver() const { return UnfinishedWork().empty(); }

std::string World::UnfinishedWork() const {
  if (server_.state() == nullptr) return "the server is down";
  if (books_.sweeps.size() < plan_.sweeps.size()) return "a sweep was not created";
  for (const auto& [id, sweep] : books_.sweeps) {
    if (!HasEnded(sweep.state))
      return "sweep " + ToString(id) + " is " + std::string(Name(sweep.state)) + " with " +
             std::to_string(sweep.LiveCount()) + " gangs";
    for (const auto& [number, trial] : sweep.trials) {
      for (const CheckpointBook& checkpoint : trial.checkpoints) {
        if (books_.executors.at(checkpoint.executor).lost) continue;
        if (sweep.deleted ? reality_.HasFile(checkpoint.ref.path)
                          : checkpoint.dropped && !checkpoint.removed)
          return checkpoint.ref.path + " was dropped but not deleted";
      }
    }
  }
  return "";
}

// ---- events of the server -------------------------------------------------------------------

// The lost part of the log may have deleted a checkpoint's file. The restored log keeps the
// checkpoint if its trial ends before the executor reports that the file is gone.
void World::NoteLostFiles(const Event& event) {
  const auto* ended = std::get_if<TrialEnded>(&event.fact);
  if (ended == nullptr || !reality_.WasLogRestored()) return;
  for (const CheckpointBook& checkpoint : books_.Find(ended->trial)->checkpoints) {
    if (timeline_.now().us - reality_.MissingFilesFoundAt(checkpoint.executor).us > kInventoryUs)
      continue;
    if (!checkpoint.dropped && !reality_.HasFile(checkpoint.ref.path))
      reality_.OnFileLost(checkpoint.ref.path);
  }
}

void World::OnDurable(std::span<const Event> events) {
  for (const Event& event : events) {
    for (const auto& checker : checkers_) checker->OnEvent(event);
    books_.Record(event);
    NoteLostFiles(event);
    promises_.OnDurable(event);
    log_.push_back(event);
    if (findings_.first()) return;
  }
  for (const auto& checker : checkers_) checker->OnBatch();
  if (snapshot_.empty() && timeline_.now().us > plan_.quiet_at_us / 2) {
    snapshot_ = SaveState(*server_.state());
    snapshot_seq_ = events.back().seq;
  }
}

void World::OnInputs(std::vector<Input> inputs) {
  std::set<std::string> reachable;
  for (const auto& [name, reach] : inputs.back().reach) {
    if (reach.takes) reachable.insert(name);
  }
  reality_.SetReachable(std::move(reachable));
  std::ranges::move(inputs, std::back_inserter(inputs_));
}

void World::OnRecovered(const std::string& before, const std::string& after) {
  if (before != after) findings_.Report("the state after a restart differs from the state before");
}

void World::BackUp() { backup_ = {log_.size(), inputs_.size()}; }

// Restores only the log. Running gangs and files stay as they are.
bool World::OnRestore() {
  if (!backup_ || backup_->events == 0 || backup_->events == log_.size()) return false;
  log_.resize(backup_->events);
  disk_.Restore(log_);
  inputs_.resize(backup_->inputs);
  if (snapshot_seq_ > log_.back().seq) snapshot_.clear();
  RereadLog();

  reality_.OnLogRestored();
  const auto is_known = [this](const gang::AttemptId& attempt) {
    const TrialBook* trial = books_.Find(TrialOf(attempt));
    return trial != nullptr && trial->live && trial->live->epoch == Epoch(attempt.epoch);
  };
  for (const auto& executor : executors_) executor->MarkLost(is_known);
  // The server does not ask executors about the files of ended trials. A running trial may end
  // before the answer.
  for (const auto& [id, sweep] : books_.sweeps) {
    for (const auto& [number, trial] : sweep.trials) {
      for (const CheckpointBook& checkpoint : trial.checkpoints) {
        const bool is_missing = !checkpoint.dropped && !reality_.HasFile(checkpoint.ref.path);
        if ((HasEnded(trial.state) || trial.live) && is_missing)
          reality_.OnFileLost(checkpoint.ref.path);
      }
    }
  }
  std::erase_if(planned_,
                [this](const auto& entry) { return books_.Find(entry.first) == nullptr; });
  std::erase_if(curves_, [this](const auto& entry) { return books_.Find(entry.first) == nullptr; });
  people_.DropPendingActions();
  for (const PlannedSweep& planned : plan_.sweeps) {
    const bool exists = std::ranges::any_of(books_.sweeps, [&](const auto& entry) {
      return entry.second.spec.name == planned.spec.name;
    });
    if (!exists && timeline_.now().us > planned.created_at_us) CreateSweepOf(planned);
  }
  for (const auto& client : clients_) client->StartOver();
  return true;
}

// Builds the books, checkers and promises again from the log.
void World::RereadLog() {
  books_ = Books();
  checkers_ = AllCheckers({books_, reality_, findings_});
  promises_.OnRestored(EventSeq(log_.size()));
  findings_.Mute(true);
  for (const Event& event : log_) {
    for (const auto& checker : checkers_) checker->OnEvent(event);
    books_.Record(event);
    promises_.OnDurable(event);
  }
  findings_.Mute(false);
}

// Sweeps are matched by name.
const PlannedSweep& World::PlannedOf(SweepId sweep) {
  const PlannedSweep*& planned = planned_[sweep];
  if (planned == nullptr)
    planned = &*std::ranges::find(plan_.sweeps, books_.Find(sweep)->spec.name,
                                  [](const PlannedSweep& each) { return each.spec.name; });
  return *planned;
}

// A host that was frozen can start a gang of a sweep that a restored log does not know.
std::optional<Ending> World::PlannedEndingOf(const TrialId& trial) {
  if (books_.Find(trial.sweep) == nullptr) return std::nullopt;
  const PlannedSweep& planned = PlannedOf(trial.sweep);
  return EndingOf(trial, planned.spec.seed, planned.ends_early, planned.spec.max_step);
}

double World::ValueOf(const TrialId& trial, const Config& config, Step step) {
  if (books_.Find(trial.sweep) == nullptr) return 0.5;  // the sweep is lost, as above
  auto& curves = curves_[trial.sweep];
  if (curves == nullptr) {
    const SweepSpec& spec = books_.Find(trial.sweep)->spec;
    auto made = simulate::MakeCurves(PlannedOf(trial.sweep).curves, spec.objective(), spec.space,
                                     spec.max_step, spec.seed);
    curves = std::move(made).value();
  }
  return curves->ValueAt(trial.number, config, step);
}

}  // namespace attune::sim
