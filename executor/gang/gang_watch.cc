// How a gang watches its ranks: silence that is too long, ranks that wait for other ranks, and
// ranks that finish late.

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "executor/gang/gang.h"

namespace attune::gang {
namespace {

using TimePoint = Loop::Clock::time_point;

std::string Milliseconds(std::chrono::milliseconds duration) {
  return std::to_string(duration.count()) + " ms";
}

std::string Name(const Rank& rank) { return "rank " + std::to_string(rank.slot().rank); }

}  // namespace

// ---- what ranks say about themselves

// A rank that sends a message is neither silent nor waiting. Ranks ahead of it may have waited for
// it.
void Gang::ResetSilence(Rank& rank) {
  rank.set_waiting({});
  if (rank.silent_until() == TimePoint{}) return;
  rank.ExpectSilence({});
  ExcuseRanksAheadOf(rank);
}

void Gang::ExcuseRanksAheadOf(const Rank& rank) {
  for (const auto& other : ranks_) {
    if (other->step() > rank.step()) other->ExcuseSilence();
  }
}

void Gang::Handle(Rank& rank, const channel::Progress& progress) {
  ExcuseRanksAheadOf(rank);
  rank.set_step(std::max(rank.step(), progress.step));
  const int number = rank.slot().rank;
  if (std::ranges::find(stepped_, number) != stepped_.end()) return;
  stepped_.push_back(number);
  if (stepped_.size() == ranks_.size()) Emit(FirstStep{});
}

void Gang::Handle(Rank& rank, const channel::Heartbeat& heartbeat) {
  rank.ExpectSilence(heartbeat.silence);
}

// A program that has never written to its channel may not know it, so its silence means nothing. A
// program that is built on the SDK does know it.
bool Gang::UsesChannel() const {
  return built_on_sdk_ ||
         std::ranges::any_of(ranks_, [](const auto& r) { return r->has_spoken(); });
}

// ---- ranks that wait for others

void Gang::Handle(Rank& rank, const channel::Waiting& waiting) {
  rank.set_waiting(waiting);
  CheckWait(rank);
}

// The verdict for rank 0 at this step; nullopt: rank 0 has not finished the step.
std::optional<Action> Gang::ActionAt(int64_t step) const {
  const Rank* zero = RankZero();
  if (zero == nullptr) return std::nullopt;
  if (told_to_leave_ && step >= zero->step()) return leave_action_;
  if (step <= zero->step()) return Action::kContinue;
  return std::nullopt;
}

void Gang::CheckWaits() {
  for (const auto& rank : ranks_) CheckWait(*rank);
}

// If a rank waits for a rank that has left, sends it the verdict or fails the gang. No other rank
// can answer it.
void Gang::CheckWait(Rank& rank) {
  if (phase_ != Phase::kRunning || !rank.is_running() || !rank.waiting()) return;
  const channel::Waiting waiting = *rank.waiting();
  for (const auto& other : ranks_) {
    const bool is_awaited =
        std::ranges::find(waiting.ranks, other->slot().rank) != waiting.ranks.end();
    const auto left_from = is_awaited ? other->CountsAsLeftFrom() : std::nullopt;
    if (!left_from) continue;
    const auto action = other->slot().rank == 0 ? ActionAt(waiting.step) : std::nullopt;
    if (action) {
      rank.set_waiting({});
      return rank.Send(ToLine(Verdict{.step = waiting.step, .action = *action}));
    }
    if (const TimePoint now = Loop::Clock::now(); now < *left_from) {
      next_check_ = services_.loop.CallAfter(*left_from - now, [this] { CheckWaits(); });
      continue;
    }
    return Fail(FailureKind::kExit, other->slot().rank,
                (other->exit() ? Name(*other) + " has exited with status 0, and "
                               : "the program of " + Name(*other) + " has left, and ") +
                    Name(rank) + " waits for it in a report at step " +
                    std::to_string(waiting.step) +
                    "; let every rank report equally often, or rank 0 alone");
  }
}

// ---- ranks that are silent

// The time until which the silence of a rank is excused: by the rank itself, by a verdict, or by a
// rank behind it that has announced its silence.
TimePoint Gang::ExcusedUntil(const Rank& rank) const {
  TimePoint until = std::max({resumed_at_, rank.silent_until(), rank.excused_until()});
  for (const auto& other : ranks_) {
    if (other->is_running() && other->step() < rank.step())
      until = std::max(until, other->silent_until());
  }
  return until;
}

bool Gang::IsWaiting(const Rank& rank) const {
  if (!rank.waiting()) return false;
  // Ranks that wait for one another count as stalled.
  return std::ranges::any_of(ranks_, [&](const auto& other) {
    const std::vector<int>& awaited = rank.waiting()->ranks;
    return other->is_running() && !other->waiting() &&
           std::ranges::find(awaited, other->slot().rank) != awaited.end();
  });
}

// A rank that never reports is always silent; then only rank 0 shows whether the gang has stalled.
bool Gang::LeavesReportsToRankZero(const Rank& rank) const {
  const Rank* zero = RankZero();
  return &rank != zero && rank.step() < 0 && zero != nullptr && zero->is_running() &&
         zero->step() >= 0;
}

bool Gang::IsWatched(const Rank& rank) const {
  return rank.is_running() && !rank.is_reading_paused() && !IsWaiting(rank) &&
         !LeavesReportsToRankZero(rank);
}

void Gang::WatchForStall() {
  if (phase_ != Phase::kRunning || waiting_at_ || spec_.stall_timeout.count() == 0) return;
  // A host without rank 0 cannot know whether rank 0 waits and the other ranks wait for it.
  if (!spec_.HasRankZero()) return;
  const TimePoint now = Loop::Clock::now();
  Loop::Clock::duration left = spec_.stall_timeout;
  if (UsesChannel()) {
    for (const auto& rank : ranks_) {
      if (!IsWatched(*rank)) continue;
      const auto silent_for = now - std::max(rank->last_heard(), ExcusedUntil(*rank));
      left = std::min(left, spec_.stall_timeout - silent_for);
      if (silent_for < spec_.stall_timeout) continue;
      return Fail(
          FailureKind::kStall, rank->slot().rank,
          Name(*rank) + " made no progress for " + Milliseconds(spec_.stall_timeout) +
              " (stall_timeout)" +
              (spec_.SpansHosts() ? "; it may have waited for a rank on another host" : ""));
    }
  }
  stall_ = services_.loop.CallAfter(left, [this] { WatchForStall(); });
}

// ---- ranks that are late to finish

// Whether the rank can no longer change the outcome, because rank 0 was told to stop or to pause.
bool Gang::IsOutcomeDecided(const Rank& rank) const {
  return told_to_leave_ && rank.slot().rank != 0;
}

// When rank 0 has exited as told, the outcome is decided. Ranks that never report do not learn it,
// and rank 0's process may run after its `done`. So all of them are ended after a timeout.
void Gang::OnRankZeroLeft() {
  if (!told_to_leave_ || phase_ != Phase::kRunning || laggards_are_ended_) return;
  laggards_are_ended_ = true;
  laggards_ = services_.loop.CallAfter(services_.timing.follow_timeout,
                                       [this] { EndWithGrace(Outcome::kFinished, {}); });
}

void Gang::OnFinished() {
  if (first_finish_) return;
  first_finish_ = Loop::Clock::now();
  WatchForLaggards();
}

void Gang::WatchForLaggards() {
  if (phase_ != Phase::kRunning || waiting_at_ || laggards_are_ended_) return;
  const auto timeout = std::max(services_.timing.finish_timeout, spec_.stall_timeout);
  const TimePoint now = Loop::Clock::now();
  Loop::Clock::duration left = timeout;
  for (const auto& rank : ranks_) {
    if (!rank->is_running() || rank->is_reading_paused()) continue;
    const auto silent_for =
        now - std::max({rank->last_heard(), ExcusedUntil(*rank), *first_finish_});
    left = std::min(left, timeout - silent_for);
    if (silent_for < timeout) continue;
    if (told_to_leave_) return End(Outcome::kFinished, {});
    return Fail(
        FailureKind::kStall, rank->slot().rank,
        Name(*rank) + " still runs " + Milliseconds(timeout) + " after the first rank finished");
  }
  laggards_ = services_.loop.CallAfter(left, [this] { WatchForLaggards(); });
}

}  // namespace attune::gang
