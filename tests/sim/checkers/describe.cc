#include "tests/sim/checkers/describe.h"

#include <cstdio>

namespace attune::sim {
namespace {

std::string Text(int64_t number) { return std::to_string(number); }
std::string Text(Step step) { return std::to_string(step.value); }

std::string Text(const CheckpointId& id) {
  return ToString(id.trial) + " step " + Text(id.step) + " attempt " + Text(id.attempt);
}

std::string Text(const Config& config) {
  std::string text;
  for (const auto& [name, value] : config.entries()) text += " " + name + "=" + FormatValue(value);
  return text;
}

// The text in parentheses; empty if there is none.
std::string InParentheses(const std::string& reason) {
  return reason.empty() ? "" : " (" + reason + ")";
}

std::string Text(const Verdict& verdict) {
  std::string text(Name(verdict.kind));
  if (verdict.kind == VerdictKind::kExploit)
    text += " of trial " + std::to_string(verdict.donor.trial.number.value) + Text(verdict.config);
  return text + InParentheses(verdict.reason.rule + ": " + verdict.reason.text);
}

std::string Text(const Annotation& annotation) {
  std::string text;
  if (annotation.note) text += " note \"" + *annotation.note + '"';
  if (annotation.tags) {
    text += " tags";
    for (const std::string& tag : *annotation.tags) text += " " + tag;
  }
  return text;
}

struct Describer {
  std::string operator()(const SweepCreated& f) const {
    return ToString(f.sweep) + " created: " + f.spec->name + ", " + f.spec->searcher.name + ", " +
           f.spec->scheduler.name + ", " + Text(f.spec->gang.workers) + " ranks" +
           (f.spec->External() ? ", external" : "") + InParentheses(f.idempotency_key);
  }
  std::string operator()(const SweepPaused& f) const {
    return ToString(f.sweep) + " paused" + InParentheses(f.reason);
  }
  std::string operator()(const SweepResumed& f) const { return ToString(f.sweep) + " resumed"; }
  std::string operator()(const SweepEdited& f) const {
    std::string text;
    for (const std::string& change : f.changes) text += (text.empty() ? "" : ", ") + change;
    return ToString(f.sweep) + " edited: " + text;
  }
  std::string operator()(const SweepReopened& f) const {
    return ToString(f.sweep) + " reopened" + InParentheses(f.reason);
  }
  std::string operator()(const SweepStopping& f) const {
    return ToString(f.sweep) + " stopping as " + std::string(Name(f.outcome)) +
           InParentheses(f.reason);
  }
  std::string operator()(const SweepEnded& f) const {
    return ToString(f.sweep) + " ended: " + std::string(Name(f.state)) + InParentheses(f.reason);
  }
  std::string operator()(const SweepAnnotated& f) const {
    return ToString(f.sweep) + " annotated:" + Text(f.annotation);
  }
  std::string operator()(const SweepDeletionScheduled& f) const {
    return ToString(f.sweep) + " will be deleted";
  }
  std::string operator()(const SweepUndeleted& f) const { return ToString(f.sweep) + " stays"; }
  std::string operator()(const SweepDeleted& f) const { return ToString(f.sweep) + " deleted"; }
  std::string operator()(const SweepRemoved& f) const {
    return ToString(f.sweep) + " removed by " + f.executor;
  }
  std::string operator()(const SearchExhausted& f) const {
    return ToString(f.sweep) + " searcher exhausted";
  }
  std::string operator()(const ProposalBegun& f) const {
    return ToString(f.sweep) + " thinks of proposal " + Text(int64_t{f.proposal.value});
  }
  std::string operator()(const SearchWaits& f) const {
    return ToString(f.sweep) + " has thought, and waits" + InParentheses(f.reason);
  }
  std::string operator()(const TrialCreated& f) const {
    return ToString(f.trial) + " created by " + f.origin + ":" + Text(f.config) +
           InParentheses(f.idempotency_key);
  }
  std::string operator()(const TrialReopened& f) const {
    return ToString(f.record.id) + " reopened until " + Text(f.until) +
           (f.from_start ? " from the start" : "") + ", " + Text(std::ssize(f.record.checkpoints)) +
           " checkpoints" + InParentheses(f.reason);
  }
  std::string operator()(const AttemptAssigned& f) const {
    std::string text = ToString(f.attempt) + " assigned, epoch " + std::to_string(f.epoch.value) +
                       ", milestone " + Text(f.milestone);
    for (const RankSlot& slot : f.ranks) {
      text += ", " + slot.executor + ":" + Text(slot.cpus);
      for (int gpu : slot.gpus) text += " gpu" + Text(gpu);
      if (slot.gpu_percent < 100) text += " (" + Text(slot.gpu_percent) + " %)";
    }
    if (f.resume) text += ", from " + f.resume->path;
    return text + InParentheses(f.idempotency_key) + InParentheses(f.reason);
  }
  std::string operator()(const AttemptRenewed& f) const { return ToString(f.attempt) + " renewed"; }
  std::string operator()(const AttemptStarted& f) const { return ToString(f.attempt) + " started"; }
  std::string operator()(const AttemptFirstStep& f) const {
    return ToString(f.attempt) + " first step";
  }
  std::string operator()(const RendezvousOpened& f) const {
    return ToString(f.attempt) + " meets at " + f.rendezvous.address +
           (f.rendezvous.port == 0 ? "" : ", rank 0 at port " + std::to_string(f.rendezvous.port));
  }
  std::string operator()(const TrialReported& f) const {
    std::string text = ToString(f.attempt) + " reports step " + Text(f.report.step);
    for (const auto& [name, value] : f.report.metrics)
      text += ", " + name + " " + FormatReal(value);
    return text + (f.report.waits ? ", and waits" : "");
  }
  std::string operator()(const MetricsLogged& f) const {
    return ToString(f.attempt) + " logs for the " + std::to_string(f.number) + ". time, at step " +
           FormatReal(f.step);
  }
  std::string operator()(const TrialYielding& f) const {
    return ToString(f.trial) + " is to yield: " + Text(f.verdict);
  }
  std::string operator()(const TrialDecided& f) const {
    return ToString(f.attempt) + " at step " + Text(f.step) + ": " + Text(f.verdict) +
           ", milestone " + Text(f.milestone) + (f.cloned ? ", from " + (*f.cloned)->ref.path : "");
  }
  std::string operator()(const TrialPromoted& f) const {
    return ToString(f.trial) + " promoted" + (f.config ? " with" + Text(*f.config) : "") +
           (f.cloned ? ", from " + (*f.cloned)->ref.path : "") +
           InParentheses(f.reason.rule + ": " + f.reason.text);
  }
  std::string operator()(const TrialAnnotated& f) const {
    return ToString(f.trial) + " annotated:" + Text(f.annotation);
  }
  std::string operator()(const CheckpointSaved& f) const {
    return ToString(f.attempt) + " saved " + f.checkpoint.path;
  }
  std::string operator()(const CheckpointPinned& f) const {
    return Text(f.checkpoint) + (f.pinned ? " pinned" : " unpinned");
  }
  std::string operator()(const CheckpointDropped& f) const {
    return Text(f.checkpoint) + " dropped on " + f.executor + InParentheses(f.reason);
  }
  std::string operator()(const CheckpointRemoved& f) const {
    return Text(f.checkpoint) + " removed";
  }
  std::string operator()(const CheckpointStored& f) const {
    return Text(f.checkpoint) + (f.address.empty() ? " is not stored" : " is stored in ") +
           f.address + (f.only ? " alone" : "");
  }
  std::string operator()(const AttemptPartEnded& f) const {
    return ToString(f.attempt) + " ended on " + f.executor + ": " + std::string(Name(f.outcome)) +
           InParentheses(f.failure.message);
  }
  std::string operator()(const AttemptEnded& f) const {
    return ToString(f.attempt) + " ended: " + std::string(Name(f.outcome)) +
           InParentheses(f.failure.message);
  }
  std::string operator()(const TrialRequeued& f) const {
    return ToString(f.trial) + " requeued" + InParentheses(f.reason) + " not before " +
           Text(f.not_before.us);
  }
  std::string operator()(const TrialEnded& f) const {
    return ToString(f.trial) + " ended: " + std::string(Name(f.state)) + InParentheses(f.reason);
  }
  std::string operator()(const SlotsReserved& f) const {
    std::string text = f.executor + " reserved for " + ToString(f.sweep);
    for (const GangPart& part : f.parts) text += ", " + part.executor + ":" + Text(part.workers);
    return text + InParentheses(f.reason);
  }
  std::string operator()(const ReservationReleased& f) const {
    return ToString(f.sweep) + " lets its reservation go" + InParentheses(f.reason);
  }
  std::string operator()(const ExecutorJoined& f) const {
    return f.name + " joined as " + f.instance + ", incarnation " +
           std::to_string(f.incarnation.value) + ": " + Text(f.resources.cpus) + " CPUs, " +
           Text(f.resources.gpus) + " GPUs";
  }
  std::string operator()(const ExecutorLost& f) const {
    return f.name + " lost" + InParentheses(f.reason);
  }
  std::string operator()(const ExecutorDrained& f) const {
    return f.name + " drained" + (f.now ? " now" : "") + InParentheses(f.reason);
  }
  std::string operator()(const ExecutorResumed& f) const { return f.name + " resumed"; }
  std::string operator()(const ExecutorHealth& f) const {
    return f.name +
           (f.problem.empty() ? " is healthy" : " is unhealthy" + InParentheses(f.problem));
  }
  std::string operator()(const ExecutorQuarantined& f) const {
    return f.name + " quarantined" + InParentheses(f.reason);
  }
  std::string operator()(const ExecutorQuarantineEnded& f) const {
    return f.name + " readmitted" + InParentheses(f.reason);
  }
  std::string operator()(const ExecutorExcluded& f) const {
    return f.name + " excluded from " + ToString(f.sweep) + InParentheses(f.reason);
  }
  std::string operator()(const EnvironmentRecorded& f) const {
    return f.executor + " recorded the environment of " + ToString(f.sweep);
  }
  std::string operator()(const ExecutorForgotten& f) const {
    return f.name + " forgotten" + InParentheses(f.reason);
  }
  std::string operator()(const LogIdentified& f) const {
    return "the log is " + std::to_string(f.identity.value) + InParentheses(f.reason);
  }
  std::string operator()(const ClockAdjusted& f) const {
    return "the clock is off by " + std::to_string(f.offset_us) + " us" + InParentheses(f.reason);
  }
};

}  // namespace

std::string Describe(const Event& event) {
  constexpr int64_t kBeginUs = 1'700'000'000'000'000;  // start of virtual time
  char when[48];
  std::snprintf(when, sizeof(when), "%5llu %9.3f s  ",
                static_cast<unsigned long long>(event.seq.value),
                static_cast<double>(event.time.us - kBeginUs) * 1e-6);
  return when + std::visit(Describer{}, event.fact);
}

}  // namespace attune::sim
