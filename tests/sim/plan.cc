#include "tests/sim/plan.h"

#include <algorithm>

#include "core/base/random.h"
#include "core/brain/warm_start.h"
#include "core/space/draw.h"
#include "core/state/placement.h"
#include "schedulers/asha.h"
#include "simulator/curves.h"
#include "simulator/timeline.h"
#include "tests/conformance/random_space.h"
#include "tests/sim/algorithms.h"
#include "tests/sim/metrics.h"
#include "tests/sim/spec_draws.h"

namespace attune::sim {
namespace {

using simulate::kSecondUs;

constexpr int64_t kGibibyte = int64_t{1} << 30;
constexpr SweepId kEarlierSweep(1'000'000);  // a sweep that ended before the world began
constexpr uint32_t kEarlierTrials = 12;
constexpr uint64_t kSqliteEvery = 200;   // one seed in 200 uses SQLite, which is slower than memory
constexpr int64_t kManySlotsEvery = 60;  // one world in 60 has many slots, and is slow
constexpr int64_t kOneSlotEvery = 25;    // one of 25 other worlds has a single slot
constexpr char kCodeDigest[] =
    "sha256:0000000000000000000000000000000000000000000000000000000000000000";
constexpr double kEndEarlyShare = 0.3;  // share of sweeps with programs that end early

class Planner {
 public:
  explicit Planner(uint64_t seed)
      : random_(seed, TrialNumber{}, "sim/plan"),
        stopper_draws_(seed, TrialNumber{}, "sim/stoppers"),
        label_draws_(seed, TrialNumber{}, "sim/labels"),
        policy_draws_(seed, TrialNumber{}, "sim/policies"),
        elastic_draws_(seed, TrialNumber{}, "sim/elastic"),
        size_draws_(seed, TrialNumber{}, "sim/sizes") {
    plan_.seed = seed;
  }

  Plan Make() {
    plan_.quiet_at_us = Integer(60, 400) * kSecondUs;
    plan_.step_us = Integer(1, 12) * kSecondUs;
    plan_.people = FlipCoin() ? 0 : random_.Uniform(0.2, 4);
    plan_.sqlite = plan_.seed % kSqliteEvery == 0;
    plan_.edits = OneIn(10);
    if (plan_.edits) plan_.people = random_.Uniform(2, 6);
    MakeFaults();
    const int64_t executors = Integer(1, 4);
    const bool gpus = FlipCoin();
    for (int64_t i = 0; i < executors; ++i) {
      plan_.executors.push_back({.resources = {.cpus = static_cast<int>(Integer(2, 8)),
                                               .gpus = gpus ? static_cast<int>(Integer(0, 4)) : 0,
                                               .memory_bytes = Integer(4, 16) * kGibibyte}});
    }
    const int64_t sweeps = Integer(1, 3);
    const bool equal = sweeps > 1 && OneIn(3);  // equal sweeps allow checks of fair shares
    for (int64_t i = 0; i < sweeps; ++i) {
      if (i > 0 && equal) {
        plan_.sweeps.push_back(plan_.sweeps.front());
        plan_.sweeps.back().spec.seed = static_cast<uint64_t>(Integer(0, 1 << 30));
      } else {
        plan_.sweeps.push_back(MakeSweep());
      }
      plan_.sweeps.back().owner = FlipCoin() ? "ada" : "bob";
      plan_.sweeps.back().spec.name = "sweep-" + std::to_string(i + 1);
    }
    MakeSizes();
    MakeFolders();
    if (OneIn(10)) MakeSpanning();
    MakeElastic();
    MakeLostHost();
    MakeLabels();
    MakeLifetimes();
    MakeShares();
    MakeRestores();
    if (label_draws_.Integer(1, 4) == 1) plan_.drains = label_draws_.Uniform(0.2, 3);
    if (policy_draws_.Integer(1, 3) == 1) plan_.faults.health_changes = policy_draws_.Uniform(0, 3);
    MakeDisks();
    MakeStores();
    plan_.annotates = OneIn(4);
    return std::move(plan_);
  }

 private:
  int64_t Integer(int64_t low, int64_t high) { return random_.Integer(low, high); }
  bool FlipCoin() { return OneIn(2); }
  bool OneIn(int64_t n) { return Integer(1, n) == 1; }
  double Rate(double max) { return FlipCoin() ? 0 : random_.Uniform(0, max); }

  void MakeFaults() {
    FaultRates& faults = plan_.faults;
    faults.connection_breaks = Rate(3);
    faults.executor_crashes = Rate(1);
    faults.executor_freezes = Rate(1);
    faults.executor_leaves = Rate(0.5);
    faults.server_crashes = Rate(2);
    faults.disk_full = Rate(0.5);
    faults.rank_fails = Rate(0.05);
    faults.rank_hangs = Rate(0.01);
    faults.cannot_start = Rate(0.05);
    faults.never_starts = Rate(0.05);
    faults.cannot_fetch = Rate(0.3);
    faults.cannot_build = Rate(0.2);
    faults.snapshot_used = Rate(2);  // above 1: always
    faults.delay_us = Integer(1, FlipCoin() ? 100 : 4000) * kSecondUs / 1000;
    faults.slow_hellos = Rate(0.3);
    faults.batch_us = FlipCoin() ? 0 : Integer(0, 10 * kSecondUs);
    faults.replay_us = FlipCoin() ? 0 : Integer(0, 60) * kSecondUs;
    faults.disk_full_us = Integer(1, FlipCoin() ? 20 : 120) * kSecondUs;
    faults.clock_jump_us = FlipCoin() ? 0 : Integer(0, 90) * kSecondUs;
  }

  PlannedSweep MakeSweep() {
    PlannedSweep planned{.created_at_us = FlipCoin() ? 0 : Integer(0, 60) * kSecondUs,
                         .curves = PickName(simulate::CurveModels())};
    SweepSpec& spec = planned.spec;
    spec.program.command = {"/bin/train"};
    if (OneIn(3)) spec.program.code = CodeSpec{.digest = kCodeDigest};
    spec.objectives = {{"loss", FlipCoin() ? Mode::kMin : Mode::kMax}};
    if (OneIn(4)) spec.objectives.push_back({"cost", FlipCoin() ? Mode::kMin : Mode::kMax});
    if (OneIn(8)) spec.constraints = {{.metric = "cost", .min = 0.1, .max = 0.7}};
    spec.seed = static_cast<uint64_t>(Integer(0, 1 << 30));
    const bool countable = FlipCoin();
    spec.space = RandomSpace(countable);
    spec.max_step = Step(Integer(1, 12));
    spec.stop.max_trials = static_cast<int>(Integer(1, 10));
    if (OneIn(8)) {
      spec.program = {};
    } else {
      MakeGang(spec);
    }
    MakeLimits(spec);
    spec.scheduler = SpecOf(PickName(SchedulerNames()));
    if (spec.External() || !TestAlgorithms().MakeScheduler(spec).ok())
      spec.scheduler = SpecOf("fifo");
    spec.searcher = SpecOf(countable && FlipCoin() ? "grid" : PickName(SearcherNames()));
    if (!TestAlgorithms().MakeSearcher(spec).ok()) spec.searcher = SpecOf("random");
    if (OneIn(20)) spec.searcher = SpecOf(std::string(kSlowSearcher));  // in about one world of ten
    if (const auto option = spec.searcher.options.find("startup_trials");
        option != spec.searcher.options.end()) {
      option->second = Integer(1, 3);  // a model after few trials
    }
    DrawOptions(spec, random_);
    DrawTimeUnit(spec);
    DrawGrowth(spec);
    DrawFiles(spec);
    DrawWarmStart(planned);
    DrawEarlyEnds(planned);
    return planned;
  }

  // These functions draw from separate random streams. So a change in one of them does not change
  // what the same seed draws elsewhere.
  static void DrawEarlyEnds(PlannedSweep& planned) {
    if (planned.spec.External()) return;
    RandomStream random(planned.spec.seed, TrialNumber{}, "sim/endings");
    if (random.Uniform() < kEndEarlyShare) planned.ends_early = random.Uniform(0.1, 0.9);
  }

  // A few worlds have many slots and enough trials to fill them. A few others have a single slot,
  // and brackets and populations that are larger than that.
  void MakeSizes() {
    if (size_draws_.Integer(1, kManySlotsEvery) == 1) {
      const int64_t slots = int64_t{1} << size_draws_.Integer(3, 6);
      const auto hosts = std::ssize(plan_.executors);
      for (PlannedHost& host : plan_.executors)
        host.resources.cpus = static_cast<int>(slots / hosts);
      const auto sweeps = std::ssize(plan_.sweeps);
      MakeSmallGangs(slots / sweeps + 1, 2 * slots / sweeps);
    } else if (size_draws_.Integer(1, kOneSlotEvery) == 1) {
      plan_.executors.resize(1);
      plan_.executors.front().resources = {.cpus = 1, .memory_bytes = kGibibyte};
      MakeSmallGangs(8, 30);
    }
  }

  // Gives all sweeps gangs of one slot and this number of trials. Most sweeps get a scheduler that
  // starts more trials than it continues.
  void MakeSmallGangs(int64_t trials_min, int64_t trials_max) {
    static const std::vector<std::string> halving = {"asha",  "extrapolate", "halving", "hyperband",
                                                     "pasha", "pb2",         "pbt"};
    for (PlannedSweep& planned : plan_.sweeps) {
      SweepSpec& spec = planned.spec;
      if (spec.External()) continue;
      spec.gang = {.workers = 1, .per_worker = {.cpus = 1}, .placement = spec.gang.placement};
      spec.max_concurrent_trials = 0;
      spec.stop.max_gpu_hours = 0;
      spec.stop.max_trials = static_cast<int>(size_draws_.Integer(trials_min, trials_max));
      if (size_draws_.Integer(0, 3) == 0) continue;
      const AlgorithmSpec original = spec.scheduler;
      spec.scheduler =
          SpecOf(halving[static_cast<size_t>(size_draws_.Integer(0, std::ssize(halving) - 1))]);
      DrawOptions(spec, size_draws_);
      if (!TestAlgorithms().MakeScheduler(spec).ok() || !TestAlgorithms().MakeSearcher(spec).ok())
        spec.scheduler = original;
    }
  }

  // Half of the sweeps whose searchers accept results of an earlier sweep get some.
  void DrawWarmStart(PlannedSweep& planned) const {
    RandomStream random(planned.spec.seed, TrialNumber{}, "sim/warm_start");
    SweepSpec spec = planned.spec;
    spec.warm_start = {kEarlierSweep};
    if (random.Uniform() < 0.5 || !TestAlgorithms().MakeSearcher(spec).ok()) return;
    std::vector<TrialResult> results;
    for (uint32_t i = 0; i < kEarlierTrials; ++i) {
      Config config;
      for (const size_t index : spec.space.order()) {
        const Parameter& parameter = spec.space.parameters()[index];
        if (spec.space.IsActive(parameter, config))
          config.Set(parameter.name, Draw(parameter.domain, random));
      }
      Metrics metrics;
      for (const Objective& objective : spec.objectives)
        metrics[objective.metric] = random.Uniform();
      results.push_back(
          {.config = std::move(config), .metrics = std::move(metrics), .trial = TrialNumber(i)});
    }
    const auto start = TakeResults(spec, kEarlierSweep, spec, std::move(results));
    if (!start.ok()) return;  // no parameter varies
    planned.spec = std::move(spec);
    planned.warm_start = {*start};
  }

  // A random space that a sweep file can express: a parameter has at most one condition.
  SearchSpace RandomSpace(bool countable) {
    const auto random_space =
        conformance::RandomSpace(static_cast<uint64_t>(Integer(0, 1 << 30)), countable);
    std::vector<Parameter> parameters = random_space.parameters();
    for (Parameter& parameter : parameters) {
      if (parameter.when.size() == 2 && parameter.when[0].parent == parameter.when[1].parent)
        parameter.when.pop_back();
    }
    return SearchSpace(std::move(parameters));
  }

  // Draws a gang that fits on one of the executors; otherwise the sweep would wait forever.
  void MakeGang(SweepSpec& spec) {
    const Resources& host =
        plan_.executors[static_cast<size_t>(Integer(0, std::ssize(plan_.executors) - 1))].resources;
    GangSpec& gang = spec.gang;
    gang.placement = FlipCoin() ? PlacementPolicy::kPack : PlacementPolicy::kSpread;
    const int cpus = static_cast<int>(Integer(1, OneIn(3) ? host.cpus : 2));
    gang.workers = static_cast<int>(Integer(1, cpus));
    gang.per_worker = {.cpus = cpus / gang.workers};
    if (host.gpus > 0 && FlipCoin())
      gang.per_worker.gpus = static_cast<int>(Integer(0, host.gpus)) / gang.workers;
    if (OneIn(3)) gang.per_worker.memory_bytes = host.memory_bytes / Integer(1, 4) / gang.workers;
  }

  // All hosts share a data folder, each has a different one, or none declares its folder.
  void MakeFolders() {
    const int64_t kind = Integer(0, 3);
    for (size_t i = 0; i < plan_.executors.size() && kind < 2; ++i)
      plan_.executors[i].folder = kind == 0 ? "shared" : "own-" + std::to_string(i + 1);
  }

  // The number of workers that fit on one host.
  static int WorkersOn(const Resources& host, const Resources& per_worker) {
    int64_t workers = host.cpus / per_worker.cpus;
    if (per_worker.gpus > 0) workers = std::min<int64_t>(workers, host.gpus / per_worker.gpus);
    if (per_worker.memory_bytes > 0)
      workers = std::min(workers, host.memory_bytes / per_worker.memory_bytes);
    return static_cast<int>(workers);
  }

  // Some gangs need more than one host.
  void MakeSpanning() {
    for (PlannedHost& host : plan_.executors) host.spans = true;
    for (PlannedSweep& planned : plan_.sweeps) {
      if (planned.spec.External() || OneIn(3)) continue;
      GangSpec& gang = planned.spec.gang;
      int capacity = 0;
      for (const PlannedHost& host : plan_.executors)
        capacity += WorkersOn(host.resources, gang.per_worker);
      gang.workers = static_cast<int>(Integer(std::min(gang.workers, capacity), capacity));
    }
  }

  // If each host has a GPU, some gangs of one worker use a GPU or a share of one.
  void MakeShares() {
    RandomStream share_draws(plan_.seed, TrialNumber{}, "sim/shares");
    if (std::ranges::any_of(plan_.executors,
                            [](const PlannedHost& host) { return host.resources.gpus == 0; }))
      return;
    for (PlannedSweep& planned : plan_.sweeps) {
      GangSpec& gang = planned.spec.gang;
      if (planned.spec.External() || gang.workers > 1 || share_draws.Integer(0, 2) == 0) continue;
      gang.per_worker.gpus = 1;
      if (share_draws.Integer(0, 3) > 0)
        gang.gpu_percent = static_cast<int>(share_draws.Integer(1, 4)) * 23;
    }
  }

  // Some worlds have hosts with small disks.
  void MakeDisks() {
    RandomStream disk_draws(plan_.seed, TrialNumber{}, "sim/disks");
    if (disk_draws.Integer(1, 4) > 1) return;
    plan_.faults.cannot_save = disk_draws.Uniform(0, 0.3);
    plan_.faults.fills_disk = disk_draws.Uniform(0, 0.05);
  }

  // In some worlds, an object store gets copies of checkpoints.
  void MakeStores() {
    RandomStream store_draws(plan_.seed, TrialNumber{}, "sim/stores");
    if (store_draws.Integer(1, 3) > 1) return;
    plan_.faults.stored = store_draws.Uniform(0.1, 1);
  }

  // In some worlds, backups of the log are made and restored.
  void MakeRestores() {
    RandomStream restore_draws(plan_.seed, TrialNumber{}, "sim/restores");
    if (restore_draws.Integer(1, 8) > 1) return;
    plan_.identifies = true;
    plan_.faults.server_crashes =
        std::max(plan_.faults.server_crashes, restore_draws.Uniform(0.5, 2));
    plan_.faults.backups = restore_draws.Uniform(0.5, 3);
    plan_.faults.restored = restore_draws.Uniform(0.2, 1);
  }

  // Some hosts belong to a batch system whose jobs have a time limit.
  void MakeLifetimes() {
    RandomStream lifetime_draws(plan_.seed, TrialNumber{}, "sim/lives");
    if (lifetime_draws.Integer(1, 5) > 1) return;
    for (PlannedHost& host : plan_.executors) {
      if (lifetime_draws.Integer(0, 1) == 0)
        host.lifetime_us = lifetime_draws.Integer(70, 600) * kSecondUs;
    }
  }

  // Hosts get a kind, and some get a zone. Some gangs require a kind or a zone in which they fit.
  void MakeLabels() {
    if (label_draws_.Integer(1, 4) > 1) return;
    for (PlannedHost& host : plan_.executors) {
      host.labels["kind"] = label_draws_.Integer(0, 1) == 0 ? "old" : "new";
      if (label_draws_.Integer(0, 1) == 0)
        host.labels["zone"] = label_draws_.Integer(0, 1) == 0 ? "a" : "b";
    }
    for (PlannedSweep& planned : plan_.sweeps) {
      if (planned.spec.External() || label_draws_.Integer(0, 2) == 0) continue;
      GangSpec gang = planned.spec.gang;
      gang.required["kind"] = {label_draws_.Integer(0, 1) == 0 ? "old" : "new"};
      if (label_draws_.Integer(0, 2) == 0) gang.required["zone"] = {"a", "b"};
      if (CanHost(gang)) planned.spec.gang = gang;
    }
  }

  // Whether the gang fits on the hosts with the required labels that never disappear.
  bool CanHost(const GangSpec& gang) const {
    int on_one_host = 0;
    int together = 0;
    for (const PlannedHost& host : plan_.executors) {
      if (host.gone_at_us > 0 || !Matches(gang.required, host.labels)) continue;
      const int workers = WorkersOn(host.resources, gang.per_worker);
      on_one_host = std::max(on_one_host, workers);
      if (host.spans) together += workers;
    }
    return std::max(on_one_host, together) >= MinWorkers(gang);
  }

  // Some gangs may grow, some of them to more workers than all executors can hold. Equal sweeps
  // stay equal.
  void MakeElastic() {
    const bool equal = std::ranges::all_of(plan_.sweeps, [&](const PlannedSweep& planned) {
      return planned.spec.gang == plan_.sweeps.front().spec.gang;
    });
    for (PlannedSweep& planned : plan_.sweeps) {
      GangSpec& gang = planned.spec.gang;
      if (planned.spec.External() || elastic_draws_.Integer(1, 2) == 1) continue;
      gang.min_workers = static_cast<int>(elastic_draws_.Integer(1, gang.workers));
      gang.workers =
          static_cast<int>(elastic_draws_.Integer(gang.min_workers + 1, 2 * gang.workers + 1));
      gang.grow_after = Seconds(static_cast<double>(elastic_draws_.Integer(0, 20)));
      if (elastic_draws_.Integer(1, 2) == 1) {  // so that a gang can grow while no trial waits
        planned.spec.max_concurrent_trials = static_cast<int>(elastic_draws_.Integer(1, 2));
        planned.spec.checkpoint.every = Step(1);
      }
      if (!equal) continue;
      for (PlannedSweep& other : plan_.sweeps) {
        if (!other.spec.External()) other.spec.gang = gang;
      }
      return;
    }
  }

  // One host disappears for ever, if the other hosts can hold every gang.
  void MakeLostHost() {
    if (!OneIn(4)) return;
    auto& hosts = plan_.executors;
    PlannedHost& gone = hosts[static_cast<size_t>(Integer(0, std::ssize(hosts) - 1))];
    for (const PlannedSweep& planned : plan_.sweeps) {
      const GangSpec& gang = planned.spec.gang;
      if (planned.spec.External()) continue;
      int together = 0;
      int on_one_host = 0;
      for (const PlannedHost& host : hosts) {
        if (&host == &gone) continue;
        const int workers = WorkersOn(host.resources, gang.per_worker);
        on_one_host = std::max(on_one_host, workers);
        if (host.spans) together += workers;
      }
      if (std::max(on_one_host, together) < MinWorkers(gang)) return;
    }
    gone.gone_at_us = Integer(5, plan_.quiet_at_us / kSecondUs) * kSecondUs;
  }

  void MakeLimits(SweepSpec& spec) {
    if (OneIn(4)) spec.max_concurrent_trials = static_cast<int>(Integer(1, 3));
    if (OneIn(4)) spec.priority = static_cast<int>(Integer(-1, 1));
    spec.checkpoint = {.every = Step(FlipCoin() ? 0 : Integer(1, 3)),
                       .keep_last = static_cast<int>(Integer(1, 2)),
                       .keep_best = static_cast<int>(Integer(0, 1))};
    spec.failure = {.max_restarts = static_cast<int>(Integer(0, 3)),
                    .max_failed_trials = static_cast<int>(Integer(0, 10)),
                    .backoff = Seconds(static_cast<double>(Integer(0, 10))),
                    .stall_timeout = Seconds(static_cast<double>(Integer(30, 60)))};
    StopPolicy& stop = spec.stop;
    if (OneIn(10)) stop.max_time = Seconds(static_cast<double>(Integer(10, 200)));
    if (OneIn(10)) stop.max_gpu_hours = random_.Uniform(0.001, 0.2);
    if (OneIn(10)) stop.patience = static_cast<int>(Integer(2, 6));
    if (OneIn(10)) stop.max_trial_time = Seconds(static_cast<double>(Integer(5, 60)));
    if (OneIn(10)) stop.trial_patience = static_cast<int>(Integer(1, 5));
    MakeTrialStoppers(stop);
    if (spec.External()) {  // these settings need a command
      spec.checkpoint = {};
      spec.failure.stall_timeout = FailurePolicy().stall_timeout;
      stop.max_gpu_hours = 0;
    } else if (policy_draws_.Integer(1, 4) == 1) {
      for (const char* pattern : {"ECC", "NCCL"})
        spec.failure.on_log.push_back(
            {pattern, static_cast<LogAction>(policy_draws_.Integer(0, 2))});
    }
    if (OneIn(10)) {
      for (const Objective& objective : spec.objectives)
        stop.targets.emplace_back(objective.mode == Mode::kMin ? 0.2 : 0.8);
    }
  }

  void MakeTrialStoppers(StopPolicy& stop) {
    const auto one_in = [&](int64_t n) { return stopper_draws_.Integer(1, n) == 1; };
    const auto metric = [&] { return one_in(2) ? "loss" : "cost"; };
    if (one_in(10)) {
      Plateau& plateau = stop.plateau.emplace();
      plateau = {.metric = {metric(), one_in(2) ? Mode::kMin : Mode::kMax},
                 .patience = static_cast<int>(stopper_draws_.Integer(1, 4)),
                 .grace_period = Step(stopper_draws_.Integer(1, 4))};
      if (one_in(2)) {
        plateau.std = stopper_draws_.Uniform(0, 0.3);
      } else {
        plateau.min_delta = stopper_draws_.Uniform(0, 0.1);
      }
    }
    if (one_in(10))
      stop.thresholds = {{.metric = metric(),
                          .at_least = stopper_draws_.Uniform(0.6, 1),
                          .at_most = stopper_draws_.Uniform(0, 0.3),
                          .grace_period = Step(stopper_draws_.Integer(1, 4))}};
  }

  const std::string& PickName(const std::vector<std::string>& names) {
    return names[static_cast<size_t>(Integer(0, std::ssize(names) - 1))];
  }

  RandomStream random_;
  RandomStream stopper_draws_;
  RandomStream label_draws_;
  RandomStream policy_draws_;
  RandomStream elastic_draws_;
  RandomStream size_draws_;
  Plan plan_;
};

}  // namespace

Plan MakePlan(uint64_t seed) { return Planner(seed).Make(); }

}  // namespace attune::sim
