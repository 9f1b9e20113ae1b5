#include "executor/gang/gang.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "channel/line_reader.h"
#include "executor/gang/folders.h"
#include "logging/log.h"

namespace attune::gang {
namespace {

int64_t WallClockUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool IsLoopback(const std::string& host) { return host == "localhost" || host.starts_with("127."); }

}  // namespace

Gang::Gang(const Services& services, GangSpec spec)
    : services_(services),
      spec_(std::move(spec)),
      leftovers_({services.loop, services.is_known, services.other_gangs_run}, spec_.attempt,
                 [this] { ConcludeIfGone(); }),
      last_step_(spec_.resume ? spec_.resume->step : -1),
      milestone_(spec_.milestone) {}

void Gang::OnMessage(Rank& rank, channel::FromRank message) {
  if (phase_ == Phase::kGone) return;
  ResetSilence(rank);
  std::visit([&](auto& each) { Handle(rank, std::move(each)); }, message);
}

void Gang::OnBadLine(Rank& rank, const std::string& problem) {
  const std::string who = "rank " + std::to_string(rank.slot().rank);
  Fail(FailureKind::kProtocol, rank.slot().rank, who + " wrote to its channel " + problem);
}

void Gang::Handle(Rank& rank, const channel::Rendezvous& rendezvous) {
  if (rank.slot().rank != 0) {
    return Fail(FailureKind::kProtocol, rank.slot().rank,
                "rank " + std::to_string(rank.slot().rank) + " sent a rendezvous; only rank 0 may");
  }
  if (spec_.SpansHosts() && rendezvous_) {
    return Fail(FailureKind::kProtocol, 0, "rank 0 sent a second rendezvous; it may send only one");
  }
  if (spec_.SpansHosts() && IsLoopback(rendezvous.host) && !IsLoopback(spec_.host.address)) {
    return Fail(FailureKind::kProtocol, 0,
                "rank 0 listens on " + rendezvous.host +
                    ", which other hosts cannot reach; it must listen on the `address` of its "
                    "start line, " +
                    spec_.host.address);
  }
  rendezvous_ = rendezvous;
  if (spec_.SpansHosts()) Emit(MakeSharedRendezvous());
  if (phase_ == Phase::kRunning) RelayRendezvous();
}

void Gang::SetRendezvous(const channel::Rendezvous& rank_zero) {
  if (rendezvous_) return;
  rendezvous_ = rank_zero;
  if (phase_ == Phase::kRunning) RelayRendezvous();
}

void Gang::RelayRendezvous() {
  const std::string line = ToLine(*rendezvous_);
  for (const auto& other : ranks_) {
    if (other->slot().rank != 0) other->Send(line);
  }
}

void Gang::Handle(Rank& rank, Report report) {
  if (log_reports_) {
    return Fail(FailureKind::kProtocol, rank.slot().rank,
                "rank " + std::to_string(rank.slot().rank) +
                    " sent a report over the channel, but reports are read from rank 0's output; "
                    "remove reports.pattern from the sweep file");
  }
  if (rank.slot().rank != 0) {
    return Fail(FailureKind::kProtocol, rank.slot().rank,
                "rank " + std::to_string(rank.slot().rank) + " sent a report; only rank 0 may");
  }
  AcceptReport(std::move(report));
}

void Gang::Handle(Rank& rank, Logged logged) {
  if (rank.slot().rank != 0) {
    return Fail(
        FailureKind::kProtocol, rank.slot().rank,
        "rank " + std::to_string(rank.slot().rank) + " has logged metrics; only rank 0 may");
  }
  if (!told_to_leave_ && !logged.metrics.empty()) Emit(NumberedLog{++logged_, std::move(logged)});
}

void Gang::AcceptReport(Report report) {
  const int64_t step = report.step;
  if (step <= last_step_) {
    return Fail(FailureKind::kProtocol, 0,
                "rank 0 sent a report at step " + std::to_string(step) + " after step " +
                    std::to_string(last_step_) + "; steps must increase");
  }
  const bool waits = RankZeroWaits(report);
  // The program was told to exit but still reports, perhaps because it catches all exceptions. Or
  // it did not wait for the verdict and does not wait now either.
  const bool is_late = verdict_ && verdict_->action != Action::kContinue && step > verdict_->step;
  if (told_to_leave_ || (is_late && !waits)) return EndWithGrace(Outcome::kFinished, {});
  last_step_ = step;
  reported_ = true;
  report.waits = waits;
  Emit(std::move(report));
  if (!waits) return;
  waiting_at_ = step;
  DeliverVerdict();
}

bool Gang::RankZeroWaits(const Report& report) const {
  // A milestone never lies beyond the current last step, which may be larger than spec_.max_step.
  const int64_t step = milestone_ > 0 ? milestone_ : spec_.max_step;
  // A program whose log is read cannot be asked to yield: its next report waits in any case.
  return report.waits.value_or((log_reports_ && yielding_) || (step > 0 && report.step >= step));
}

// Rank 0 knows nothing of verdicts and keeps running. What it prints is read after the verdict.
bool Gang::ReadLog() {
  while (phase_ == Phase::kRunning && !waiting_at_ && MayRead()) {
    Result<std::optional<Report>> next = log_reports_->Next();
    if (!next.ok()) {
      Fail(FailureKind::kProtocol, 0, next.error().message);
    } else if (next.value()) {
      AcceptReport(*std::move(next.value()));
    } else if (log_reports_->is_at_end()) {
      return true;
    } else {
      services_.loop.Post([this] { ResumeReadingLog(); });
      return false;
    }
  }
  return false;
}

void Gang::ResumeReadingLog() {
  if (!log_reports_) return;
  ReadLog();
  FinishIfAllLeft();
}

void Gang::Handle(Rank& rank, CheckpointSaved checkpoint) {
  if (rank.slot().rank != 0) {
    return Fail(FailureKind::kProtocol, rank.slot().rank,
                "rank " + std::to_string(rank.slot().rank) + " sent a checkpoint; only rank 0 may");
  }
  const auto place =
      spec_.checkpoint_dir / CheckpointFolder(checkpoint.step, spec_.attempt.attempt);
  if (std::filesystem::path(checkpoint.path).lexically_normal() != place) {
    return Fail(FailureKind::kProtocol, 0,
                "rank 0 sent the checkpoint " + channel::Quote(checkpoint.path) +
                    ", which is not at " + place.string());
  }
  checkpoint.path = place.string();
  Emit(std::move(checkpoint));
}

void Gang::Handle(Rank& rank, const channel::Leaving& leaving) {
  if (!rank.leaving() || rank.leaving()->empty()) rank.set_leaving(leaving.message);
  if (!symptoms_.empty()) JudgeSymptoms();
}

void Gang::Handle(Rank& rank, const channel::ErrorText& error) {
  if (IsOutcomeDecided(rank)) return;
  Symptom& symptom = SymptomOf(rank);
  // Ranks of a launcher share a symptom: the error of a cause replaces the error of a victim.
  if (symptom.error.empty() || (symptom.lost_peer && !error.lost_peer)) {
    symptom.error = error.message;
    symptom.lost_peer = error.lost_peer;
    symptom.disk_full = error.disk_full;
  }
  JudgeSymptoms();
}

void Gang::Handle(Rank& rank, const channel::Done&) {
  OnFinished();
  if (rank.slot().rank == 0) OnRankZeroLeft();
}

void Gang::OnExit(Rank& rank) {
  if (log_reports_ && rank.slot().rank == 0) {
    log_reports_->Close();
    ReadLog();
  }
  const ExitStatus& exit = *rank.exit();
  const bool by_us = rank.was_killed() && exit.signal == SIGKILL;
  const auto known = std::ranges::find(symptoms_, rank.slot().rank, &Symptom::rank);
  if (!by_us && !IsOutcomeDecided(rank) && (!exit.ok() || known != symptoms_.end())) {
    Symptom& symptom = SymptomOf(rank);
    symptom.exit = exit;
    const bool is_explained = !symptom.error.empty() && !symptom.lost_peer;
    if (!exit.ok() && !is_explained && rank.leaving() && !rank.leaving()->empty()) {
      symptom.error = *rank.leaving();
      symptom.lost_peer = false;
    }
  } else if (exit.ok()) {
    OnFinished();
    if (rank.slot().rank == 0) OnRankZeroLeft();
    CheckWaits();
  }
  if (!symptoms_.empty()) JudgeSymptoms();
  FinishIfAllLeft();
  TerminateLeftovers();
  ConcludeIfGone();
}

void Gang::OnUnexplained() {
  unexplained_ = services_.loop.CallAfter(services_.timing.explain_timeout, [this] {
    const bool hangs =
        std::ranges::any_of(ranks_, [](const auto& rank) { return rank->is_unexplained(); });
    if (hangs && launcher_) launcher_->OnHang();
  });
}

void Gang::FinishIfAllLeft() {
  if (phase_ != Phase::kRunning || HasRunningRank() || !symptoms_.empty() || ended_by_signal_)
    return;
  if (log_reports_ && !ReadLog()) return;  // resumed after the verdict or by ResumeReading()
  if (log_reports_ && !log_reports_->has_found_report()) {
    return Fail(FailureKind::kProtocol, 0,
                "rank 0 finished without printing a line that matches reports.pattern: " +
                    channel::Quote(spec_.program.report_pattern));
  }
  ExplainSilence();
  End(Outcome::kFinished, {});
}

void Gang::SetVerdict(const Verdict& verdict) {
  if (verdict.step <= delivered_step_) return;
  verdict_ = verdict;
  DeliverVerdict();
}

void Gang::DeliverVerdict() {
  Rank* rank = RankZero();
  if (phase_ != Phase::kRunning || !rank || !waiting_at_ || !verdict_) return;
  const Action action = verdict_->action;
  const bool goes_on = action == Action::kContinue;
  // A program that did not wait at the verdict's step is told to exit when it waits next.
  const bool is_late = !goes_on && verdict_->step < *waiting_at_;
  if (verdict_->step != *waiting_at_ && !is_late) return;
  verdict_->step = *waiting_at_;
  delivered_step_ = verdict_->step;
  milestone_ = verdict_->milestone;
  if (!log_reports_) rank->Send(ToLine(*verdict_));
  verdict_.reset();
  waiting_at_.reset();
  yielding_ = false;  // a verdict answers all earlier requests
  resumed_at_ = Loop::Clock::now();
  if (log_reports_ && !goes_on) return EndWithGrace(Outcome::kFinished, {});
  if (log_reports_) services_.loop.Post([this] { ResumeReadingLog(); });
  told_to_leave_ = !goes_on;
  leave_action_ = action;
  WatchForStall();
  if (told_to_leave_) OnFinished();
  if (first_finish_) WatchForLaggards();
}

void Gang::Yield() {
  if (std::exchange(yielding_, true) || phase_ != Phase::kRunning) return;
  SendYield();
}

void Gang::ResumeReading() {
  for (const auto& rank : ranks_) rank->ResumeReading();
  ResumeReadingLog();
}

void Gang::SendYield() {
  Rank* rank = RankZero();
  if (rank && !log_reports_) rank->Send(ToLine(channel::Yield{}));
  logging::Info("{} will wait for a verdict at its next report", ToString(spec_.attempt));
}

void Gang::Emit(decltype(Fact::what) what) {
  services_.facts(Fact{spec_.attempt, WallClockUs(), std::move(what)});
}

uint64_t Gang::TrimLogs() {
  uint64_t room = kAllIsRead;
  for (size_t i = 0; i < log_limits_.size(); ++i) {
    // Unread reports must stay in the log.
    const bool is_read = log_reports_ && ranks_[i]->slot().rank == 0;
    const Status trimmed = log_limits_[i].Trim(is_read ? log_reports_->position() : kAllIsRead);
    if (!trimmed.ok()) {
      logging::Warn("{}; the logs of {} grow without a limit", trimmed.error().message,
                    ToString(spec_.attempt));
      log_limits_.clear();
      return kAllIsRead;
    }
    room = std::min(room, log_limits_[i].room_bytes());
  }
  return room;
}

Rank* Gang::RankZero() const {
  const auto zero = std::ranges::find(ranks_, 0, [](const auto& r) { return r->slot().rank; });
  return zero == ranks_.end() ? nullptr : zero->get();
}

}  // namespace attune::gang
