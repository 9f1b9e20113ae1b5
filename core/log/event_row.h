#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/base/ids.h"
#include "core/log/archive.h"

// The row of an event describes a kind of event to the rest of the service. Each event struct has a
// row as its member `kRow`:
//
//   struct TrialRequeued {
//     TrialId trial;
//     std::string reason;
//     Time not_before;
//
//     static constexpr auto kRow = EventRow(
//         {"trial_requeued", Needs::kTrial, kNoExecutor, Handled(kStream | kTables),
//          Ignored(kSummary | kCurves | kAudit)},
//         &TrialRequeued::trial,                            // the subject
//         Field("reason", &TrialRequeued::reason),          // every other field
//         Field("not_before_us", &TrialRequeued::not_before));
//   };
//
// The payloads of the log, snapshots, the audit and the columns of the log derive from the rows.
namespace attune {

// What the state must contain before the event. The audit refuses a log that breaks this.
enum class Needs {
  kNothing,
  kExecutor,      // the executor of the event exists
  kNewSweep,      // its sweep does not exist yet
  kSweep,         // its sweep exists and has not ended
  kEndedSweep,    // its sweep has ended and was not deleted
  kGoneSweep,     // its sweep does not run; its events may have been erased
  kCreatedSweep,  // its sweep exists, has ended or was deleted
  kTrial,         // its trial exists and has not ended
  kLiveAttempt,   // its trial has an attempt that has not ended
};

// Parts of the server that the event concerns although they do not read the log. Flags.
enum Concerns : unsigned {
  kNoExecutor = 0,
  kGangs = 1,     // executors that run a gang of its sweep or trial
  kRemovals = 2,  // executors that wait to hear that files are gone
  kEveryExecutor = 4,
  kTrialRecord = 8,  // caches of the record of a trial that has ended
};
constexpr Concerns operator|(Concerns a, Concerns b) {
  return static_cast<Concerns>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

// Parts of the program that follow the log and handle only some events. Flags.
enum Consumers : unsigned {
  kNoConsumer = 0,
  kStream = 1,   // server/http/answers/event_stream.cc: clients see the event
  kTables = 2,   // server/store/tables/projection.cc: it changes a table
  kSummary = 4,  // simulator/tally.cc: it changes the summary of a sweep
  kCurves = 8,   // simulator/recording.cc: a replay needs it
  kAudit = 16,   // core/brain/audit.cc: it needs more than its Needs
  kEveryConsumer = 31,
};
constexpr Consumers operator|(Consumers a, Consumers b) {
  return static_cast<Consumers>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
struct Handled {
  Consumers consumers;
  constexpr explicit Handled(Consumers its_consumers) : consumers(its_consumers) {}
};
struct Ignored {
  Consumers consumers;
  constexpr explicit Ignored(Consumers its_consumers) : consumers(its_consumers) {}
};

struct EventInfo {
  std::string_view kind;  // the name of the event in the log
  int version = 1;        // the version of its payload in the log
  Needs needs;
  Concerns concerns;
  Consumers consumers;

  // Each row lists every consumer as handling or ignoring the event, so that none is forgotten.
  consteval EventInfo(std::string_view its_kind, Needs its_needs, Concerns its_concerns,
                      Handled handled, Ignored ignored)
      : kind(its_kind), needs(its_needs), concerns(its_concerns), consumers(handled.consumers) {
    if ((handled.consumers & ignored.consumers) != 0 ||
        (handled.consumers | ignored.consumers) != kEveryConsumer)
      throw "a consumer neither handles nor ignores the event, or does both";
  }
};

// ---- fields ----------------------------------------------------------------------------------

// A member of the payload.
template <class Member>
struct Field {
  const char* name;
  Member member;
  constexpr Field(const char* its_name, Member its_member) : name(its_name), member(its_member) {}

  template <class A, class T>
  void Visit(A& archive, T& event) const {
    archive(name, std::invoke(member, event));
  }
};

// A member that the payload omits while it equals T{}.
template <class Member>
struct Sparse {
  const char* name;
  Member member;
  constexpr Sparse(const char* its_name, Member its_member) : name(its_name), member(its_member) {}

  template <class A, class T>
  void Visit(A& archive, T& event) const {
    archive.Sparse(name, std::invoke(member, event));
  }
};

// A struct whose fields become fields of the payload itself.
template <class Member>
struct Inline {
  Member member;
  constexpr explicit Inline(Member its_member) : member(its_member) {}

  template <class A, class T>
  void Visit(A& archive, T& event) const {
    Fields(archive, std::invoke(member, event));
  }
};

// ---- subjects --------------------------------------------------------------------------------

// Columns of the log hold the sweep and the trial; the payload holds the rest of the subject.
template <class A>
void VisitSubject(A& archive, Like<A, SweepId>& sweep) {
  archive.Row(sweep);
}
template <class A>
void VisitSubject(A& archive, Like<A, TrialId>& trial) {
  archive.Row(trial);
}
template <class A>
void VisitSubject(A& archive, Like<A, AttemptId>& attempt) {
  archive.Row(attempt.trial);
  archive("attempt", attempt.number);
}
template <class A>
void VisitSubject(A& archive, Like<A, CheckpointId>& checkpoint) {
  archive.Row(checkpoint.trial);
  archive("attempt", checkpoint.attempt);
  archive("step", checkpoint.step);
}
template <class A>
void VisitSubject(A& archive, Like<A, std::string>& executor) {
  archive("name", executor);
}

// The subject of an event about the log as a whole. Such rows give kNoSubject in place of a member.
struct NoSubject {};
struct AboutNothing {
  template <class T>
  constexpr NoSubject operator()(const T&) const {
    return {};
  }
};
inline constexpr AboutNothing kNoSubject;

template <class A>
void VisitSubject(A&, NoSubject) {}

// ---- the row ---------------------------------------------------------------------------------

template <class SubjectMember, class... Members>
struct EventRow {
  EventInfo info;
  SubjectMember subject;
  std::tuple<Members...> fields;
  constexpr EventRow(EventInfo its_info, SubjectMember its_subject, Members... its_fields)
      : info(its_info), subject(its_subject), fields(its_fields...) {}

  template <class A, class T>
  void Visit(A& archive, T& event) const {
    auto&& about = std::invoke(subject, event);
    VisitSubject(archive, about);
    std::apply([&](const auto&... field) { (field.Visit(archive, event), ...); }, fields);
  }
};

struct AnyMember {
  template <class T>
  operator T() const;  // NOLINT(runtime/explicit); never defined
};

// The number of members of an aggregate.
template <class T, class... Members>
constexpr size_t CountMembers() {
  if constexpr (requires { T{Members{}..., AnyMember{}}; }) {
    return CountMembers<T, Members..., AnyMember>();
  } else {
    return sizeof...(Members);
  }
}

// The number of members that a row names. A subject inside an Inline member does not count.
template <class SubjectMember, class... Members>
constexpr size_t CountFields(const EventRow<SubjectMember, Members...>&) {
  return sizeof...(Members) + (std::is_member_pointer_v<SubjectMember> ? 1 : 0);
}

template <class T>
concept HasRow = requires {
  std::remove_cvref_t<T>::kRow.info;
};

// An event whose row names each of its members.
template <class T>
concept WholeEvent = HasRow<T> && CountMembers<T>()
== CountFields(T::kRow);

template <class A, HasRow T>
void Fields(A& archive, T& event) {
  std::remove_const_t<T>::kRow.Visit(archive, event);
}

}  // namespace attune
