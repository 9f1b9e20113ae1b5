#include "tests/support/sample_log.h"

#include <limits>
#include <utility>

namespace attune::server {

SweepSpec SampleSpec() {
  SweepSpec spec;
  spec.name = "fashion-mnist";
  spec.tags = {"baseline"};
  spec.program = {.command = {"/opt/mnist", "--data", "${args}"},
                  .environment = {{"NCCL_DEBUG", "WARN"}},
                  .working_directory = "/opt"};
  spec.objectives = {Maximise("accuracy")};
  spec.space = SearchSpace({
      {.name = "lr", .domain = FloatDomain{.min = 0.001, .max = 0.5, .scale = Scale::kLog}},
      {.name = "width", .domain = IntDomain{.min = 8, .max = 64, .step = 8}},
      {.name = "optimizer",
       .domain = CategoricalDomain{{Value(std::string("sgd")), Value(std::string("adamw"))}}},
      {.name = "batch", .domain = ConstantDomain{Value(int64_t{128})}},
      {.name = "momentum",
       .domain = FloatDomain{.min = 0.5, .max = 0.99},
       .when = {{.parent = "optimizer", .any_of = {Value(std::string("sgd"))}}}},
  });
  spec.searcher = {.name = "random", .options = {}};
  spec.seed = 7;
  spec.scheduler = {.name = "asha", .options = {{"reduction_factor", Value(int64_t{3})}}};
  spec.max_step = Step(9);
  spec.gang = {.workers = 2, .per_worker = {.cpus = 1}};
  spec.stop.max_trials = 12;
  return spec;
}

Config SampleConfig(double lr) {
  return {{"lr", lr},
          {"width", int64_t{32}},
          {"optimizer", std::string("adamw")},
          {"batch", int64_t{128}}};
}

Event SampleLog::Next(Fact fact) {
  ++seq_;
  return {EventSeq(seq_), Time{kSampleStart + static_cast<int64_t>(seq_) * 1'000'000},
          std::move(fact)};
}

void SampleLog::Add(Fact fact) { events_.push_back(Next(std::move(fact))); }

void SampleLog::Assign(const AttemptId& attempt, uint64_t epoch, Step milestone,
                       std::optional<CheckpointRef> resume) {
  Add(AttemptAssigned{.attempt = attempt,
                      .epoch = Epoch(epoch),
                      .ranks = {{.executor = "box", .local_rank = 0, .cpus = 1},
                                {.executor = "box", .local_rank = 1, .cpus = 1, .gpus = {0}}},
                      .resume = std::move(resume),
                      .milestone = milestone});
}

void SampleLog::Report(const AttemptId& attempt, int64_t step, double accuracy, double seconds) {
  Add(TrialReported{.attempt = attempt,
                    .report = {.step = Step(step),
                               .metrics = {{"accuracy", accuracy}, {"loss", 1.0 / 3.0}},
                               .seconds = Seconds(seconds)}});
}

SampleLog::SampleLog() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const SweepId sweep(1);
  const auto trial = [&](uint32_t number) { return TrialId(sweep, TrialNumber(number)); };
  const CheckpointRef step3{Step(3), "/data/sweeps/s1/trials/0/checkpoints/step-3-attempt-1",
                            "sha256:03"};

  Add(ExecutorJoined{.name = "box",
                     .instance = "b0c5",
                     .incarnation = Incarnation(1),
                     .address = "127.0.0.1",
                     .resources = {.cpus = 2, .gpus = 1, .memory_bytes = 25'165'824'000}});
  Add(SweepCreated{.sweep = sweep,
                   .spec = SampleSpec(),
                   .source = "name: fashion-mnist # \"quoted\"\n",
                   .idempotency_key = "key-1"});
  Add(TrialCreated{trial(0), SampleConfig(0.1), "initial_points"});
  Assign({trial(0), 1}, 1, Step(1));
  Add(AttemptStarted{{trial(0), 1}, {812, 813}});
  Add(AttemptFirstStep{{trial(0), 1}, Time{kSampleStart + 5'500'000}});
  Report({trial(0), 1}, 1, 0.5, 1.5);
  Add(TrialDecided{.attempt = {trial(0), 1},
                   .step = Step(1),
                   .verdict = Verdict::Continue({.rule = "asha",
                                                 .step = Step(1),
                                                 .rung = Step(1),
                                                 .value = 0.5,
                                                 .cutoff = 0.5,
                                                 .rank = 1,
                                                 .peers = 1,
                                                 .text = "the first at rung 1"}),
                   .milestone = Step(3)});
  Add(CheckpointSaved{{trial(0), 1}, step3, 431'232});
  Report({trial(0), 1}, 3, 0.75, 4.25);
  Add(AttemptEnded{.attempt = {trial(0), 1},
                   .outcome = Outcome::kFailed,
                   .failure = {.kind = FailureKind::kSignal,
                               .rank = 1,
                               .signal = 9,
                               .message = "rank 1 was killed by signal 9 (SIGKILL)",
                               .log_tail = "epoch 4\nout of memory"}});
  Add(TrialRequeued{trial(0), "rank 1 was killed; restart 1 of 3 from step 3"});
  Assign({trial(0), 2}, 2, Step(9), step3);
  Add(AttemptStarted{{trial(0), 2}, {901, 902}});
  Report({trial(0), 2}, 9, 0.871, 6.0);
  Add(TrialDecided{.attempt = {trial(0), 2},
                   .step = Step(9),
                   .verdict = Verdict::Stop({.rule = "max_step",
                                             .step = Step(9),
                                             .value = 0.871,
                                             .text = "reached step 9, the last"})});
  Add(TrialEnded{trial(0), TrialState::kCompleted, "reached step 9, the last"});
  Add(AttemptEnded{.attempt = {trial(0), 2}, .outcome = Outcome::kStopped});

  Add(TrialCreated{.trial = trial(1),
                   .config = SampleConfig(0.001),
                   .origin = "random",
                   .rationale = Rationale{.rule = "random", .text = "drawn at random"}});
  Assign({trial(1), 1}, 3, Step(1));
  Report({trial(1), 1}, 1, 0.25, 1.0);
  Add(TrialDecided{.attempt = {trial(1), 1},
                   .step = Step(1),
                   .verdict = Verdict::Stop({.rule = "asha",
                                             .step = Step(1),
                                             .rung = Step(1),
                                             .value = 0.25,
                                             .cutoff = 0.5,
                                             .rank = 2,
                                             .peers = 2,
                                             .text = "stopped at step 1: rank 2 of 2"})});
  Add(TrialEnded{trial(1), TrialState::kStopped, "stopped at step 1: rank 2 of 2"});
  Add(AttemptEnded{.attempt = {trial(1), 1}, .outcome = Outcome::kStopped});

  Add(TrialCreated{trial(2), SampleConfig(0.2), "random"});
  Assign({trial(2), 1}, 4, Step(1));
  Report({trial(2), 1}, 1, 0.6, 1.0);
  Add(TrialDecided{.attempt = {trial(2), 1},
                   .step = Step(1),
                   .verdict = Verdict::Pause({.rule = "asha",
                                              .step = Step(1),
                                              .rung = Step(1),
                                              .value = 0.6,
                                              .text = "paused at rung 1"})});
  Add(AttemptEnded{.attempt = {trial(2), 1}, .outcome = Outcome::kPaused});

  Add(TrialCreated{trial(3), SampleConfig(0.30000000000000004), "random"});
  Assign({trial(3), 1}, 5, Step(1));
  Report({trial(3), 1}, 1, kNan, 1.0);
  Report({trial(3), 1}, 2, -kInfinity, 2.0);
  Add(AttemptEnded{.attempt = {trial(3), 1}, .outcome = Outcome::kLost});
  Add(TrialRequeued{trial(3), "executor box was lost: its lease ended"});
  Add(ExecutorLost{"box", Incarnation(1), "its lease ended"});
  Add(SearchExhausted{sweep});
  Add(SweepStopping{sweep, SweepState::kStopped, "stopped on request"});
}

std::vector<Fact> OtherFacts() {
  const SweepId sweep(1);
  const TrialId trial(sweep, TrialNumber(2));
  const CheckpointRef ref{Step(3), "/data/step-3", "sha256:03"};
  const CheckpointId checkpoint{trial, 1, Step(3)};
  const KeptCheckpoint kept{
      .attempt = 1, .ref = ref, .executor = "box", .values = {0.75}, .pinned = true};
  const Verdict exploit =
      Verdict::Exploit({{SweepId(1), TrialNumber(0)}, 1, Step(6)}, SampleConfig(0.3),
                       {.rule = "pbt", .value = -0.0, .cutoff = 1e-310});
  const StopPolicy stop{.max_trials = 20,
                        .max_time = Seconds(3600),
                        .max_gpu_hours = 0.5,
                        .patience = 7,
                        .max_trial_time = Seconds(60.5),
                        .trial_patience = 3,
                        .targets = {0.99},
                        .plateau = Plateau{.metric = Minimise("loss"), .patience = 4, .std = 0.1},
                        .thresholds = {{.metric = "loss", .at_least = 99}}};
  const TrialRecord record{.id = trial,
                           .config = SampleConfig(0.2),
                           .state = TrialState::kPaused,
                           .attempts = 1,
                           .last_step = Step(3),
                           .seconds = Seconds(4.25),
                           .checkpoints = {kept, {.attempt = 1, .ref = ref}}};
  return {
      SweepEnded{sweep, SweepState::kStopped, "stopped on request"},
      SweepReopened{sweep, "for 8 more trials"},
      SweepPaused{sweep, "by a person"},
      SweepResumed{sweep},
      TrialReopened{record, Step(12), true, "by a person"},
      SlotsReserved{sweep, "box", "2 of 4 CPUs are free"},
      ReservationReleased{sweep, "another executor has room"},
      TrialYielding{trial, Verdict::Stop({.rule = "max_trial_time", .text = "60 s are over"})},
      TrialReported{{trial, 1}, {.step = Step(3), .metrics = {{"accuracy", 0.5}}, .waits = true}},
      MetricsLogged{{trial, 1}, 7, 2.25, {{"batch_loss", 0.25}}},
      TrialDecided{.attempt = {trial, 1}, .step = Step(3), .verdict = exploit, .cloned = kept},
      TrialRequeued{trial, "rank 0 failed", Time{kSampleStart + 60'000'000}},
      SweepAnnotated{sweep, {.note = "uses the \"new\" loader\n", .tags = {{"best", "lr"}}}},
      TrialAnnotated{trial, {.tags = std::vector<std::string>()}},
      CheckpointPinned{checkpoint, true},
      CheckpointDropped{checkpoint, "box", "/data/step-3", "not among the newest"},
      CheckpointRemoved{checkpoint},
      CheckpointStored{checkpoint, "sha256:4f0c2d9e", "s3://bucket/prefix", true}};
}

}  // namespace attune::server
