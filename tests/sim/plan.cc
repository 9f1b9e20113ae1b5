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

namespace attune::sim {
namespace {

using simulate::kSecondUs;

constexpr int64_t kGibibyte = int64_t{1} << 30;
constexpr SweepId kEarlier(1'000'000);  // before the world began
constexpr uint32_t kEarlierTrials = 12;
constexpr uint64_t kSqliteEvery = 200;   // seeds; it is slower than memory
constexpr int64_t kManySlotsEvery = 60;  // worlds; they are slower than others
constexpr int64_t kOneSlotEvery = 25;    // of the others
constexpr double kEndEarly = 0.3;        // of all sweeps

class Planner {
 public:
  explicit Planner(uint64_t seed)
      : random_(seed, TrialNumber{}, "sim/plan"),
        stoppers_(seed, TrialNumber{}, "sim/stoppers"),
        labels_(seed, TrialNumber{}, "sim/labels"),
        policies_(seed, TrialNumber{}, "sim/policies"),
        elastic_(seed, TrialNumber{}, "sim/elastic"),
        sizes_(seed, TrialNumber{}, "sim/sizes") {
    plan_.seed = seed;
  }

  Plan Make() {
    plan_.quiet_at_us = Integer(60, 400) * kSecondUs;
    plan_.step_us = Integer(1, 12) * kSecondUs;
    plan_.people = Coin() ? 0 : random_.Uniform(0.2, 4);
    plan_.sqlite = plan_.seed % kSqliteEvery == 0;
    plan_.edits = OneIn(10);
    if (plan_.edits) plan_.people = random_.Uniform(2, 6);
    MakeFaults();
    const int64_t executors = Integer(1, 4);
    const bool gpus = Coin();
    for (int64_t i = 0; i < executors; ++i) {
      plan_.executors.push_back({.resources = {.cpus = static_cast<int>(Integer(2, 8)),
                                               .gpus = gpus ? static_cast<int>(Integer(0, 4)) : 0,
                                               .memory_bytes = Integer(4, 16) * kGibibyte}});
    }
    const int64_t sweeps = Integer(1, 3);
    const bool equal = sweeps > 1 && OneIn(3);  // so that their shares can be compared
    for (int64_t i = 0; i < sweeps; ++i) {
      if (i > 0 && equal) {
        plan_.sweeps.push_back(plan_.sweeps.front());
        plan_.sweeps.back().spec.seed = static_cast<uint64_t>(Integer(0, 1 << 30));
      } else {
        plan_.sweeps.push_back(MakeSweep());
      }
      plan_.sweeps.back().owner = Coin() ? "ada" : "bob";
      plan_.sweeps.back().spec.name = "sweep-" + std::to_string(i + 1);
    }
    MakeSizes();
    MakeFolders();
    if (OneIn(10)) MakeSpanning();
    MakeElastic();
    MakeGone();
    MakeLabels();
    MakeLives();
    MakeShares();
    MakeRestores();
    if (labels_.Integer(1, 4) == 1) plan_.drains = labels_.Uniform(0.2, 3);
    if (policies_.Integer(1, 3) == 1) plan_.faults.host_ails = policies_.Uniform(0, 3);
    MakeDisks();
    return std::move(plan_);
  }

 private:
  int64_t Integer(int64_t low, int64_t high) { return random_.Integer(low, high); }
  bool Coin() { return OneIn(2); }
  bool OneIn(int64_t n) { return Integer(1, n) == 1; }
  double Rate(double most) { return Coin() ? 0 : random_.Uniform(0, most); }

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
    faults.snapshot_used = Rate(2);  // above 1: always
    faults.delay_us = Integer(1, Coin() ? 100 : 4000) * kSecondUs / 1000;
    faults.slow_hellos = Rate(0.3);
    faults.batch_us = Coin() ? 0 : Integer(0, 10 * kSecondUs);
    faults.replay_us = Coin() ? 0 : Integer(0, 60) * kSecondUs;
    faults.disk_full_us = Integer(1, Coin() ? 20 : 120) * kSecondUs;
    faults.clock_jump_us = Coin() ? 0 : Integer(0, 90) * kSecondUs;
  }

  PlannedSweep MakeSweep() {
    PlannedSweep planned{.created_at_us = Coin() ? 0 : Integer(0, 60) * kSecondUs,
                         .curves = PickName(simulate::CurveModels())};
    SweepSpec& spec = planned.spec;
    spec.program.command = {"/bin/train"};
    spec.objectives = {{"loss", Coin() ? Mode::kMin : Mode::kMax}};
    if (OneIn(4)) spec.objectives.push_back({"cost", Coin() ? Mode::kMin : Mode::kMax});
    if (OneIn(8)) spec.constraints = {{.metric = "cost", .min = 0.1, .max = 0.7}};
    spec.seed = static_cast<uint64_t>(Integer(0, 1 << 30));
    const bool countable = Coin();
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
    spec.searcher = SpecOf(countable && Coin() ? "grid" : PickName(SearcherNames()));
    if (!TestAlgorithms().MakeSearcher(spec).ok()) spec.searcher = SpecOf("random");
    if (OneIn(20)) spec.searcher = SpecOf(std::string(kPondering));  // about each tenth world
    if (const auto option = spec.searcher.options.find("startup_trials");
        option != spec.searcher.options.end()) {
      option->second = Integer(1, 3);  // so that few trials make a model
    }
    DrawOptions(spec, random_);
    MeasureTime(spec);
    DrawGrowth(spec);
    BeginWarm(planned);
    EndEarly(planned);
    return planned;
  }

  // From a stream of its own, so that all else is drawn as it was.
  static void EndEarly(PlannedSweep& planned) {
    if (planned.spec.External()) return;
    RandomStream random(planned.spec.seed, TrialNumber{}, "sim/endings");
    if (random.Uniform() < kEndEarly) planned.ends_early = random.Uniform(0.1, 0.9);
  }

  // Few worlds have many slots, and trials that fill them; few have a single one, and brackets and
  // populations that are larger. From a stream of their own, so that the other worlds stay as they
  // are.
  void MakeSizes() {
    if (sizes_.Integer(1, kManySlotsEvery) == 1) {
      const int64_t slots = int64_t{1} << sizes_.Integer(3, 6);
      const auto hosts = std::ssize(plan_.executors);
      for (PlannedHost& host : plan_.executors)
        host.resources.cpus = static_cast<int>(slots / hosts);
      const auto sweeps = std::ssize(plan_.sweeps);
      MakeSmallGangs(slots / sweeps + 1, 2 * slots / sweeps);
    } else if (sizes_.Integer(1, kOneSlotEvery) == 1) {
      plan_.executors.resize(1);
      plan_.executors.front().resources = {.cpus = 1, .memory_bytes = kGibibyte};
      MakeSmallGangs(8, 30);
    }
  }

  // All sweeps have gangs of one slot, and so many trials; most have a scheduler that has more of
  // them begin than go on.
  void MakeSmallGangs(int64_t trials_min, int64_t trials_max) {
    static const std::vector<std::string> halving = {"asha",  "extrapolate", "halving", "hyperband",
                                                     "pasha", "pb2",         "pbt"};
    for (PlannedSweep& planned : plan_.sweeps) {
      SweepSpec& spec = planned.spec;
      if (spec.External()) continue;
      spec.gang = {.workers = 1, .per_worker = {.cpus = 1}, .placement = spec.gang.placement};
      spec.max_concurrent_trials = 0;
      spec.stop.max_gpu_hours = 0;
      spec.stop.max_trials = static_cast<int>(sizes_.Integer(trials_min, trials_max));
      if (sizes_.Integer(0, 3) == 0) continue;
      const AlgorithmSpec before = spec.scheduler;
      spec.scheduler =
          SpecOf(halving[static_cast<size_t>(sizes_.Integer(0, std::ssize(halving) - 1))]);
      DrawOptions(spec, sizes_);
      if (!TestAlgorithms().MakeScheduler(spec).ok() || !TestAlgorithms().MakeSearcher(spec).ok())
        spec.scheduler = before;
    }
  }

  // From a stream of its own, so that all else is drawn as it was.
  static void MeasureTime(SweepSpec& spec) {
    RandomStream random(spec.seed, TrialNumber{}, "sim/time");
    if (random.Uniform() < 0.2) spec.time_attr = kSamples;
  }

  static void DrawGrowth(SweepSpec& spec) {
    if (spec.gang.min_workers == 0) return;
    RandomStream random(spec.seed, TrialNumber{}, "sim/growth");
    spec.gang.grow = static_cast<GrowthPolicy>(random.Integer(0, 2));
  }

  // Half of those whose searchers take results of an earlier sweep have some. From a stream of
  // their own, so that all else is drawn as it was.
  void BeginWarm(PlannedSweep& planned) const {
    RandomStream random(planned.spec.seed, TrialNumber{}, "sim/warm_start");
    SweepSpec spec = planned.spec;
    spec.warm_start = {kEarlier};
    if (random.Uniform() < 0.5 || !TestAlgorithms().MakeSearcher(spec).ok()) return;
    std::vector<TrialResult> results;
    for (uint32_t i = 0; i < kEarlierTrials; ++i) {
      Config config;
      for (const size_t place : spec.space.order()) {
        const Parameter& parameter = spec.space.parameters()[place];
        if (spec.space.Active(parameter, config))
          config.Set(parameter.name, Draw(parameter.domain, random));
      }
      Metrics metrics;
      for (const Objective& objective : spec.objectives)
        metrics[objective.metric] = random.Uniform();
      results.push_back(
          {.config = std::move(config), .metrics = std::move(metrics), .trial = TrialNumber(i)});
    }
    const auto start = TakeFrom(spec, kEarlier, spec, std::move(results));
    if (!start.ok()) return;  // nothing varies
    planned.spec = std::move(spec);
    planned.warm_start = {*start};
  }

  // So that few trials of few steps are judged in every way.
  static void DrawOptions(SweepSpec& spec, RandomStream& random) {
    const AlgorithmSpec with_fallbacks = spec.scheduler;
    auto& options = spec.scheduler.options;
    const auto draw = [&](const char* name, int64_t low, int64_t high) {
      if (const auto option = options.find(name); option != options.end())
        option->second = random.Integer(low, high);
    };
    const auto coin = [&random] { return random.Integer(1, 2) == 1; };
    if (spec.scheduler.name == "asha" && coin())
      options.insert_or_assign("mode", Value(std::string("promote")));
    draw("reduction_factor", 2, 3);
    draw("brackets", 1, 2);
    draw("min_samples", 1, 3);
    draw("interval", 1, 3);
    draw("perturbation_interval", 1, 3);
    draw("population", 0, 6);
    if (const auto option = options.find("synchronous"); option != options.end())
      option->second = coin();
    if (!TestAlgorithms().MakeScheduler(spec).ok()) spec.scheduler = with_fallbacks;
  }

  // As a sweep file can say it: a parameter has one condition on a parent.
  SearchSpace RandomSpace(bool countable) {
    const auto drawn =
        conformance::RandomSpace(static_cast<uint64_t>(Integer(0, 1 << 30)), countable);
    std::vector<Parameter> parameters = drawn.parameters();
    for (Parameter& parameter : parameters) {
      if (parameter.when.size() == 2 && parameter.when[0].parent == parameter.when[1].parent)
        parameter.when.pop_back();
    }
    return SearchSpace(std::move(parameters));
  }

  // Fits one of the executors, or the sweep would wait for ever.
  void MakeGang(SweepSpec& spec) {
    const Resources& host =
        plan_.executors[static_cast<size_t>(Integer(0, std::ssize(plan_.executors) - 1))].resources;
    GangSpec& gang = spec.gang;
    gang.placement = Coin() ? PlacementPolicy::kPack : PlacementPolicy::kSpread;
    const int cpus = static_cast<int>(Integer(1, OneIn(3) ? host.cpus : 2));
    gang.workers = static_cast<int>(Integer(1, cpus));
    gang.per_worker = {.cpus = cpus / gang.workers};
    if (host.gpus > 0 && Coin())
      gang.per_worker.gpus = static_cast<int>(Integer(0, host.gpus)) / gang.workers;
    if (OneIn(3)) gang.per_worker.memory_bytes = host.memory_bytes / Integer(1, 4) / gang.workers;
  }

  // Every host has a data folder of its own, all share one, or none says a word about it.
  void MakeFolders() {
    const int64_t kind = Integer(0, 3);
    for (size_t i = 0; i < plan_.executors.size() && kind < 2; ++i)
      plan_.executors[i].folder = kind == 0 ? "shared" : "own-" + std::to_string(i + 1);
  }

  static int Fits(const Resources& each, const Resources& room) {
    int64_t fits = room.cpus / each.cpus;
    if (each.gpus > 0) fits = std::min<int64_t>(fits, room.gpus / each.gpus);
    if (each.memory_bytes > 0) fits = std::min(fits, room.memory_bytes / each.memory_bytes);
    return static_cast<int>(fits);
  }

  // Some gangs need more than one host.
  void MakeSpanning() {
    for (PlannedHost& host : plan_.executors) host.spans = true;
    for (PlannedSweep& planned : plan_.sweeps) {
      if (planned.spec.External() || OneIn(3)) continue;
      GangSpec& gang = planned.spec.gang;
      int all = 0;
      for (const PlannedHost& host : plan_.executors) all += Fits(gang.per_worker, host.resources);
      gang.workers = static_cast<int>(Integer(std::min(gang.workers, all), all));
    }
  }

  // Some gangs of one worker take a share of a GPU, or a whole one, where each host has one.
  void MakeShares() {
    RandomStream shares(plan_.seed, TrialNumber{}, "sim/shares");
    if (std::ranges::any_of(plan_.executors,
                            [](const PlannedHost& host) { return host.resources.gpus == 0; }))
      return;
    for (PlannedSweep& planned : plan_.sweeps) {
      GangSpec& gang = planned.spec.gang;
      if (planned.spec.External() || gang.workers > 1 || shares.Integer(0, 2) == 0) continue;
      gang.per_worker.gpus = 1;
      if (shares.Integer(0, 3) > 0) gang.gpu_percent = static_cast<int>(shares.Integer(1, 4)) * 23;
    }
  }

  // Some worlds have hosts with small disks.
  void MakeDisks() {
    RandomStream disks(plan_.seed, TrialNumber{}, "sim/disks");
    if (disks.Integer(1, 4) > 1) return;
    plan_.faults.cannot_save = disks.Uniform(0, 0.3);
    plan_.faults.fills_disk = disks.Uniform(0, 0.05);
  }

  // In some worlds backups are made and restored. From a stream of their own, so that the other
  // worlds stay as they are.
  void MakeRestores() {
    RandomStream restores(plan_.seed, TrialNumber{}, "sim/restores");
    if (restores.Integer(1, 8) > 1) return;
    plan_.identifies = true;
    plan_.faults.server_crashes = std::max(plan_.faults.server_crashes, restores.Uniform(0.5, 2));
    plan_.faults.backups = restores.Uniform(0.5, 3);
    plan_.faults.restored = restores.Uniform(0.2, 1);
  }

  // Some hosts are a batch system's, whose jobs end.
  void MakeLives() {
    RandomStream lives(plan_.seed, TrialNumber{}, "sim/lives");
    if (lives.Integer(1, 5) > 1) return;
    for (PlannedHost& host : plan_.executors) {
      if (lives.Integer(0, 1) == 0) host.lives_us = lives.Integer(70, 600) * kSecondUs;
    }
  }

  // Hosts of two kinds, in places; some gangs want one of those, if it has room for them. From a
  // stream of their own, so that the other worlds stay as they are.
  void MakeLabels() {
    if (labels_.Integer(1, 4) > 1) return;
    for (PlannedHost& host : plan_.executors) {
      host.labels["kind"] = labels_.Integer(0, 1) == 0 ? "old" : "new";
      if (labels_.Integer(0, 1) == 0) host.labels["zone"] = labels_.Integer(0, 1) == 0 ? "a" : "b";
    }
    for (PlannedSweep& planned : plan_.sweeps) {
      if (planned.spec.External() || labels_.Integer(0, 2) == 0) continue;
      GangSpec gang = planned.spec.gang;
      gang.required["kind"] = {labels_.Integer(0, 1) == 0 ? "old" : "new"};
      if (labels_.Integer(0, 2) == 0) gang.required["zone"] = {"a", "b"};
      if (HasRoom(gang)) planned.spec.gang = gang;
    }
  }

  // On the hosts with its labels that are never gone for good.
  bool HasRoom(const GangSpec& gang) const {
    int most = 0;
    int together = 0;
    for (const PlannedHost& host : plan_.executors) {
      if (host.gone_at_us > 0 || !Match(gang.required, host.labels)) continue;
      const int fits = Fits(gang.per_worker, host.resources);
      most = std::max(most, fits);
      if (host.spans) together += fits;
    }
    return std::max(most, together) >= MinWorkers(gang);
  }

  // Some gangs would like to be larger, if need be than all executors together. Sweeps that are
  // equal stay so. From a stream of their own, so that the other worlds stay as they are.
  void MakeElastic() {
    const bool equal = std::ranges::all_of(plan_.sweeps, [&](const PlannedSweep& planned) {
      return planned.spec.gang == plan_.sweeps.front().spec.gang;
    });
    for (PlannedSweep& planned : plan_.sweeps) {
      GangSpec& gang = planned.spec.gang;
      if (planned.spec.External() || elastic_.Integer(1, 2) == 1) continue;
      gang.min_workers = static_cast<int>(elastic_.Integer(1, gang.workers));
      gang.workers = static_cast<int>(elastic_.Integer(gang.min_workers + 1, 2 * gang.workers + 1));
      gang.grow_after = Seconds(static_cast<double>(elastic_.Integer(0, 20)));
      if (elastic_.Integer(1, 2) == 1) {  // so that none waits while one is to grow
        planned.spec.max_concurrent_trials = static_cast<int>(elastic_.Integer(1, 2));
        planned.spec.checkpoint.every = Step(1);
      }
      if (!equal) continue;
      for (PlannedSweep& other : plan_.sweeps) {
        if (!other.spec.External()) other.spec.gang = gang;
      }
      return;
    }
  }

  // One host never comes back, if the others have room for every gang.
  void MakeGone() {
    if (!OneIn(4)) return;
    auto& hosts = plan_.executors;
    PlannedHost& gone = hosts[static_cast<size_t>(Integer(0, std::ssize(hosts) - 1))];
    for (const PlannedSweep& planned : plan_.sweeps) {
      const GangSpec& gang = planned.spec.gang;
      if (planned.spec.External()) continue;
      int together = 0;
      int most = 0;
      for (const PlannedHost& host : hosts) {
        if (&host == &gone) continue;
        const int fits = Fits(gang.per_worker, host.resources);
        most = std::max(most, fits);
        if (host.spans) together += fits;
      }
      if (std::max(most, together) < MinWorkers(gang)) return;
    }
    gone.gone_at_us = Integer(5, plan_.quiet_at_us / kSecondUs) * kSecondUs;
  }

  void MakeLimits(SweepSpec& spec) {
    if (OneIn(4)) spec.max_concurrent_trials = static_cast<int>(Integer(1, 3));
    if (OneIn(4)) spec.priority = static_cast<int>(Integer(-1, 1));
    spec.checkpoint = {.every = Step(Coin() ? 0 : Integer(1, 3)),
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
    if (spec.External()) {  // what belongs to a program
      spec.checkpoint = {};
      spec.failure.stall_timeout = FailurePolicy().stall_timeout;
      stop.max_gpu_hours = 0;
    } else if (policies_.Integer(1, 4) == 1) {
      for (const char* pattern : {"ECC", "NCCL"})
        spec.failure.on_log.push_back({pattern, static_cast<LogAction>(policies_.Integer(0, 2))});
    }
    if (OneIn(10)) {
      for (const Objective& objective : spec.objectives)
        stop.targets.emplace_back(objective.mode == Mode::kMin ? 0.2 : 0.8);
    }
  }

  // From a stream of their own, so that the other worlds stay as they are.
  void MakeTrialStoppers(StopPolicy& stop) {
    const auto one_in = [&](int64_t n) { return stoppers_.Integer(1, n) == 1; };
    const auto metric = [&] { return one_in(2) ? "loss" : "cost"; };
    if (one_in(10)) {
      Plateau& plateau = stop.plateau.emplace();
      plateau = {.metric = {metric(), one_in(2) ? Mode::kMin : Mode::kMax},
                 .patience = static_cast<int>(stoppers_.Integer(1, 4)),
                 .grace_period = Step(stoppers_.Integer(1, 4))};
      if (one_in(2)) {
        plateau.std = stoppers_.Uniform(0, 0.3);
      } else {
        plateau.min_delta = stoppers_.Uniform(0, 0.1);
      }
    }
    if (one_in(10))
      stop.thresholds = {{.metric = metric(),
                          .at_least = stoppers_.Uniform(0.6, 1),
                          .at_most = stoppers_.Uniform(0, 0.3),
                          .grace_period = Step(stoppers_.Integer(1, 4))}};
  }

  const std::string& PickName(const std::vector<std::string>& names) {
    return names[static_cast<size_t>(Integer(0, std::ssize(names) - 1))];
  }

  RandomStream random_;
  RandomStream stoppers_;
  RandomStream labels_;
  RandomStream policies_;
  RandomStream elastic_;
  RandomStream sizes_;
  Plan plan_;
};

}  // namespace

Plan MakePlan(uint64_t seed) { return Planner(seed).Make(); }

}  // namespace attune::sim
