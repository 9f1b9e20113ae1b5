#include <signal.h>

#include <algorithm>
#include <set>
#include <utility>

#include "executor/gang/blame.h"
#include "executor/gang/folders.h"
#include "executor/gang/gang.h"
#include "executor/processes/process_group.h"
#include "system/files.h"

namespace attune::gang {
namespace {

uint64_t FreeBytes(const std::filesystem::path& folder) {
  std::error_code failed;
  const std::filesystem::space_info space = std::filesystem::space(folder, failed);
  return failed ? 0 : space.available;
}

// A sentence about the processes that the ranks left running in the background.
std::string DescribeKilled(size_t count) {
  return (count == 1 ? "1 process" : std::to_string(count) + " processes") +
         " still ran after the command had ended, so Attune killed them; make the command wait for "
         "the processes that it starts";
}

}  // namespace

// Keeps symptoms_ ordered by the time when ranks ended. A launcher may report ends in a different
// order, but all are reported before the failure is described.
Symptom& Gang::SymptomOf(const Rank& rank) {
  const auto known = std::ranges::find(symptoms_, rank.slot().rank, &Symptom::rank);
  if (known != symptoms_.end()) return *known;
  const auto seen_at = rank.ended_at().value_or(Loop::Clock::now());
  const auto next = std::ranges::upper_bound(symptoms_, seen_at, {}, &Symptom::seen_at);
  return *symptoms_.insert(next, Symptom{.rank = rank.slot().rank, .seen_at = seen_at});
}

void Gang::JudgeSymptoms() {
  if (phase_ == Phase::kEnding || phase_ == Phase::kGone) return;
  if (ended_by_signal_) return;
  const Symptom& culprit = FindCulprit(symptoms_);
  if (culprit.exit && (culprit.exit->signal == SIGTERM || culprit.exit->signal == SIGKILL))
    return EndAfterLeaveGrace({});
  if (culprit.exit && (!culprit.lost_peer || !HasRunningRank())) return End(Outcome::kFailed, {});
  const GangTiming& timing = services_.timing;
  const bool is_leaving = std::ranges::any_of(
      ranks_, [](const auto& rank) { return rank->is_running() && rank->leaving(); });
  const auto length = !culprit.lost_peer ? timing.failure_grace
                      : is_leaving       ? timing.leaving_grace
                                         : timing.victim_grace;
  if (grace_ && grace_length_ == length) return;
  grace_length_ = length;
  grace_ = services_.loop.CallAfter(length, [this] { End(Outcome::kFailed, {}); });
}

// The rank that exited first with status 0; nullopt: none did.
std::optional<int> Gang::FirstExited() const {
  const Rank* first = nullptr;
  for (const auto& rank : ranks_) {
    if (!rank->exit() || !rank->exit()->ok()) continue;
    if (first == nullptr || rank->ended_at() < first->ended_at()) first = rank.get();
  }
  return first == nullptr ? std::nullopt : std::optional(first->slot().rank);
}

// When a batch system ends a job, it signals all processes, including the executor. The executor
// then cancels the gang within the grace, and the trial has not failed.
void Gang::EndAfterLeaveGrace(std::optional<Failure> failure) {
  if (ended_by_signal_ || phase_ == Phase::kEnding || phase_ == Phase::kGone) return;
  ended_by_signal_ = true;
  if (executor_leaves_soon_) return Cancel(CancelReason::kLeaving);
  if (services_.timing.leave_grace.count() == 0) return End(Outcome::kFailed, std::move(failure));
  grace_ = services_.loop.CallAfter(
      services_.timing.leave_grace,
      [this, failure = std::move(failure)] { End(Outcome::kFailed, failure); });
}

// If the attempt has reported nothing, records a possible reason. A program without ATTUNE_*
// variables only prints its reports. A program in the background is killed when the command ends.
void Gang::ExplainSilence() {
  if (reported_ || spec_.SpansHosts()) return;
  const bool any_spoke = std::ranges::any_of(ranks_, &Rank::has_spoken);
  const size_t background = leftovers_.FindRemaining(group_, cgroup_.get()).size();
  if (background > 0) {
    silence_reason_ = DescribeKilled(background);
    if (const auto log = OpenLog(RankLog(spec_.attempt_dir, 0)); log.ok())
      WriteAt(log.value().get(), "\n[attune: " + silence_reason_ + "]\n", 0);
  }
  if (any_spoke) return;
  silence_reason_ = "none of its processes has sent Attune anything" +
                    (silence_reason_.empty() ? "" : "; " + silence_reason_) +
                    "; check that it calls attune.report and keeps its ATTUNE_* variables, which "
                    "`env -i` clears";
  if (background == 0)
    silence_reason_ += ", and that its command waits for the processes that it starts";
}

bool Gang::HasRunningRank() const {
  return std::ranges::any_of(ranks_, [](const auto& rank) { return rank->is_running(); });
}

void Gang::Fail(FailureKind kind, int rank, std::string message) {
  End(Outcome::kFailed, Failure{.kind = kind, .rank = rank, .message = std::move(message)});
}

// A full disk is always the host's failure, whatever operation has failed.
void Gang::FailToStart(FailureKind kind, int rank, const Error& error) {
  const bool disk_full = error.code == ErrorCode::kStorageFull;
  const std::string who = rank < 0 ? "" : "rank " + std::to_string(rank) + " cannot start: ";
  End(Outcome::kFailed, Failure{.kind = disk_full ? FailureKind::kHost : kind,
                                .rank = rank,
                                .message = who + error.message,
                                .disk_full = disk_full});
}

void Gang::Cancel(CancelReason reason) {
  switch (reason) {
    case CancelReason::kLeavingSoon:
      executor_leaves_soon_ = true;
      if (!ended_by_signal_) return;
      [[fallthrough]];
    case CancelReason::kLeaving:
      return EndWithGrace(Outcome::kFailed,
                          Failure{.kind = FailureKind::kLease,
                                  .message = "its executor was stopped and ended the gang"});
    case CancelReason::kUnwanted:
      return EndWithGrace(Outcome::kCancelled, {});
    case CancelReason::kFailedElsewhere:
      EndGrace();
      return End(Outcome::kCancelled, {});
    case CancelReason::kLeaseLost:
      EndGrace();
      return Fail(FailureKind::kLease, -1,
                  "the executor heard nothing from the server for longer than its lease and ended "
                  "the gang");
  }
}

void Gang::End(Outcome outcome, std::optional<Failure> failure) {
  if (!BeginEnd(outcome, std::move(failure))) return;
  KillAll();
}

// There is no grace while ranks are starting, because they have nothing to save yet.
void Gang::EndWithGrace(Outcome outcome, std::optional<Failure> failure) {
  if (phase_ == Phase::kStarting || spec_.grace.count() == 0)
    return End(outcome, std::move(failure));
  if (!BeginEnd(outcome, std::move(failure))) return;
  grace_ = services_.loop.CallAfter(spec_.grace, [this] { EndGrace(); });
  // A second SIGTERM might interrupt a rank that saves after the first one.
  if (ended_by_signal_) return;
  for (const auto& rank : ranks_) rank->Terminate();
  TerminateLeftovers();
}

// Runs once for all ranks that end in one turn of the loop, because it reads every process of the
// host.
void Gang::TerminateLeftovers() {
  if (!has_grace() || ended_by_signal_ || std::exchange(looks_for_leftovers_, true)) return;
  services_.loop.Post([this] {
    looks_for_leftovers_ = false;
    if (!has_grace()) return;
    std::set<int> running;
    for (const auto& rank : ranks_) {
      if (rank->is_running()) running.insert(rank->slot().rank);
    }
    leftovers_.Terminate(group_, cgroup_.get(), running);
  });
}

// Returns false if the end had begun before.
bool Gang::BeginEnd(Outcome outcome, std::optional<Failure> failure) {
  if (phase_ == Phase::kEnding || phase_ == Phase::kGone) return false;
  phase_ = Phase::kEnding;
  outcome_ = outcome;
  failure_ = std::move(failure);
  grace_.Reset();
  stall_.Reset();
  laggards_.Reset();
  // Posted, because the caller may be a rank in the middle of its work. The post that destroys this
  // gang comes later.
  services_.loop.Post([this] { ConcludeIfGone(); });
  return true;
}

void Gang::EndGrace() {
  if (!has_grace()) return;
  grace_.Reset();
  leftovers_.StopWaiting();
  KillAll();
  ConcludeIfGone();
}

void Gang::KillAll() {
  for (const auto& rank : ranks_) rank->Kill();
  if (group_ != 0) KillGroup(group_);
}

void Gang::ConcludeIfGone() {
  if (phase_ != Phase::kEnding || HasRunningRank() || forks_pending_ > 0) return;
  if (!AreContainersRemoved()) return;
  if (group_ == 0) return Conclude();

  // Processes that the ranks have started end with them.
  const bool all_gone = has_grace() ? leftovers_.AreGone(group_, cgroup_.get())
                                    : leftovers_.KillRemaining(group_, cgroup_.get());
  if (all_gone) Conclude();
}

bool Gang::has_child(pid_t pid) const {
  return std::ranges::any_of(ranks_, [pid](const auto& rank) { return rank->pid() == pid; }) ||
         std::ranges::any_of(containers_,
                             [pid](const auto& each) { return each.removal.pid == pid; });
}

void Gang::Conclude() {
  phase_ = Phase::kGone;
  grace_.Reset();
  TrimLogs();
  const uint64_t unfinished_bytes = DiscardUnfinished();
  if (group_ != 0) {
    ReapGroup(group_);
    services_.guard.Remove(group_);
  }
  Ended ended{.outcome = outcome_, .failure = std::nullopt, .silence = std::move(silence_reason_)};
  if (outcome_ == Outcome::kFailed) {
    ended.failure =
        failure_ ? std::move(*failure_) : DescribeFailure(FindCulprit(symptoms_), FirstExited());
    BlameEngine(*ended.failure);
    if (ended.failure->rank >= 0) {
      ended.failure->log_tail = LogTail(RankLog(spec_.attempt_dir, ended.failure->rank));
    } else if (launcher_ && !launcher_->death().empty()) {
      ended.failure->log_tail = LogTail(launcher_->log());
    }
    ended.failure->match = FindInFailure(*ended.failure);
    if (ended.failure->disk_full)
      ended.failure->room_bytes = FreeBytes(spec_.checkpoint_dir) + unfinished_bytes;
  }
  Emit(std::move(ended));
  services_.gone(spec_.attempt);
}

// Deletes files that killed or failed ranks have left. Returns the size of unfinished checkpoints
// in bytes.
uint64_t Gang::DiscardUnfinished() {
  uint64_t bytes = 0;
  if (!services_.discard) return bytes;
  if (const auto fetched = FetchedFolder(spec_)) services_.discard(*fetched);
  for (std::filesystem::path& unfinished : UnfinishedCheckpoints(spec_)) {
    bytes += TotalFileBytes(unfinished);
    services_.discard(std::move(unfinished));
  }
  return bytes;
}

// Searches the log of the failed rank before the others.
LogMatch Gang::FindInFailure(const Failure& failure) const {
  std::vector<std::filesystem::path> logs;
  if (failure.rank >= 0) logs.push_back(RankLog(spec_.attempt_dir, failure.rank));
  for (const auto& rank : ranks_) {
    if (rank->slot().rank != failure.rank)
      logs.push_back(RankLog(spec_.attempt_dir, rank->slot().rank));
  }
  // Also search the rank's own error text: a pattern may be anchored at its beginning.
  std::string message = failure.message;
  if (!failure_ && !symptoms_.empty()) message = FindCulprit(symptoms_).error + '\n' + message;
  return FindLogMatch(spec_.program.log_patterns, message, logs);
}

}  // namespace attune::gang
