#include "core/log/event.h"

#include <functional>

#include "core/log/fields.h"

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
  }
  return "unknown";
}

bool Ended(SweepState state) {
  return state != SweepState::kRunning && state != SweepState::kPaused;
}

bool Ended(TrialState state) {
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

// An archive that keeps the subject of a fact and ignores all other fields.
class SubjectArchive {
 public:
  static constexpr bool kReads = false;

  template <class T>
  void operator()(const char*, const T&) {}
  template <class T>
  void Later(const char*, const T&) {}
  template <class T>
  void Later(const char*, const T&, const T&) {}
  template <class T>
  void Sparse(const char*, const T&) {}
  template <class T>
  void Listed(const char*, const char*, const T&) {}
  void Row(SweepId id) { sweep = id; }
  void Row(const TrialId& id) {
    sweep = id.sweep;
    trial = id;
  }

  std::optional<SweepId> sweep;
  std::optional<TrialId> trial;
};

SubjectArchive SubjectOf(const Fact& fact) {
  SubjectArchive archive;
  std::visit([&](const auto& about) { Fields(archive, about); }, fact);
  return archive;
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

std::optional<SweepId> SweepOf(const Fact& fact) { return SubjectOf(fact).sweep; }
std::optional<TrialId> TrialOf(const Fact& fact) { return SubjectOf(fact).trial; }

const std::string* ExecutorOf(const Fact& fact) {
  return std::visit(
      []<class T>(const T& event) -> const std::string* {
        const auto& subject = std::invoke(T::kRow.subject, event);
        if constexpr (std::is_same_v<decltype(subject), const std::string&>) {
          return &subject;
        } else {
          return nullptr;
        }
      },
      fact);
}

std::optional<ProposalNumber> UncountedProposal(const TrialCreated& fact) {
  if (fact.origin == kInitialPoints || fact.origin == kEnqueued) return std::nullopt;
  return ProposalNumber(fact.trial.number.value);
}

}  // namespace attune
