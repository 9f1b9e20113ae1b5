#include "core/log/event.h"

#include <functional>

namespace attune {

std::string_view Name(SweepState state) {
  switch (state) {
    case SweepState::kRunning:
      return "running";
    case SweepState::kPaused:
      return "paused";
    case SweepState::kCompleted:
      return "completed";
    case SweepState::kStopped:
      return "stopped";
    case SweepState::kFailed:
      return "failed";
    case SweepState::kKilled:
      return "killed";
  }
  return "unknown";
}

std::string_view Name(TrialState state) {
  switch (state) {
    case TrialState::kPending:
      return "pending";
    case TrialState::kRunning:
      return "running";
    case TrialState::kPaused:
      return "paused";
    case TrialState::kCompleted:
      return "completed";
    case TrialState::kStopped:
      return "stopped";
    case TrialState::kFailed:
      return "failed";
    case TrialState::kKilled:
      return "killed";
  }
  return "unknown";
}

std::string_view Name(AttemptState state) {
  switch (state) {
    case AttemptState::kAssigned:
      return "assigned";
    case AttemptState::kRunning:
      return "running";
    case AttemptState::kEnded:
      return "ended";
  }
  return "unknown";
}

std::string_view Name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFinished:
      return "finished";
    case Outcome::kStopped:
      return "stopped";
    case Outcome::kPaused:
      return "paused";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kLost:
      return "lost";
    case Outcome::kKilled:
      return "killed";
  }
  return "unknown";
}

std::string_view Name(FailureKind kind) {
  switch (kind) {
    case FailureKind::kNone:
      return "none";
    case FailureKind::kExit:
      return "exit";
    case FailureKind::kSignal:
      return "signal";
    case FailureKind::kStall:
      return "stall";
    case FailureKind::kStart:
      return "start";
    case FailureKind::kProtocol:
      return "protocol";
    case FailureKind::kLease:
      return "lease";
    case FailureKind::kHost:
      return "host";
    case FailureKind::kDisk:
      return "disk";
    case FailureKind::kEnvironment:
      return "environment";
  }
  return "unknown";
}

bool HasEnded(SweepState state) {
  return state != SweepState::kRunning && state != SweepState::kPaused;
}

bool HasEnded(TrialState state) {
  return state != TrialState::kPending && state != TrialState::kRunning &&
         state != TrialState::kPaused;
}

namespace {

template <class... T>
constexpr bool AllWhole(const std::variant<T...>*) {
  return (WholeEvent<T> && ...);
}
static_assert(AllWhole(static_cast<const AnyFact*>(nullptr)),
              "an event has no row, or a member that its row does not name");

// The sweep, the trial and the executor that a subject names; null if it names none.
const TrialId* TrialIn(const TrialId& trial) { return &trial; }
const TrialId* TrialIn(const AttemptId& attempt) { return &attempt.trial; }
const TrialId* TrialIn(const CheckpointId& checkpoint) { return &checkpoint.trial; }
const TrialId* TrialIn(SweepId) { return nullptr; }
const TrialId* TrialIn(const std::string&) { return nullptr; }
const TrialId* TrialIn(NoSubject) { return nullptr; }

const SweepId* SweepIn(const SweepId& sweep) { return &sweep; }
const SweepId* SweepIn(const std::string&) { return nullptr; }
const SweepId* SweepIn(NoSubject) { return nullptr; }
template <class Subject>
const SweepId* SweepIn(const Subject& subject) {
  return &TrialIn(subject)->sweep;
}

const std::string* ExecutorIn(const std::string& executor) { return &executor; }
template <class Subject>
const std::string* ExecutorIn(const Subject&) {
  return nullptr;
}

// The result of `part` for the subject of a fact.
template <class Part>
auto PartOfSubject(const Fact& fact, Part part) {
  return std::visit(
      [&]<class T>(const T& event) { return part(std::invoke(T::kRow.subject, event)); }, fact);
}

}  // namespace

Fact::Fact() = default;
Fact::Fact(const Fact& other) = default;
Fact::Fact(Fact&& other) noexcept = default;
Fact& Fact::operator=(const Fact& other) = default;
Fact& Fact::operator=(Fact&& other) noexcept = default;
Fact::~Fact() = default;

const EventInfo& InfoOf(const Fact& fact) {
  return std::visit([]<class T>(const T&) -> const EventInfo& { return T::kRow.info; }, fact);
}

std::optional<SweepId> SweepOf(const Fact& fact) {
  const SweepId* const sweep = PartOfSubject(fact, [](const auto& id) { return SweepIn(id); });
  return sweep != nullptr ? std::optional(*sweep) : std::nullopt;
}

std::optional<TrialId> TrialOf(const Fact& fact) {
  const TrialId* const trial = PartOfSubject(fact, [](const auto& id) { return TrialIn(id); });
  return trial != nullptr ? std::optional(*trial) : std::nullopt;
}

const std::string* ExecutorOf(const Fact& fact) {
  return PartOfSubject(fact, [](const auto& id) { return ExecutorIn(id); });
}

}  // namespace attune
