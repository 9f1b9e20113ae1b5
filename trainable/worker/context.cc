#include "attune/context.h"

#include <c10/core/DeviceType.h>
#include <torch/types.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <limits>
#include <optional>
#include <utility>

#include "attune/distributed_sampler.h"
#include "attune/error.h"
#include "trainable/base/random.h"
#include "trainable/channel/channel.h"
#include "trainable/channel/messages.h"
#include "trainable/checkpoints/names.h"
#include "trainable/checkpoints/unfinished.h"
#include "trainable/distributed/process_groups.h"
#include "trainable/worker/fetched_checkpoint.h"
#include "trainable/worker/saver.h"

namespace attune::inline sdk {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// The longest silence that an executor accepts (docs/reference/worker-channel.md).
constexpr std::chrono::milliseconds kSilenceMax = std::chrono::days(7);

// The minimum time between two automatic heartbeats.
constexpr std::chrono::seconds kHeartbeatInterval{1};

// The minimum time between two checkpoints that neither a milestone nor checkpoint_every requires.
// It grows so that saving takes at most 1/kSaveShare of the time.
constexpr std::chrono::minutes kSaveInterval{1};
constexpr int kSaveShare = 20;

// How long a rank waits for rank 0 before it reports this to the executor, and to its log.
constexpr std::chrono::seconds kWaitBeforeReport{1};
constexpr std::chrono::seconds kWaitBeforeLog{5};

std::int64_t OrNever(std::int64_t step) { return step > 0 ? step : kNever; }

// FNV-1a of the names, to compare them between ranks.
std::int64_t HashNames(const Metrics& metrics) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const auto& [name, value] : metrics) {
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash = (hash ^ 0xffu) * 0x100000001b3u;  // no name contains it: they are UTF-8
  }
  return static_cast<std::int64_t>(hash);
}

}  // namespace

struct Context::State {
  const trainable::Start start;
  trainable::Channel& channel;
  const std::vector<std::string> args;
  const c10::Device device;
  const std::vector<c10::Device> devices;
  trainable::ProcessGroups groups;
  trainable::Saver saver;                               // used by rank 0
  std::optional<trainable::FetchedCheckpoint> fetched;  // set if the gang is on several hosts
  std::optional<CheckpointReader> checkpoint;
  std::int64_t step = 0;
  std::int64_t time = 0;       // time of the last report; rank 0 sends it to the others
  std::int64_t time_before{};  // time of the previous report
  std::int64_t milestone;      // current on rank 0 only
  bool first_step_noted = false;
  bool warned_of_same_unit = false;
  bool yielding = false;  // the next report waits for a verdict
  bool stopping = false;  // the next report is the last
  bool has_left = false;  // the last Report() returned false
  bool silent = true;     // a silence was announced; Setup() begins with one
  Clock::time_point heartbeat = Clock::now();
  Clock::time_point began = Clock::now();
  Clock::duration waited{};  // time since `began` spent waiting for verdicts
  Clock::time_point last_save = began;
  Clock::duration save_took{};
  // Whether the caller calls SeedStep() after its setup; PrepareModel() then does not.
  bool seeds_after_setup = false;
  // Number of models that a training function has prepared.
  int prepared_models = 0;

  State(const trainable::Start& the_start, trainable::Channel& the_channel,
        std::vector<std::string> the_args)
      : start(the_start),
        channel(the_channel),
        args(std::move(the_args)),
        device(start.device),
        devices(start.devices.begin(), start.devices.end()),
        groups(start, channel),
        saver(channel),
        milestone(OrNever(start.milestone)) {}

  // Whether the server decides about this report. start.max_step may be outdated, because the last
  // step can grow; milestones follow it.
  bool NeedsVerdict() const {
    return time >= (milestone == kNever ? OrNever(start.max_step) : milestone);
  }

  // `decisive`: rank 0 waits for a verdict, or the trial ends.
  bool IsCheckpointDue(bool decisive) const {
    if (start.checkpoint_dir.empty()) return false;
    const std::int64_t every = start.checkpoint_every;
    if (decisive) return true;
    if (every > 0) return time / every > time_before / every;
    const bool end_is_known = milestone != kNever || start.max_step > 0;
    return !end_is_known || Clock::now() - last_save >=
                                std::max<Clock::duration>(kSaveInterval, kSaveShare * save_took);
  }

  // Sets the time of the report, on rank 0. Returns false if it falls into the same unit as the
  // previous report, which then remains the report of that unit. Throws if the metrics lack the
  // time.
  bool AdvanceTime(const Metrics& metrics) {
    std::int64_t now = step;
    if (!start.time_attr.empty()) {
      const auto found = metrics.find(start.time_attr);
      const auto moved = channel::StepOfTime(
          start.time_attr,
          found == metrics.end() ? std::nullopt : std::optional<double>(found->second), time);
      if (!moved.ok()) throw Error("Report: " + moved.error().message);
      now = moved.value();
      if (now == time) return false;
    }
    time_before = std::exchange(time, now);
    return true;
  }

  void SendHeartbeat(std::chrono::milliseconds silence) {
    saver.NoteSilence(silence);
    channel.Send(ToLine(channel::Heartbeat{silence}));
    silent = silence.count() > 0;
    heartbeat = Clock::now();
  }

  bool KeepsCheckpoints() const { return start.rank == 0 && !start.checkpoint_dir.empty(); }

  std::unique_ptr<CheckpointWriter> NewWriter(std::int64_t of_step) {
    saver.Drain();
    SendHeartbeat(kSaveSilence);
    return std::make_unique<CheckpointWriter>(start.checkpoint_dir, of_step, start.attempt,
                                              start.world_size);
  }

  void Commit(std::unique_ptr<CheckpointWriter> writer) {
    writer->Write(trainable::kTrialConfig, start.config);
    const bool in_background = writer->background();
    saver.Commit(std::move(writer));
    if (!in_background) saver.Drain();
  }

  // Records whether rank 0 was asked to wait at this step.
  void PollYield() {
    while (const auto message = channel.Poll()) {
      yielding |= std::holds_alternative<channel::Yield>(*message);
      CheckUnexpected(*message);
    }
  }

  trainable::Verdict AwaitVerdict() {
    const auto asked = Clock::now();
    while (true) {
      const trainable::FromExecutor message = channel.Receive();
      const auto* verdict = std::get_if<trainable::Verdict>(&message);
      if (verdict != nullptr && verdict->step == time) {
        yielding = false;
        waited += Clock::now() - asked;
        return *verdict;
      }
      CheckUnexpected(message);
    }
  }

  // Throws unless the message is allowed while no verdict on this step is awaited: an unknown type,
  // a request to yield, or the repetition of an earlier answer.
  void CheckUnexpected(const trainable::FromExecutor& message) const {
    if (const auto* verdict = std::get_if<trainable::Verdict>(&message)) {
      if (verdict->step < time) return;
      throw Error("channel: a verdict for step " + std::to_string(verdict->step) + " at step " +
                  std::to_string(time));
    }
    if (std::holds_alternative<channel::Start>(message) ||
        std::holds_alternative<trainable::Rendezvous>(message)) {
      throw Error("channel: expected `verdict` or `yield`, got another message");
    }
  }

  // Reports a long wait for rank 0's decision: to the executor after one second, and to the log
  // after five. Returns when the decision has arrived.
  void ReportLongWait() {
    if (groups.HasMessage(kWaitBeforeReport)) return;
    channel.Send(ToLine(channel::Waiting{.ranks = {0}, .step = step}));
    if (groups.HasMessage(kWaitBeforeLog - kWaitBeforeReport)) return;
    std::cerr << "attune: rank " + std::to_string(start.rank) + " waits in Report() at step " +
                     std::to_string(step) +
                     " for rank 0, which has not called it or still saves a checkpoint. Let every "
                     "rank call it equally often, or rank 0 alone\n";
    while (!groups.HasMessage(kWaitBeforeLog)) {
    }
  }

  void WarnOfUnreadParameters() const {
    for (const std::string& name : start.config.Unread()) {
      std::cerr << "attune: config." << name << " has not been read by the program\n";
    }
  }
};

Context::Context(const trainable::Start& start, trainable::Channel& channel,
                 std::vector<std::string> args)
    : state_(std::make_unique<State>(start, channel, std::move(args))) {
  if (start.resume) {
    std::filesystem::path folder = start.resume->path;
    if (start.local_world_size < start.world_size) {
      folder = state_->fetched.emplace(start, state_->groups).folder();
    }
    const CheckpointReader& checkpoint =
        state_->checkpoint.emplace(std::move(folder), start.resume->digest);
    if (checkpoint.time() != start.resume->step) {
      throw Error(start.resume->path.string() + ": is a checkpoint of step " +
                  std::to_string(checkpoint.time()) + ", the trial resumes from step " +
                  std::to_string(start.resume->step));
    }
    state_->step = checkpoint.step();
    // A trial run by hand measures time in steps, even if a metric measured it when the checkpoint
    // was saved.
    state_->time = start.time_attr.empty() ? checkpoint.step() : checkpoint.time();
  }
  if (start.rank == 0 && !start.checkpoint_dir.empty()) {
    trainable::RemoveUnfinished(start.checkpoint_dir, start.attempt);
  }
  at::manual_seed(trainable::Key(start.seed, 0));
}

Context::~Context() = default;

const Config& Context::config() const { return state_->start.config; }
const std::vector<std::string>& Context::args() const { return state_->args; }
int Context::rank() const { return state_->start.rank; }
int Context::world_size() const { return state_->start.world_size; }
int Context::local_rank() const { return state_->start.local_rank; }
int Context::local_world_size() const { return state_->start.local_world_size; }
c10::Device Context::device() const { return state_->device; }
const std::vector<c10::Device>& Context::devices() const { return state_->devices; }
std::uint64_t Context::seed() const { return state_->start.seed; }
std::int64_t Context::step() const { return state_->step; }
std::int64_t Context::time() const { return state_->time; }
std::int64_t Context::max_step() const { return state_->start.max_step; }

const CheckpointReader* Context::checkpoint() const {
  return state_->checkpoint ? &*state_->checkpoint : nullptr;
}

bool Context::Report(const Metrics& metrics, const SaveFunction& save) {
  return EndStep(metrics, [&](bool due) -> std::unique_ptr<CheckpointWriter> {
    if (!due || !save || !state_->KeepsCheckpoints()) return nullptr;
    auto writer = state_->NewWriter(step());
    save(*writer);
    return writer;
  });
}

bool Context::Report(const Metrics& metrics, const SaveFunction& save,
                     const SaveShardFunction& save_shard) {
  if (!save_shard) return Report(metrics, save);
  return EndStep(metrics, [&](bool due) {
    std::unique_ptr<CheckpointWriter> writer;
    if (due && state_->KeepsCheckpoints()) {
      writer = state_->NewWriter(step());
      if (save) save(*writer);
    }
    // Only rank 0 knows whether a checkpoint is due, and its folder.
    const std::string folder =
        state_->groups.Broadcast(writer != nullptr ? writer->folder().string() : "");
    if (folder.empty()) return writer;
    state_->SendHeartbeat(kSaveSilence);
    ShardWriter shard(folder, rank());
    save_shard(shard);
    state_->groups.Barrier();
    return writer;
  });
}

bool Context::Report(const Metrics& metrics, const Checkpoint& checkpoint) {
  return EndStep(metrics, [&](bool) -> std::unique_ptr<CheckpointWriter> {
    if (!state_->KeepsCheckpoints()) return nullptr;
    auto writer = state_->NewWriter(step());
    writer->Write(checkpoint);
    return writer;
  });
}

bool Context::Report(const Metrics& metrics, CheckpointDirectory checkpoint) {
  return EndStep(metrics, [&](bool) {
    std::unique_ptr<CheckpointWriter> writer = checkpoint.TakeWriter();
    if (writer != nullptr && writer->step() != step()) {
      throw Error("Report: the checkpoint's folder was prepared for step " +
                  std::to_string(writer->step()) + ", and this is step " + std::to_string(step()));
    }
    return writer;
  });
}

void Context::Log(const Metrics& metrics, double step) {
  std::string line = trainable::ToLogLine(step, metrics);
  if (rank() != 0 || metrics.empty()) return;
  state_->saver.NoteSilence({});
  state_->channel.SendSoon(std::move(line));
  state_->silent = false;
  state_->heartbeat = Clock::now();
}

CheckpointDirectory Context::PrepareCheckpointDirectory() const {
  if (state_->start.checkpoint_dir.empty()) return CheckpointDirectory();
  return CheckpointDirectory(state_->NewWriter(step() + 1), /*kept=*/rank() == 0);
}

bool Context::EndStep(const Metrics& metrics, const WriteFunction& write) {
  State& state = *state_;
  if (state.has_left)
    throw Error("Report: the previous Report() returned false; end the training loop then");
  NoteFirstOptimizerStep();
  ++state.step;
  const bool reports = rank() == 0 && state.AdvanceTime(metrics);
  if (rank() == 0 && !reports && state.stopping) {
    std::cerr << "attune: the last report falls into the same unit of " << state.start.time_attr
              << " as the report before it; neither it nor a checkpoint is kept\n";
  } else if (rank() == 0 && !reports && !std::exchange(state.warned_of_same_unit, true)) {
    std::cerr << "attune: step " << state.step << " falls into the same unit of "
              << state.start.time_attr
              << " as the report before it; only the first report of a unit counts, later ones "
              << "are not kept\n";
  }
  bool waits = false;  // whether rank 0 waits for a verdict
  if (reports) {
    state.PollYield();
    waits = (state.yielding || state.NeedsVerdict()) && !state.stopping;
  }
  std::string progress = ToLine(channel::Progress{state.step});
  // Sent now, because from here on this rank waits for rank 0, which may save for a long time.
  if (rank() != 0) state.channel.SendSoon(progress);
  const Clock::time_point begins = Clock::now();
  auto writer = write(reports && state.IsCheckpointDue(waits || state.stopping));
  if (writer != nullptr && reports) {
    writer->set_time(state.time);
    state.Commit(std::move(writer));
    state.last_save = Clock::now();
    state.save_took = state.last_save - begins;
  }
  state.saver.NoteSilence({});
  if (reports) {
    const std::chrono::duration<double> seconds = Clock::now() - state.began - state.waited;
    state.saver.Send(
        {.step = state.time, .metrics = metrics, .seconds = seconds.count(), .waits = waits},
        std::move(progress));
  } else if (rank() == 0) {
    state.channel.SendSoon(std::move(progress));
  }
  state.silent = false;
  state.heartbeat = Clock::now();
  bool leaves = state.stopping;
  if (waits) {
    state.saver.Drain();
    const trainable::Verdict verdict = state.AwaitVerdict();
    state.milestone = OrNever(verdict.milestone);
    leaves = verdict.action != channel::Action::kContinue;
  }
  // Sent at every step, because only rank 0 knows at which step the gang must leave.
  std::array<std::int64_t, 2> decision{leaves ? 1 : 0, state.time};
  state.ReportLongWait();
  state.groups.BroadcastAsync(decision);
  state.has_left = decision[0] != 0;
  state.time = decision[1];
  SeedStep();
  return !state.has_left;
}

void Context::Stop() { state_->stopping = true; }

void Context::Heartbeat() {
  if (state_->silent || Clock::now() - state_->heartbeat >= kHeartbeatInterval)
    state_->SendHeartbeat({});
}

void Context::Heartbeat(std::chrono::milliseconds silence) {
  if (silence.count() < 0 || silence > kSilenceMax) {
    throw Error("Heartbeat: a silence of " + std::to_string(silence.count()) +
                " ms; it may last from 0 to " + std::to_string(kSilenceMax.count()) +
                " ms, a week");
  }
  state_->SendHeartbeat(silence);
}

Metrics Context::ReduceSum(const Metrics& metrics) {
  const std::vector<std::int64_t> names = state_->groups.Gather(HashNames(metrics));
  for (std::size_t other = 0; other < names.size(); ++other) {
    if (names[other] != names[0]) {
      throw Error("ReduceMean or ReduceSum: rank 0 and rank " + std::to_string(other) +
                  " pass different metrics; every rank must pass the same names");
    }
  }
  std::vector<double> values;
  for (const auto& [name, value] : metrics) values.push_back(value);
  state_->groups.Sum(values);
  Metrics sum = metrics;
  std::size_t i = 0;
  for (auto& [name, value] : sum) value = values[i++];
  return sum;
}

Metrics Context::ReduceMean(const Metrics& metrics) {
  Metrics mean = ReduceSum(metrics);
  for (auto& [name, value] : mean) value /= world_size();
  return mean;
}

DistributedSampler Context::PrepareSampler(std::int64_t size) const {
  return PrepareSampler(size, {});
}

DistributedSampler Context::PrepareSampler(std::int64_t size,
                                           DistributedSamplerOptions options) const {
  options.rank = rank();
  options.world_size = world_size();
  options.seed = seed();
  return DistributedSampler(size, std::move(options));
}

c10d::ProcessGroup& Context::process_group() { return *state_->groups.data(); }
trainable::ProcessGroups& Context::groups() { return state_->groups; }

void Context::SeedStep() {
  // Stream 0 of the seed is for setup. A training function may build another model after it has
  // prepared one. That model draws from the stream of the next step. The number of models is part
  // of the key, so the step does not draw the same numbers again.
  const std::uint64_t stream =
      trainable::Key(seed(), static_cast<std::uint64_t>(step()) + 1, rank());
  at::manual_seed(trainable::Key(stream, state_->prepared_models));
}

void Context::NotePreparedModel() {
  if (state_->seeds_after_setup) return;
  ++state_->prepared_models;
  SeedStep();
}

void Context::SeedAfterSetup() { state_->seeds_after_setup = true; }

void Context::NoteFirstOptimizerStep() {
  if (std::exchange(state_->first_step_noted, true)) return;
  state_->channel.Send(ToLine(channel::Progress{0}));
  if (rank() == 0) state_->WarnOfUnreadParameters();
}

void Context::Finish() {
  state_->saver.Drain();
  state_->channel.Leave();
  // After a `done`, the executor waits only briefly for ranks that it has not told to leave. In
  // that case, `done` is sent only after all ranks have called Leave().
  if (state_->has_left) state_->channel.Send(ToLine(channel::Done{}));
  // Other ranks see a rank that closes its connections early as a failure.
  state_->groups.Leave();
  if (!state_->has_left) state_->channel.Send(ToLine(channel::Done{}));
}

}  // namespace attune::inline sdk
