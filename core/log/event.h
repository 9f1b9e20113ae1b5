#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/base/ids.h"
#include "core/log/attempt_events.h"
#include "core/log/event_values.h"
#include "core/log/executor_events.h"
#include "core/log/log_events.h"
#include "core/log/sweep_events.h"
#include "core/log/trial_events.h"

namespace attune {

// The actor of events that nobody asked for: the service itself.
inline constexpr std::string_view kService = "attune";

// All kinds of events. To add one, write its struct with a row (event_row.h), name it here, and
// handle it in Apply (core/state/applier.h).
using AnyFact =
    std::variant<SweepCreated, SweepPaused, SweepResumed, SweepEdited, SweepReopened, SweepStopping,
                 SweepEnded, SweepAnnotated, SweepDeletionScheduled, SweepUndeleted, SweepDeleted,
                 SweepRemoved, SearchExhausted, ProposalBegun, SearchWaits, TrialCreated,
                 TrialReopened, AttemptAssigned, AttemptRenewed, AttemptStarted, AttemptFirstStep,
                 RendezvousOpened, TrialReported, MetricsLogged, TrialYielding, TrialDecided,
                 TrialPromoted, CheckpointSaved, CheckpointPinned, CheckpointDropped,
                 CheckpointRemoved, CheckpointStored, AttemptPartEnded, AttemptEnded, TrialRequeued,
                 TrialAnnotated, TrialEnded, SlotsReserved, ReservationReleased, ExecutorJoined,
                 ExecutorLost, ExecutorDrained, ExecutorResumed, ExecutorHealth,
                 ExecutorQuarantined, ExecutorQuarantineEnded, ExecutorExcluded, ExecutorForgotten,
                 EnvironmentRecorded, LogIdentified, ClockAdjusted>;

template <class T>
concept FactKind =
    std::is_constructible_v<AnyFact, T> && !std::is_base_of_v<AnyFact, std::remove_cvref_t<T>>;

// Something that has happened. Fact is a class, not the variant itself, so that the code that
// copies and destroys the variant is compiled only once.
class Fact : public AnyFact {
 public:
  template <FactKind T>
  Fact(T&& fact) : AnyFact(std::forward<T>(fact)) {}  // NOLINT(runtime/explicit)
  Fact();
  Fact(const Fact& other);
  Fact(Fact&& other) noexcept;
  Fact& operator=(const Fact& other);
  Fact& operator=(Fact&& other) noexcept;
  ~Fact();
};

// Whether the fact is of one of these kinds.
template <FactKind... Kinds>
bool IsOneOf(const Fact& fact) {
  return (std::holds_alternative<Kinds>(fact) || ...);
}

// A fact with its position and time in the log.
struct Event {
  EventSeq seq;
  Time time;
  Fact fact;
  std::string actor{kService};  // the name of the token or executor that caused it, or kService
};

// The row of the fact's kind.
const EventInfo& InfoOf(const Fact& fact);

// The sweep and the trial that a fact is about, if it is about one.
std::optional<SweepId> SweepOf(const Fact& fact);
std::optional<TrialId> TrialOf(const Fact& fact);

// The executor that a fact is about; null if it is about none.
const std::string* ExecutorOf(const Fact& fact);

// Calls `handle` with the event inside `fact` if its row says that the consumer handles it:
//
//   Dispatch<kTables>(fact, [&](const auto& event) -> decltype(Handle(event)) { Handle(event); });
//
// Does not compile if a handled event has no code, or if an ignored event has some. The return type
// of `handle` must name the call that it makes, so that the compiler can check that it exists.
template <Consumers kConsumer, class Handler>
void Dispatch(const Fact& fact, const Handler& handle) {
  std::visit(
      [&]<class T>(const T& event) {
        if constexpr ((T::kRow.info.consumers & kConsumer) != 0) {
          handle(event);
        } else {
          static_assert(!std::is_invocable_v<const Handler&, const T&>,
                        "the row says Ignored, but there is code for the event");
        }
      },
      fact);
}

}  // namespace attune
