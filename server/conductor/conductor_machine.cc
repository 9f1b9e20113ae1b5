#include "server/conductor/conductor_machine.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <utility>

#include "base/result.h"
#include "core/state/replay.h"
#include "core/state/snapshot.h"

namespace attune::server {

namespace {

// Whether the fact is about a trial that has ended or has left memory.
bool IsOfEndedTrial(const RecordFact& command, const State& state) {
  const AttemptId id = std::visit([](const auto& fact) { return fact.attempt; }, command.fact);
  const Trial* trial = state.Find(id.trial);
  return trial == nullptr || HasEnded(trial->state);
}

// Whether a command ends something or frees space, or prevents that something is lost.
bool EndsOrFrees(const Command& command, const State& state) {
  if (const auto* fact = std::get_if<RecordFact>(&command)) return IsOfEndedTrial(*fact, state);
  return std::holds_alternative<KillSweep>(command) || std::holds_alternative<KillTrial>(command) ||
         std::holds_alternative<DeleteSweep>(command) ||
         std::holds_alternative<UndeleteSweep>(command) ||
         std::holds_alternative<DropCheckpoint>(command) ||
         std::holds_alternative<LoseExecutor>(command) ||
         std::holds_alternative<RecordRemoval>(command) ||
         std::holds_alternative<RecordStored>(command) ||
         std::holds_alternative<RecordSweepRemoval>(command);
}

// A duration as 3 s, 5 min, 7 h or 12 days.
std::string SpanText(int64_t us) {
  const int64_t seconds = us / 1'000'000;
  if (seconds < 120) return std::to_string(seconds) + " s";
  if (seconds < 7200) return std::to_string(seconds / 60) + " min";
  if (seconds < 172'800) return std::to_string(seconds / 3600) + " h";
  return std::to_string(seconds / 86'400) + " days";
}

}  // namespace

Status ConductorMachine::Start(Time clock, const Progress& read) {
  if (Status restored = Restore(read); !restored.ok()) return restored;
  StartClock(clock);
  PublishState();
  for (Listener* listener : listeners_) listener->OnStarted(brain());
  return {};
}

void ConductorMachine::StartClock(Time clock) {
  const State& state = brain().state();
  ahead_us_ = -state.clock_offset_us;
  if (state.last_seq.value == 0) return;
  const int64_t gap_us = LogTime(clock).us - state.last_time.us;
  if (gap_us >= 0 && gap_us <= kClockGapMaxUs) return;
  ahead_us_ = state.last_time.us - clock.us;
  if (gap_us < 0 && gap_us >= -kClockToleranceUs) return;
  adjustment_ =
      AdjustClock{-ahead_us_, gap_us > 0 ? "at the start of the server the clock is " +
                                               SpanText(gap_us) + " after the last event"
                                         : "at the start of the server the clock is " +
                                               SpanText(-gap_us) + " before the last event"};
}

void ConductorMachine::SetWallClockOffset(int64_t ahead_us) {
  const int64_t change_us = ahead_us - wall_ahead_us_;
  if (std::abs(change_us) < kClockToleranceUs) return;
  wall_ahead_us_ = ahead_us;
  adjustment_ =
      AdjustClock{ahead_us - ahead_us_, "the clock was set " + SpanText(std::abs(change_us)) +
                                            (change_us > 0 ? " forward" : " back")};
}

// Runs first in a batch, so that the other events of the batch already show the right time.
void ConductorMachine::AdjustClockIfDue(Time now, std::vector<Event>& events) {
  if (!adjustment_) return;
  if (adjustment_->offset_us == brain().state().clock_offset_us) return adjustment_.reset();
  [[maybe_unused]] const auto refused = Decide(*adjustment_, "", now, events);
}

Status ConductorMachine::Restore(const Progress& read) {
  for (EventSeq at_most{std::numeric_limits<int64_t>::max()};;) {
    auto decider = options_.make_decider();
    const auto snapshot = options_.store->ReadSnapshot(at_most);
    const bool has_snapshot = snapshot.ok() && *snapshot;
    const EventSeq after = has_snapshot ? (*snapshot)->seq : EventSeq(0);
    const bool loaded = !has_snapshot || Load(decider->brain(), **snapshot);
    const Status replayed = loaded ? Replay(decider->brain(), after, read) : Status();
    if (loaded && replayed.ok()) {
      decider_ = std::move(decider);
      snapshot_seq_ = after;
      return {};
    }
    if (!has_snapshot) return replayed;  // there is no older snapshot to try
    at_most = EventSeq(after.value - 1);
  }
}

bool ConductorMachine::Load(Brain& brain, const Snapshot& snapshot) const {
  if (!brain.Load(snapshot.bytes).ok()) return false;
  return std::ranges::all_of(AllEndedSweepData(brain.state()), [&](const EndedSweepData& part) {
    return std::ranges::any_of(snapshot.ended,
                               [&](const EndedSweepData& kept) { return kept.Names(part); });
  });
}

Status ConductorMachine::Replay(Brain& brain, EventSeq after, const Progress& read) const {
  const EventSeq last = options_.store->LastSeq();
  Status replayed;
  const Status whole = options_.store->Read(after, [&](const Event& event) {
    if (replayed.ok()) replayed = CanReplay(*brain.state().algorithms, event);
    if (replayed.ok()) replayed = RestoreEnded(brain, MissingData(brain.state(), event));
    if (!replayed.ok()) return;
    brain.Replay(event);
    if (read) read(event.seq, last);
  });
  return whole.ok() ? replayed : whole;
}

Status ConductorMachine::RestoreEnded(Brain& brain, std::optional<EndedSweepData> lacking) const {
  if (!lacking) return {};
  auto bytes = options_.store->ReadEnded(*lacking);
  if (!bytes.ok()) return bytes.error();
  lacking->bytes = std::move(bytes).value();
  return brain.RestoreEndedSweep(*std::move(lacking));
}

std::optional<Time> ConductorMachine::NextStep(Time clock) const {
  if (stalled_) return probe_at_;
  if (has_more_) return clock;
  const auto due = brain().Due(advanced_at_);
  if (!due) return std::nullopt;
  return Time{due->us - ahead_us_};
}

// A snapshot only makes the next start faster. If it cannot be saved, the next start reads the log.
void ConductorMachine::SaveSnapshot() {
  if (last_seq() <= snapshot_seq_) return;
  snapshot_seq_ = last_seq();
  const State& state = brain().state();
  if (options_.store->SaveSnapshot({snapshot_seq_, SaveState(state), AllEndedSweepData(state)})
          .ok())
    decider_->brain().ReleaseEndedSweeps();
}

bool ConductorMachine::DoBackgroundWork() {
  if (stalled_) return false;
  if (options_.store->NeedsSnapshot()) SaveSnapshot();
  return options_.store->DoBackgroundWork();
}

Status ConductorMachine::Step(std::vector<Submission> batch, Time clock) {
  if (stalled_) Probe(clock);
  std::vector<Event> events;
  std::vector<Decision> decided = Decide(batch, LogTime(clock), events);
  Result<bool> appended = Append(events, clock);
  if (appended.ok() && !*appended && has_reserve_) {
    events.clear();
    decided = Decide(batch, LogTime(clock), events);
    appended = Append(events, clock);
  }
  if (!appended.ok()) return appended.error();
  Answer(batch, decided, events, !*appended);
  if (*appended && !events.empty()) {
    for (Listener* listener : listeners_) listener->OnDurable(events, brain());
  }
  if (!stalled_ && last_seq().value - snapshot_seq_.value >= options_.snapshot_events)
    SaveSnapshot();
  return {};
}

std::vector<ConductorMachine::Decision> ConductorMachine::Decide(
    const std::vector<Submission>& batch, Time now, std::vector<Event>& events) {
  size_t commands = 0;
  for (const Submission& submission : batch) commands += submission.commands.size();
  if (!stalled_) AdjustClockIfDue(now, events);
  std::vector<Decision> all;
  all.reserve(commands);
  events.reserve(commands);  // most commands cause one event
  for (const Submission& submission : batch) {
    bool proceeds = true;
    for (const Command& command : submission.commands) {
      // Decides each command as if it had come alone, so first applies limits that the one before
      // has reached.
      const bool chained = submission.done && &command != &submission.commands.front();
      if (chained && proceeds) Advance(now, events);
      Decision& decided = all.emplace_back(events.size());
      decided.deferred = proceeds && !MayBeStored(command, submission.ends_only);
      if (proceeds && !decided.deferred)
        decided.refused = Decide(command, submission.actor, now, events);
      decided.end = events.size();
      proceeds = !submission.done || decided.begin < decided.end;
    }
  }
  if (!stalled_ || has_reserve_) Advance(now, events);
  return all;
}

bool ConductorMachine::MayBeStored(const Command& command, bool ends_only) const {
  if (stalled_ && !has_reserve_) return false;
  if (!stalled_ && !ends_only) return true;
  return EndsOrFrees(command, brain().state());
}

void ConductorMachine::Advance(Time now, std::vector<Event>& events) {
  advanced_at_ = now;
  Brain::Portion following = decider_->Advance(now);
  std::ranges::move(following.events, std::back_inserter(events));
  has_more_ = following.more;
}

std::optional<Error> ConductorMachine::Decide(const Command& command, const std::string& actor,
                                              Time now, std::vector<Event>& events) {
  Brain& brain = decider_->brain();
  const std::optional<EndedSweepData> lacking = MissingData(brain.state(), command);
  if (const Status whole = RestoreEnded(brain, lacking); !whole.ok()) return whole.error();
  auto led_to = decider_->Execute(command, now, actor);
  // no effect if the trial's sweep was opened again
  if (lacking) brain.ReleaseEndedSweeps(lacking->sweep);
  if (!led_to.ok()) return led_to.error();
  std::ranges::move(*led_to, std::back_inserter(events));
  return std::nullopt;
}

// If the store refuses, memory returns to the state on disk. If that state is unknown or
// unreadable, this process no longer knows what is true and must end.
Result<bool> ConductorMachine::Append(std::span<const Event> events, Time clock) {
  if (events.empty()) return true;
  const Status written =
      stalled_ ? options_.store->AppendFromReserve(events) : options_.store->Append(events);
  if (!written.ok()) {
    if (written.error().code == ErrorCode::kUnsynced) return written.error();
    if (Status restored = Restore({}); !restored.ok()) return restored.error();
    has_reserve_ = !stalled_ && written.error().code == ErrorCode::kStorageFull;
    stalled_ = written.error();
    has_more_ = true;
    probe_at_ = Time{clock.us + kProbeIntervalUs};
  }
  PublishState();
  return written.ok();
}

void ConductorMachine::Probe(Time clock) {
  if (clock < probe_at_) return;
  probe_at_ = Time{clock.us + kProbeIntervalUs};
  if (!options_.store->Probe().ok()) return;
  stalled_.reset();
  PublishState();
}

void ConductorMachine::Answer(const std::vector<Submission>& batch,
                              const std::vector<Decision>& decided, std::span<const Event> events,
                              bool dropped) {
  auto next = decided.begin();
  for (const Submission& submission : batch) {
    const std::span<const Decision> own(next, submission.commands.size());
    next += std::ssize(own);
    const auto is_deferred = [dropped](const Decision& each) { return dropped || each.deferred; };
    if (submission.stored) {
      const bool some_deferred = dropped || std::ranges::any_of(own, is_deferred);
      submission.stored(some_deferred ? Status(*stalled_) : Status());
    }
    for (const Decision& each : own) {
      if (!submission.done) break;
      if (is_deferred(each)) {
        submission.done(*stalled_);
      } else if (each.refused) {
        submission.done(*each.refused);
      } else {
        submission.done(events.subspan(each.begin, each.end - each.begin));
      }
    }
    if (submission.look) submission.look(brain());
  }
}

void ConductorMachine::PublishState() {
  const Status writable = stalled_ ? Status(*stalled_) : Status();
  for (Listener* listener : listeners_) listener->OnState(last_seq(), writable);
}

}  // namespace attune::server
