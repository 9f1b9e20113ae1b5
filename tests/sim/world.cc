#include "tests/sim/world.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/state/snapshot.h"

namespace attune::sim {
namespace {

using simulate::kSecondUs;

constexpr int64_t kHourUs = 3600 * kSecondUs;
constexpr int64_t kEndsWithinUs = 24 * kHourUs;  // once nothing goes wrong any more
constexpr int64_t kTidyUs = 60 * kSecondUs;
constexpr int64_t kAwayUs = 60 * kSecondUs;        // at most, an executor
constexpr int64_t kInventoryUs = kAwayUs;          // after a restore, until all have answered
constexpr int64_t kGraceMs = 60'000;               // at most, of one that leaves
constexpr int64_t kToldBeforeUs = 50 * kSecondUs;  // the end of its time
constexpr int64_t kStillUs = 90 * kSecondUs;       // at most, a host
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
      people_(timeline_, random_, server_, books_, promises_, plan_.edits),
      surroundings_{.timeline = timeline_,
                    .random = random_,
                    .network = network_,
                    .reality = reality_,
                    .witness = promises_,
                    .faults = faults_,
                    .step_us = plan.step_us,
                    .value = [this](const TrialId& trial, const Config& config,
                                    Step step) { return ValueOf(trial, config, step); },
                    .ending = [this](const TrialId& trial) { return HowEnds(trial); },
                    .variant = variant} {
  network_.SetDelay(faults_.delay_us);
  network_.SetSlowHellos(faults_.slow_hellos, [this](const std::string& executor, Time until) {
    reality_.Disturbed(executor, until);
  });
}

void World::Run() {
  Populate();
  ScheduleFaults();
  timeline_.At(Time{plan_.quiet_at_us}, [this] { Quiet(); });
  while (!findings_.first() && !over_) {
    timeline_.RunNext();
    if (timeline_.now().us > plan_.quiet_at_us + kEndsWithinUs) {
      findings_.Report("a day after the last fault there is no end: " + Unfinished());
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
        std::make_unique<Host>(surroundings_, "host-" + std::to_string(i + 1), plan_.executors[i]));
    timeline_.After(random_.Integer(0, 5 * kSecondUs), [this, executor = executors_.back().get()] {
      if (!IsGone(*executor)) Start(*executor);
    });
  }
  for (const auto& executor : executors_) {
    if (executor->planned().gone_at_us == 0) continue;
    timeline_.At(Time{executor->planned().gone_at_us}, [executor = executor.get()] {
      if (executor->up()) executor->Crash();
    });
  }
  for (const PlannedSweep& planned : plan_.sweeps) {
    const std::string key = "create-" + planned.spec.name;
    timeline_.After(planned.created_at_us, [this, &planned] { Create(planned); });
    if (!planned.spec.External()) continue;
    RandomStream manners(planned.spec.seed, TrialNumber{}, "sim/askers");
    for (int i = 0; i < 2; ++i) {
      askers_.push_back(std::make_unique<Asker>(
          Asker::Stage{timeline_, random_, server_, books_, reality_, people_, plan_.step_us,
                       surroundings_.value, manners.Integer(0, 1) == 1},
          key, "asker-" + std::to_string(askers_.size())));
      timeline_.After(planned.created_at_us, [asker = askers_.back().get()] { asker->Begin(); });
    }
  }
}

void World::Create(const PlannedSweep& planned) {
  people_.Insist(CreateSweep{planned.spec, "", "create-" + planned.spec.name, planned.owner,
                             planned.warm_start});
}

// ---- what befalls them ----------------------------------------------------------------------

// At random moments, this many times a minute on average, until it is quiet.
void World::Often(double a_minute, std::function<void()> act) {
  if (a_minute <= 0) return;
  const double minutes = -std::log1p(-random_.Uniform()) / a_minute;
  timeline_.After(static_cast<int64_t>(minutes * 60 * kSecondUs),
                  [this, a_minute, act = std::move(act)] {
                    if (quiet_) return;
                    act();
                    Often(a_minute, act);
                  });
}

void World::WithSomeExecutor(const std::function<void(Host&)>& act) {
  Host& executor = *executors_[static_cast<size_t>(random_.Integer(0, std::ssize(executors_) - 1))];
  if (executor.up() && !executor.frozen()) act(executor);
}

bool World::IsGone(const Host& executor) const {
  const int64_t gone_at_us = executor.planned().gone_at_us;
  return gone_at_us > 0 && timeline_.now().us >= gone_at_us;
}

void World::ComeBack(Host& executor) {
  timeline_.After(random_.Integer(0, kAwayUs), [this, &executor] {
    if (executor.leaving()) return ComeBack(executor);
    if (!executor.up() && !IsGone(executor)) Start(executor);
  });
}

// One whose time is over is told to leave a while before, as by a batch system. Where nothing
// befalls anybody any more, its next process has no end.
void World::Start(Host& executor) {
  const int64_t lives_us = quiet_ ? 0 : executor.planned().lives_us;
  executor.Start(lives_us);
  if (lives_us == 0) return;
  const int64_t told_us = std::max<int64_t>(lives_us - kToldBeforeUs, 0);
  timeline_.After(told_us, [this, &executor, process = executor.process()] {
    if (executor.process() != process || !executor.up() || executor.leaving()) return;
    if (executor.frozen()) executor.Thaw();
    executor.Leave(std::chrono::milliseconds(kToldBeforeUs / 1000));
    ComeBack(executor);
  });
}

void World::ScheduleFaults() {
  Often(plan_.people, [this] { people_.DoSomething(); });
  Often(plan_.drains, [this] { people_.DrainSomething(); });
  Often(faults_.server_crashes, [this] { server_.CrashSoon(); });
  Often(faults_.backups, [this] { BackUp(); });
  Often(faults_.connection_breaks, [this] {
    WithSomeExecutor([this](Host& executor) {
      if (!executor.stream()) return;
      network_.Break(*executor.stream());
      reality_.Disturbed(executor.name(), timeline_.now());
    });
  });
  Often(faults_.executor_crashes, [this] {
    WithSomeExecutor([this](Host& executor) {
      executor.Crash();
      ComeBack(executor);
    });
  });
  Often(faults_.executor_leaves, [this] {
    WithSomeExecutor([this](Host& executor) {
      const bool at_once = random_.Integer(0, 1) == 0;
      executor.Leave(std::chrono::milliseconds(at_once ? 0 : random_.Integer(1, kGraceMs)));
      ComeBack(executor);
    });
  });
  Often(faults_.executor_freezes, [this] {
    WithSomeExecutor([this](Host& executor) {
      executor.Freeze();
      timeline_.After(random_.Integer(0, kStillUs), [&executor] {
        if (executor.frozen()) executor.Thaw();
      });
    });
  });
  Often(faults_.host_ails, [this] {
    WithSomeExecutor([](Host& executor) { executor.SetUnhealthy(!executor.unhealthy()); });
  });
  Often(faults_.disk_full, [this] {
    disk_.SetFull(true);
    timeline_.After(random_.Integer(0, faults_.disk_full_us), [this] { disk_.SetFull(false); });
  });
  if (!askers_.empty()) {
    Often(0.5, [this] {
      askers_[static_cast<size_t>(random_.Integer(0, std::ssize(askers_) - 1))]->LoseInterest();
    });
  }
}

// Nothing goes wrong from now on, and nobody interferes.
void World::Quiet() {
  if (quiet_) {
    for (const auto& checker : checkers_) checker->OnQuietMinute(timeline_.now());
  } else {
    quiet_ = true;
    faults_ = FaultRates{};
    network_.SetDelay(kCalmDelayUs);
    network_.SetSlowHellos(0, {});
    disk_.SetFull(false);
    for (const auto& asker : askers_) asker->Return();
  }
  for (const auto& executor : executors_) {
    if (executor->frozen()) executor->Thaw();
    if (!executor->up() && !IsGone(*executor)) Start(*executor);
    if (executor->up() && executor->unhealthy()) executor->SetUnhealthy(false);
  }
  people_.Tidy();
  over_ = timeline_.now().us > plan_.quiet_at_us && Over();
  timeline_.After(kTidyUs, [this] { Quiet(); });
}

bool World::Over() const { return Unfinished().empty(); }

std::string World::Unfinished() const {
  if (server_.state() == nullptr) return "the server is away";
  if (books_.sweeps.size() < plan_.sweeps.size()) return "a sweep was not created";
  for (const auto& [id, sweep] : books_.sweeps) {
    if (!Ended(sweep.state))
      return "sweep " + ToString(id) + " is " + std::string(Name(sweep.state)) + " with " +
             std::to_string(sweep.Live()) + " gangs";
    for (const auto& [number, trial] : sweep.trials) {
      for (const CheckpointBook& checkpoint : trial.checkpoints) {
        if (books_.executors.at(checkpoint.executor).lost) continue;
        if (sweep.deleted ? reality_.HasFile(checkpoint.ref.path)
                          : checkpoint.dropped && !checkpoint.removed)
          return checkpoint.ref.path + " was dropped and is not deleted";
      }
    }
  }
  return "";
}

// ---- what the server does -------------------------------------------------------------------

// A checkpoint whose file the lost part of the log has deleted stays known if its trial ends before
// its executor has said that the file is gone.
void World::NoteLostFiles(const Event& event) {
  const auto* ended = std::get_if<TrialEnded>(&event.fact);
  if (ended == nullptr || timeline_.now().us - restored_at_.us > kInventoryUs) return;
  for (const CheckpointBook& checkpoint : books_.Find(ended->trial)->checkpoints) {
    if (!checkpoint.dropped && !reality_.HasFile(checkpoint.ref.path))
      reality_.FileLost(checkpoint.ref.path);
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
  std::set<std::string> takes;
  for (const auto& [name, reach] : inputs.back().reach) {
    if (reach.takes) takes.insert(name);
  }
  reality_.ServerSees(std::move(takes));
  std::ranges::move(inputs, std::back_inserter(inputs_));
}

void World::OnRecovered(const std::string& before, const std::string& after) {
  if (before != after) findings_.Report("after a restart the state is not what it was");
}

void World::BackUp() { backup_ = {log_.size(), inputs_.size()}; }

// Only the log goes back: what runs, and what lies on disks, stays as it is.
bool World::OnRestore() {
  if (!backup_ || backup_->events == 0 || backup_->events == log_.size()) return false;
  log_.resize(backup_->events);
  disk_.Restore(log_);
  inputs_.resize(backup_->inputs);
  if (snapshot_seq_ > log_.back().seq) snapshot_.clear();
  ReadBack();

  reality_.LogRestored();
  restored_at_ = timeline_.now();
  const auto is_known = [this](const gang::AttemptId& attempt) {
    const TrialBook* trial = books_.Find(TrialOf(attempt));
    return trial != nullptr && trial->live && trial->live->epoch == Epoch(attempt.epoch);
  };
  for (const auto& executor : executors_) executor->MarkLost(is_known);
  // Of a trial that has ended nobody is asked what is gone. One that runs may end before the
  // answer.
  for (const auto& [id, sweep] : books_.sweeps) {
    for (const auto& [number, trial] : sweep.trials) {
      for (const CheckpointBook& checkpoint : trial.checkpoints) {
        const bool is_gone = !checkpoint.dropped && !reality_.HasFile(checkpoint.ref.path);
        if ((Ended(trial.state) || trial.live) && is_gone) reality_.FileLost(checkpoint.ref.path);
      }
    }
  }
  std::erase_if(planned_,
                [this](const auto& entry) { return books_.Find(entry.first) == nullptr; });
  std::erase_if(curves_, [this](const auto& entry) { return books_.Find(entry.first) == nullptr; });
  people_.Forget();
  for (const PlannedSweep& planned : plan_.sweeps) {
    const bool is_there = std::ranges::any_of(books_.sweeps, [&](const auto& entry) {
      return entry.second.spec.name == planned.spec.name;
    });
    if (!is_there && timeline_.now().us > planned.created_at_us) Create(planned);
  }
  for (const auto& asker : askers_) asker->BeginAnew();
  return true;
}

// What is known of the log, as if it had been read up to here.
void World::ReadBack() {
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

// By the name that it was created with.
const PlannedSweep& World::PlannedOf(SweepId sweep) {
  const PlannedSweep*& planned = planned_[sweep];
  if (planned == nullptr)
    planned = &*std::ranges::find(plan_.sweeps, books_.Find(sweep)->spec.name,
                                  [](const PlannedSweep& each) { return each.spec.name; });
  return *planned;
}

std::optional<Ending> World::HowEnds(const TrialId& trial) {
  const PlannedSweep& planned = PlannedOf(trial.sweep);
  return EndingOf(trial, planned.spec.seed, planned.ends_early, planned.spec.max_step);
}

double World::ValueOf(const TrialId& trial, const Config& config, Step step) {
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
